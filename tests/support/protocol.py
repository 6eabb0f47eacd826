"""The protocol as it is meant, in plain Python: what every call must answer and change.

`Protocol` drives a real store and this model with the same calls, in any order a fleet of workers
and two masters could make them: zombies that report late, answers that are lost before or after the
commit, masters that act on what they saw long ago. After every call the database has to be what the
model says, and no invariant may be broken.
"""

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from builders import LEASE, new_iteration, new_run, new_worker, step_from, tally_of_seed
from cutting import CutStore
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from invariants import broken, miscounted
from shell import Shell

from spsa.core.scoring import Tally
from spsa.db.store import (
    BatchResult,
    Claim,
    MasterLease,
    RegisteredWorker,
    RunView,
    WorkerInfo,
)
from spsa.errors import (
    DatabaseUnreachable,
    IllegalTransition,
    LeaseLost,
    MasterLeaseLost,
    OutOfRange,
    ReportConflict,
    TuningError,
)

ITERATIONS, IN_FLIGHT, ATTEMPTS = 4, 2, 3
MACHINES = ("machine", "machine", "other", "third")  # of each worker
PROVIDED = (("fast",), ("fast",), ("fast", "big"), ())  # by each worker
WORKERS = len(MACHINES)
OPEN = ("pending", "in_progress")


@dataclass
class Batch:
    """What is true of one batch; `holder` is the claim that has it, or that reported it."""

    iteration: "Iteration"
    seq: int
    status: str = "ready"
    attempt: int = 0
    holder: str | None = None
    machine: str | None = None  # of the holder
    expired: bool = False
    tally: Tally = field(default_factory=Tally)
    voids: int = 0
    failed_by: set[str] = field(default_factory=set)  # machines
    left_by: set[str] = field(default_factory=set)  # machines whose leases ran out

    @property
    def noted(self) -> set[str]:
        return self.failed_by | self.left_by

    @property
    def tried_by(self) -> set[str]:
        return self.noted | ({self.machine} if self.status == "leased" else set())

    @property
    def is_free(self) -> bool:
        return self.status == "ready" or (self.status == "leased" and self.expired)

    def taken(self, claim_id: str, machine: str) -> None:
        if self.status == "leased":
            self.left_by.add(self.machine)
        self.status, self.holder, self.expired = "leased", claim_id, False
        self.machine = machine
        self.attempt += 1
        self.iteration.status = "in_progress"

    def left(self, status: str, attempt: int) -> None:
        self.status, self.holder, self.expired, self.attempt = status, None, False, attempt

    def counted(self, tally: Tally) -> None:
        self.status, self.expired, self.tally = "done", False, tally


@dataclass
class Iteration:
    """What is true of iteration k, which is also its number here."""

    k: int
    status: str = "pending"
    voids: int = 0
    batches: list[Batch] = field(default_factory=list)

    @property
    def tally(self) -> Tally:
        return sum((batch.tally for batch in self.batches), Tally())

    @property
    def requires(self) -> tuple[str, ...]:
        return () if self.k % 2 else ("fast",)

    @property
    def is_played(self) -> bool:
        return all(batch.status == "done" for batch in self.batches)


@dataclass(frozen=True)
class Plan:
    """What a call has to do: refuse with `error`, or answer so and change the model by `effect`."""

    answer: Callable[[Any], bool] = lambda got: True
    effect: Callable[[], None] = lambda: None
    error: type[TuningError] | None = None


def refuse(error: type[TuningError]) -> Plan:
    return Plan(error=error)


def _true_tally(claim: Claim) -> Tally:
    return tally_of_seed(claim.seed, claim.pairs)


NAMES = ("m1", "m1", "m2")
CUTS = (None, None, None, "before", "after")
OFTEN = ("claim", "report", "play", "play", "move", "move", "a_worker_sleeps_too_long", "resume")
RARELY = (
    *(
        "ask_again",
        "forge",
        "claim_as_another",
        "report_too_much",
        "lie",
        "release",
        "fail",
        "renew",
        "become_master",
        "open",
        "apply",
        "finish",
    ),
    *("apply_in_haste", "resign", "look", "pause", "stop", "a_lease_runs_out"),
    *("the_mastership_runs_out", "another_master_takes_over", "a_replaced_master_writes"),
    *("a_machine_falls_silent", "a_machine_comes_back"),
    *("set_a_machine_aside", "release_a_machine", "release_a_machine"),
    "a_worker_leaves_or_takes_the_run",
)
ACTS = OFTEN * 3 + RARELY


class Protocol(RuleBasedStateMachine):
    """Workers, masters, an owner, time and bad luck; see the module."""

    template: Path  # a migrated SQLite file, set by the test

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="spsa-protocol-"))
        self.store, self.sql = self.opened()
        run = self.store.create_run(new_run(max_iterations=ITERATIONS))
        self.run_id, self.status, self.applied, self.theta = run.id, "running", 0, run.theta
        self.unwilling: set[int] = set()  # workers that do not take the run
        self.workers = [self.registered(i) for i in range(WORKERS)]
        self.present, self.set_aside = set(range(WORKERS)), set()
        self.failed_voids = dict.fromkeys(MACHINES, 0)  # void games of failed attempts
        self.iterations: list[Iteration] = []
        self.epoch, self.master, self.master_expired = 0, None, False
        self.asked: list[str] = []
        self.claims: dict[str, Claim] = {}
        self.masterships: dict[str, MasterLease] = {}
        self.replaced: list[MasterLease] = []
        self.views: dict[str, RunView] = {}

    def registered(self, i: int) -> RegisteredWorker:
        """Worker i, of its own machine, with what it provides and whether it takes the run."""
        return self.store.register_worker(self.info(i))

    def info(self, i: int) -> WorkerInfo:
        return new_worker(
            f"w{i}",
            host=MACHINES[i],
            secret=f"the secret of {MACHINES[i]}",
            provides=PROVIDED[i],
            not_runs=("first",) if i in self.unwilling else (),
            only_runs=() if i else ("first", "another"),
        )

    def opened(self) -> tuple[CutStore, Shell]:
        """A database in which nothing has happened yet."""
        url = f"sqlite:///{shutil.copy(self.template, self.folder / 'spsa.db')}"
        return CutStore(url), Shell(url)

    def teardown(self) -> None:
        faults = broken(self.sql)
        self.store.close()
        self.sql.close()
        shutil.rmtree(self.folder)
        assert faults == []

    def do(self, call: Callable[[], Any], plan: Plan, cut: str | None = None) -> Any:
        """Make a call of the store; its answer, or None where it refused or was cut off."""
        self.store.cut_next(cut)
        try:
            got = call()
        except DatabaseUnreachable:
            assert cut is not None
            if cut == "after" and plan.error is None:
                plan.effect()
            return None
        except TuningError as error:
            assert type(error) is plan.error, f"{error!r} instead of {plan.error}"
            return None
        assert plan.error is None, f"{got!r} instead of {plan.error}"
        assert plan.answer(got), f"{got!r} is not the right answer"
        plan.effect()
        return got

    def batches(self) -> list[Batch]:
        return [batch for iteration in self.iterations for batch in iteration.batches]

    def held(self, claim_id: str) -> Batch | None:
        """The batch that this claim has, or has reported."""
        return next((batch for batch in self.batches() if batch.holder == claim_id), None)

    @initialize()
    def begin(self):
        """Nothing can be got wrong before the first iteration is open."""
        self.become_master(0)
        self.move(0)

    @rule(chance=st.integers(0, (1 << 64) - 1))
    def something_happens(self, chance):
        """`chance` decides what, who does it to what, and whether the answer is lost, and when."""
        dice = Random(chance)  # even odds; hypothesis alone prefers the first words of a list
        act, pick, cut = dice.choice(ACTS), dice.randrange(1 << 16), dice.choice(CUTS)
        note(f"{act}({pick}, {cut!r})")
        getattr(self, act)(pick, cut)

    # what a worker does

    def _suits(self, i: int, batch: Batch) -> bool:
        """Whether worker i may be given this batch."""
        aside = MACHINES[i] in self.set_aside or i in self.unwilling
        return not aside and set(batch.iteration.requires) <= set(PROVIDED[i])

    def _able(self, batch: Batch) -> set[str]:
        """The machines that are there and may be given this batch."""
        return {MACHINES[i] for i in self.present if self._suits(i, batch)}

    def _may_have(self, batch: Batch, machine: str) -> bool:
        if batch.status == "ready" and not batch.noted:
            return True
        alone = self._able(batch) <= {machine}
        again = batch.attempt < ATTEMPTS and (machine not in batch.failed_by or alone)
        return len(batch.tried_by) < ATTEMPTS and (machine not in batch.noted or again)

    def _free(self, i: int) -> Batch | None:
        """Of the oldest iteration that has any: one that was left behind, else one of nobody."""
        free = [
            batch
            for batch in self.batches()
            if self.status == "running"
            and self._suits(i, batch)
            and batch.iteration.status in OPEN
            and batch.is_free
            and self._may_have(batch, MACHINES[i])
        ]
        return min(free, key=lambda b: (b.iteration.k, b.status == "ready", b.seq), default=None)

    def _planned_claim(self, claim_id: str, i: int) -> Plan:
        batch = self.held(claim_id)
        if batch is not None and batch.status == "done":
            return refuse(LeaseLost)
        if batch is not None:
            return Plan(lambda got: _is(got, batch, batch.attempt))
        batch = self._free(i)
        if batch is None:
            return Plan(lambda got: got is None)
        return Plan(
            lambda got: _is(got, batch, batch.attempt + 1),
            lambda: batch.taken(claim_id, MACHINES[i]),
        )

    def _claim(self, claim_id: str, pick: int, cut: str | None) -> None:
        worker = self.workers[pick % WORKERS]
        claim = self.do(
            lambda: self.store_of(worker).claim(claim_id, worker, LEASE),
            self._planned_claim(claim_id, pick % WORKERS),
            cut,
        )
        if claim is not None:
            self.claims[claim_id] = claim

    def store_of(self, worker: RegisteredWorker) -> CutStore:
        """What this worker asks; on a server each machine has a login of its own."""
        return self.store

    def anybodys(self, pick: int) -> CutStore:
        """What any worker asks: who knows a claim's id may report it, whoever made the claim."""
        return self.store_of(self.workers[pick % WORKERS])

    def claim(self, worker, cut=None):
        self.asked.append(f"c{len(self.asked)}")
        self._claim(self.asked[-1], worker, cut)

    def claim_as_another(self, pick, cut=None):
        """A worker's id with a secret that is not its machine's is no right to anything."""
        worker = replace(self.workers[pick % WORKERS], secret="guessed")
        self.do(
            lambda: self.store_of(worker).claim(f"forged {pick}", worker, LEASE),
            refuse(IllegalTransition),
            cut,
        )

    def ask_again(self, pick, cut=None):
        if self.asked:
            self._claim(self.asked[pick % len(self.asked)], pick, cut)

    def _picked(self, pick: int) -> tuple[Claim | None, Batch | None]:
        """One of the last claims that were answered, and its batch where that is still its own.

        A lost claim that is asked for again takes another batch; when that answer is cut off, what
        the worker has in hand is still the claim of the first one.
        """
        lately = list(self.claims.values())[-6:]
        claim = lately[pick % len(lately)] if lately else None
        batch = None if claim is None else self.held(claim.claim_id)
        if claim is None or batch is None:
            return claim, None
        told = (claim.iteration_number, claim.seq) == (batch.iteration.k, batch.seq)
        return claim, batch if told else None

    def report(self, pick, cut=None, *, honest=True):
        claim, batch = self._picked(pick)
        if claim is None:
            return
        tally = tally_of_seed(claim.seed if honest else claim.seed + 1, claim.pairs)
        self.do(
            lambda: self.anybodys(pick).report(claim, BatchResult(tally=tally)),
            self._planned_report(batch, tally),
            cut,
        )

    def _planned_report(self, batch: Batch | None, tally: Tally) -> Plan:
        if batch is None:
            return refuse(LeaseLost)
        if batch.status == "done":
            same = tally == batch.tally
            return Plan(lambda got: got == "already") if same else refuse(ReportConflict)
        if batch.iteration.status != "in_progress":
            return refuse(LeaseLost)
        return Plan(lambda got: got == "accepted", lambda: batch.counted(tally))

    def forge(self, pick, cut=None):
        """A report of any batch by a claim that never was."""
        batches = self.batches()
        if not batches or not self.claims:
            return
        some = list(self.claims.values())[pick % len(self.claims)]
        claim = replace(some, claim_id="forged", batch_id=1 + pick % len(batches))
        won = BatchResult(tally=Tally(4, 0, 0, (0, 0, 0, 0, 2)))
        self.do(lambda: self.anybodys(pick).report(claim, won), refuse(LeaseLost), cut)

    def report_too_much(self, pick, cut=None):
        """Numbers that no games have are refused, and the batch stays as it was."""
        claim, _ = self._picked(pick)
        if claim is not None:
            wrong = (("moves", -5), ("seconds", float("nan")), ("slot", -3), ("plus_nodes", 2**64))
            result = BatchResult(tally=_true_tally(claim), **dict([wrong[pick % len(wrong)]]))
            self.do(lambda: self.anybodys(pick).report(claim, result), refuse(OutOfRange), cut)

    def lie(self, pick, cut=None):
        self.report(pick, cut, honest=False)

    def play(self, worker, cut=None):
        """What happens most of the time: a batch is claimed, played and reported."""
        self.claim(worker)
        self.report(-1, cut)

    def a_worker_sleeps_too_long(self, pick, cut=None):
        """A lease runs out, somebody else gets the batch, and the first one comes back."""
        self.a_lease_runs_out(pick)
        self.claim(pick)
        self.report(pick, cut)

    def release(self, pick, cut=None):
        claim, batch = self._picked(pick)
        if claim is None:
            return
        mine = batch is not None and batch.status == "leased"
        effect = (lambda: batch.left("ready", batch.attempt - 1)) if mine else Plan.effect
        self.do(lambda: self.anybodys(pick).release(claim), Plan(effect=effect), cut)

    def fail(self, pick, cut=None):
        claim, batch = self._picked(pick)
        voids = pick % 3
        if claim is None:
            return

        def effect():
            if batch is None or batch.status != "leased":
                return
            batch.iteration.voids += voids
            batch.voids += voids
            self.failed_voids[batch.machine] += voids
            batch.failed_by.add(batch.machine)
            batch.left("ready", batch.attempt)

        self.do(
            lambda: self.anybodys(pick).fail(claim, "it broke", voids), Plan(effect=effect), cut
        )

    def _give_up(self, batch: Batch) -> None:
        batch.left("failed", batch.attempt)
        if self.status == "running":
            self.status = "paused"

    def renew(self, pick, cut=None):
        going = [b for b in self.batches() if b.iteration.status == "in_progress"]
        held = [b for b in going if b.status == "leased" and b.holder in self.claims]

        def effect():
            for batch in held:
                batch.expired = False

        self.do(
            lambda: self.anybodys(pick).renew(list(self.claims), LEASE),
            Plan(lambda got: got == {batch.holder for batch in held}, effect),
            cut,
        )

    # what a master does, each on what it saw last

    def become_master(self, pick, cut=None):
        name = NAMES[pick % 3]

        def effect():
            self.epoch, self.master, self.master_expired = self.epoch + 1, name, False

        free = self.master in (None, name) or self.master_expired
        epoch = self.epoch + 1
        got = self.do(
            lambda: self.store.acquire_master_lease(self.run_id, name, LEASE),
            Plan(lambda got: got.epoch == epoch, effect) if free else refuse(MasterLeaseLost),
            cut,
        )
        if got is not None:
            if name in self.masterships:
                self.replaced.append(self.masterships[name])
            self.masterships[name] = got
            self.views.pop(name, None)

    def _leads(self, name: str) -> bool:
        return self.master == name and self.masterships[name].epoch == self.epoch

    def look(self, pick, cut=None):
        name = NAMES[pick % 3]
        if name not in self.masterships:
            return
        plan = Plan(self._shows, self._tick) if self._leads(name) else refuse(MasterLeaseLost)
        view = self.do(lambda: self.store.tick(self.masterships[name], LEASE), plan, cut)
        if view is not None:
            self.views[name] = view

    def _exhausted(self) -> list[Batch]:
        return [
            batch
            for batch in self.batches()
            if batch.iteration.status == "in_progress"
            and batch.is_free
            and batch.attempt > 0
            and self._tried_enough(batch)
        ]

    def _tried_enough(self, batch: Batch) -> bool:
        able = self._able(batch)
        return (
            len(batch.tried_by) >= ATTEMPTS
            or (batch.attempt >= ATTEMPTS and able <= batch.tried_by)
            or (len(able) >= 2 and able <= batch.failed_by)
        )

    def _tick(self) -> None:
        self.master_expired = False
        for batch in self._exhausted():
            self._give_up(batch)

    def _shows(self, view: RunView) -> bool:
        opened = [iteration for iteration in self.iterations if iteration.status in OPEN]
        given_up = self._exhausted()
        failed = [b for i in opened for b in i.batches if b.status == "failed"]
        leased = [b for i in opened for b in i.batches if b.status == "leased"]
        lapsed = [b for b in given_up if b.status == "leased"]
        paused = self.status == "running" and given_up
        return (
            view.opened == len(self.iterations)
            and [i.k for i in view.open] == [i.k for i in opened]
            and len(view.failures) == len(failed) + len(given_up)
            and view.leased_games == 4 * (len(leased) - len(lapsed))
            and view.run.applied == self.applied
            and view.run.status == ("paused" if paused else self.status)
        )

    def open(self, pick, cut=None):
        name = NAMES[pick % 3]
        view = self.views.get(name)
        if view is None or view.opened >= ITERATIONS:
            return
        k, opened_on = view.opened + 1, view.run.applied
        new = new_iteration(
            k=k,
            opened_on=opened_on,
            opened_purges=view.run.purges,
            in_flight=IN_FLIGHT,
            max_attempts=ATTEMPTS,
            requires=Iteration(k).requires,
        )
        self.do(
            lambda: self.store.open_iteration(self.masterships[name], new),
            self._planned_opening(name, k, opened_on),
            cut,
        )

    def _planned_opening(self, name: str, k: int, opened_on: int) -> Plan:
        if not self._leads(name):
            return refuse(MasterLeaseLost)
        if k <= len(self.iterations):
            return Plan(lambda got: got == k)
        decided_well = max(0, k - IN_FLIGHT) <= opened_on <= self.applied
        if self.status != "running" or not decided_well:
            return refuse(IllegalTransition)

        def effect():
            iteration = Iteration(k)
            iteration.batches = [Batch(iteration, seq) for seq in range(2)]
            self.iterations.append(iteration)

        return Plan(lambda got: got == k, effect)

    def apply(self, pick, cut=None, *, hasty=False):
        """Move theta by the oldest open iteration, or, in haste, by any that is open."""
        name = NAMES[pick % 3]
        view = self.views.get(name)
        candidates = [] if view is None else [i for i in view.open if hasty or i.is_played]
        if not candidates:
            return
        row = candidates[-1] if hasty else candidates[0]
        step = step_from(view.run, row.tally)
        self.do(
            lambda: self.store.apply(self.masterships[name], row.id, step),
            self._planned_step(name, view, row.k, step),
            cut,
        )

    def _planned_step(self, name, view, k, step) -> Plan:
        if not self._leads(name):
            return refuse(MasterLeaseLost)
        iteration = self.iterations[k - 1]
        next_in_turn = view.run.applied == self.applied == k - 1
        if not (next_in_turn and iteration.is_played and iteration.status == "in_progress"):
            return refuse(IllegalTransition)

        def effect():
            self.applied, self.theta, iteration.status = k, step.theta_after, "complete"

        return Plan(effect=effect)

    def move(self, pick, cut=None):
        """What a master does most of the time: look, and do what is next."""
        self.look(pick)
        self.apply(pick, cut)
        self.look(pick)
        self.open(pick, cut)

    def apply_in_haste(self, pick, cut=None):
        self.apply(pick, cut, hasty=True)

    def another_master_takes_over(self, pick, cut=None):
        self.the_mastership_runs_out(pick)
        self.become_master(pick)

    def a_replaced_master_writes(self, pick, cut=None):
        """A master's process from before, also one of the same name, can do nothing any more."""
        if not self.replaced:
            return
        old = self.replaced[pick // 2 % len(self.replaced)]
        if pick % 2:
            self.do(lambda: self.store.release_master_lease(old), Plan(), cut)
        else:
            self.do(lambda: self.store.tick(old, LEASE), refuse(MasterLeaseLost), cut)

    def finish(self, pick, cut=None):
        name = NAMES[pick % 3]
        if name not in self.masterships:
            return
        if not self._leads(name):
            plan = refuse(MasterLeaseLost)
        elif self.applied < ITERATIONS or self.status != "running":
            plan = refuse(IllegalTransition)
        else:
            plan = Plan(effect=lambda: setattr(self, "status", "finished"))
        self.do(lambda: self.store.finish(self.masterships[name]), plan, cut)

    def resign(self, pick, cut=None):
        name = NAMES[pick % 3]
        if name not in self.masterships:
            return

        def effect():
            if self.masterships[name].epoch == self.epoch:
                self.master = None

        self.do(
            lambda: self.store.release_master_lease(self.masterships[name]),
            Plan(effect=effect),
            cut,
        )

    # what the owner and the clock do

    def pause(self, pick, cut=None):
        may = self.status == "running"
        plan = Plan(effect=lambda: setattr(self, "status", "paused"))
        self.do(
            lambda: self.store.pause("first", "me", "why"),
            plan if may else refuse(IllegalTransition),
            cut,
        )

    def resume(self, pick, cut=None):
        def effect():
            self.status = "running"
            for batch in self.batches():
                if batch.status == "failed":
                    batch.left("ready", 0)
                    batch.failed_by, batch.left_by = set(), set()

        may = self.status == "paused"
        if not may and pick % 8:
            return
        self.do(
            lambda: self.store.resume("first", "me"),
            Plan(effect=effect) if may else refuse(IllegalTransition),
            cut,
        )

    def stop(self, pick, cut=None):
        def effect():
            self.status = "stopped"
            for iteration in self.iterations:
                if iteration.status in OPEN:
                    iteration.status = "abandoned"

        may = self.status in ("running", "paused")
        if pick % 8 == 0:
            self.do(
                lambda: self.store.stop("first", "me", "why"),
                Plan(effect=effect) if may else refuse(IllegalTransition),
                cut,
            )

    def a_machine_falls_silent(self, pick, cut=None):
        machine = MACHINES[pick % WORKERS]
        self.sql(
            "UPDATE spsa_worker SET last_seen_at = :then WHERE host = :machine",
            then="2000-01-01 00:00:00.000",
            machine=machine,
        )
        self.present -= {i for i in range(WORKERS) if MACHINES[i] == machine}

    def a_machine_comes_back(self, pick, cut=None):
        worker = self.workers[pick % WORKERS]
        self.do(
            lambda: self.store_of(worker).touch_worker(worker, 1e6),
            Plan(
                lambda got: (got is None) == (worker.machine not in self.set_aside),
                lambda: self.present.add(pick % WORKERS),
            ),
            cut,
        )

    def a_worker_leaves_or_takes_the_run(self, pick, cut=None):
        """It is started again with other options, under its name."""
        i = pick % WORKERS
        self.unwilling ^= {i}
        self.do(lambda: self.registered(i), Plan(effect=lambda: self.present.add(i)))

    def set_a_machine_aside(self, pick, cut=None):
        machine = MACHINES[pick % WORKERS]
        new = machine not in self.set_aside
        self.do(
            lambda: self.store.set_aside(machine, "why", "me"),
            Plan(lambda got: got == new, lambda: self.set_aside.add(machine)),
            cut,
        )

    def release_a_machine(self, pick, cut=None):
        machine = MACHINES[pick % WORKERS]
        was = machine in self.set_aside

        def effect():
            self.set_aside.discard(machine)
            self.failed_voids[machine] = 0
            for batch in self.batches():
                batch.failed_by.discard(machine)
                batch.left_by.discard(machine)

        self.do(
            lambda: self.store.release_machine(machine, "me"),
            Plan(lambda got: got == was, effect),
            cut,
        )

    def a_lease_runs_out(self, pick, cut=None):
        claim, batch = self._picked(pick)
        if batch is not None and batch.status == "leased":
            self.sql.expire(claim.batch_id)
            batch.expired = True

    def the_mastership_runs_out(self, pick, cut=None):
        self.sql.expire(run_id=self.run_id)
        self.master_expired = self.master is not None

    # what has to be true after every call

    @invariant()
    def the_database_is_the_model(self):
        (run,) = self.store.runs()
        assert (run.status, run.applied, run.epoch) == (self.status, self.applied, self.epoch)
        assert (run.master_id, run.theta) == (self.master, self.theta)
        assert [
            (i.k, i.status, i.tally, i.games_played, i.void_games)
            for i in self.store.iterations(self.run_id)
        ] == [(i.k, i.status, i.tally, i.tally.games, i.voids) for i in self.iterations]
        assert [
            (b.iteration_number, b.seq, b.status, b.attempt, b.tally)
            for b in self.store.batches(self.run_id)
        ] == [(b.iteration.k, b.seq, b.status, b.attempt, b.tally) for b in self.batches()]
        voids = dict.fromkeys(MACHINES, 0)  # no report of this model has any
        for worker in self.store.workers():
            voids[worker.host] += worker.void_games
        assert voids == self.failed_voids

    @invariant()
    def every_count_is_right(self):
        assert miscounted(self.sql) == []


def _is(claim: Claim | None, batch: Batch, attempt: int) -> bool:
    return claim is not None and (claim.iteration_number, claim.seq, claim.attempt) == (
        batch.iteration.k,
        batch.seq,
        attempt,
    )
