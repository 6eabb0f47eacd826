"""Drives a real database and the model of `protocol_model` with the same calls, in any order.

Workers report late or twice, claim what others have, and forge; responses are lost before or after
the commit; masters act on what they saw long ago; people pause, purge and revoke; time passes.
After each call the database has to be what the model says, and no invariant may be broken.

The workers' calls go to the database, or over HTTP to a server.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from asking import RemoteStore
from builders import LEASE, new_iteration, new_run, new_worker, step_from, tally_of_seed
from cutting import Cut, CutStore
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from invariants import broken, miscounted
from protocol_model import (
    ATTEMPTS,
    IN_FLIGHT,
    ITERATIONS,
    MOST_HELD,
    Batch,
    Fleet,
    Iteration,
    Machine,
    Run,
    Worker,
    counts,
    rows_of,
)
from shell import Shell

from spsa.core import Update
from spsa.core.scoring import Tally
from spsa.db.migrate import metadata
from spsa.db.purge_queries import PurgePlan, Selection
from spsa.db.run_view import MasterLease
from spsa.errors import (
    DatabaseUnreachable,
    IllegalTransition,
    LeaseLost,
    MasterLeaseLost,
    NameTaken,
    NothingToDo,
    NotPermitted,
    OutOfRange,
    ReportConflict,
    TooManyRequests,
    TuningError,
)
from spsa.lifecycle import MachineRole
from spsa.protocol import BatchResult, Claim, Failure, Measured, RegisteredWorker, WorkerStore

MACHINES = ("machine", "machine", "other", "third")  # of each worker
PROVIDED = (("fast",), ("fast",), ("fast", "big"), ())  # by each worker
NAMES = ("m1", "m1", "m2")  # masters
CUTS: tuple[Cut, ...] = (None, None, None, "before", "after")
OLD = "2000-01-01 00:00:00.000"


@dataclass(frozen=True)
class Place:
    """A database that each history finds empty; `url` is of its server, if workers are remote."""

    store: CutStore
    sql: Shell
    url: str | None = None

    def empty(self) -> None:
        names = [table.name for table in reversed(metadata.sorted_tables)]
        if self.sql.dialect == "postgresql":
            self.sql(f"TRUNCATE {', '.join(names)} RESTART IDENTITY CASCADE")
        else:
            for name in names:
                self.sql(f"DELETE FROM {name}")  # noqa: S608
        self.store._details.clear()  # ids begin at 1 again, which no database does


@dataclass(frozen=True)
class Plan:
    """What a call has to do: refuse with `error`, or return so and change the model by `effect`."""

    answer: Callable[[Any], bool] = lambda got: True
    effect: Callable[[], Any] = lambda: None
    error: type[TuningError] | None = None


def refuse(error: type[TuningError]) -> Plan:
    return Plan(error=error)


def _of(row: Any, *names: str) -> tuple[Any, ...]:
    return tuple(getattr(row, name) for name in names)


_BATCHES = (
    "SELECT b.id FROM spsa_batch b JOIN spsa_iteration i ON i.id = b.iteration_id"
    " WHERE i.run_id = :run AND i.k = :k ORDER BY b.seq"
)
_COUNTS = ("plus_wins", "minus_wins", "draws", *(f"ptnml_{i}" for i in range(5)))


class ProtocolMachine(RuleBasedStateMachine):
    """See the module. An act has a number, which says who does it to what, and where it is cut."""

    place: Place

    def __init__(self) -> None:
        super().__init__()
        self.place.empty()
        self.store, self.sql, self.fleet = self.place.store, self.place.sql, Fleet()
        self.leases: dict[tuple[int, str], MasterLease] = {}
        self.replaced: list[MasterLease] = []
        self.views: dict[tuple[int, str], Any] = {}
        self.asked: list[str] = []
        self.claims: dict[str, Claim] = {}
        for name in ("first", "second"):
            run = self.store.create_run(new_run(name=name, max_iterations=ITERATIONS))
            self.fleet.runs.append(Run(run.id, name, run.theta))
        invited = {name: Machine(name, self._invite(name)) for name in MACHINES[1:]}
        self.machines = list(invited.values())
        self.apis: dict[str, WorkerStore] = {}
        for i, name in enumerate(MACHINES):
            worker = Worker(invited[name], PROVIDED[i])
            self.fleet.workers.append(worker)
            worker.id = self._register(worker).id

    def teardown(self) -> None:
        for api in self.apis.values():
            api.close()
        assert broken(self.sql) == []

    def _invite(self, name: str) -> str:
        return self.store.invite_machine(name, MachineRole.WORKER, "owner")

    def api(self, worker: Worker) -> WorkerStore:
        """What a worker calls."""
        if self.place.url is None:
            return self.store
        token = worker.machine.token
        if token not in self.apis:
            self.apis[token] = RemoteStore(self.place.url, token)
        return self.apis[token]

    def _register(self, worker: Worker) -> RegisteredWorker:
        info = new_worker(
            f"worker-{self.fleet.workers.index(worker)}",
            host=worker.machine.name,
            secret=worker.machine.token,
            concurrency=(MOST_HELD - 2) // 2,
            provides=worker.provides,
            not_runs=() if worker.takes_first else ("first",),
        )
        return self.api(worker).register_worker(info)

    def do(self, call: Callable[[], Any], plan: Plan, cut: Cut = None) -> Any:
        """Make a call; what it returned, or None where it refused or was cut off."""
        self.store.cut_next(cut)
        try:
            got = call()
        except TuningError as error:
            if type(error) is DatabaseUnreachable and cut is not None:
                if cut == "after" and plan.error is None:
                    plan.effect()
                return None
            assert type(error) is plan.error, f"{error!r} instead of {plan.error}"
            return None
        finally:
            self.store.cut_next(None)
        assert plan.error is None, f"{got!r} instead of {plan.error}"
        assert plan.answer(got), f"{got!r} is not the right response"
        plan.effect()
        return got

    def ask(self, worker: Worker, call: Callable[[WorkerStore], Any], plan: Plan, cut: Cut) -> Any:
        """The same for a call of a worker: a server does not listen to one that was revoked."""
        if self.place.url is not None and worker.machine.is_revoked:
            plan = refuse(NotPermitted)
        return self.do(lambda: call(self.api(worker)), plan, cut)

    @initialize()
    def begin(self) -> None:
        """Nothing can go wrong before an iteration is open."""
        self.become_master(0)
        self.move(0)

    @rule(chance=st.integers(0, (1 << 64) - 1))
    def something_happens(self, chance: int) -> None:
        """`chance` decides what, who does it to what, and where the call is cut off."""
        dice = Random(chance)  # even odds; hypothesis alone prefers the first words of a list
        act, pick, cut = dice.choice(ACTS), dice.randrange(1 << 16), dice.choice(CUTS)
        note(f"{act}({pick}, {cut!r})")
        getattr(self, act)(pick, cut)

    @invariant()
    def the_database_is_the_model(self) -> None:
        runs = self.sql(
            "SELECT status, applied, purges, epoch, master_id, theta FROM spsa_run ORDER BY id"
        )
        assert [(*row[:-1], _value(row[-1])) for row in runs] == rows_of(self.fleet.runs)
        iterations = [i for run in self.fleet.runs for i in run.iterations]
        assert [
            _of(
                row, "run_id", "k", "status", "games_played", *_COUNTS, "void_games", "purged_games"
            )
            for row in self.sql("SELECT * FROM spsa_iteration ORDER BY run_id, k")
        ] == [iteration.row for iteration in iterations]
        assert [
            _of(row, "id", "seq", "status", "attempt", "claim_id", "void_games", *_COUNTS)
            for row in self.sql("SELECT * FROM spsa_batch ORDER BY id")
        ] == [
            (b.id, b.seq, b.status, b.attempt, b.claim, b.voids, *counts(b.tally)[1:])
            for b in sorted(self.fleet.batches, key=lambda b: b.id)
        ]
        voids = self.sql("SELECT host, sum(failed_void_games) FROM spsa_worker GROUP BY host")
        assert {name: int(n) for name, n in voids} == {m.name: m.voids for m in self.machines}

    @invariant()
    def every_count_is_right(self) -> None:
        assert miscounted(self.sql) == []

    # what a worker does

    def _worker(self, pick: int) -> Worker:
        return self.fleet.workers[pick % len(self.fleet.workers)]

    def claim(self, pick: int, cut: Cut = None) -> None:
        self.asked.append(f"c{len(self.asked)}")
        self._claim(self.asked[-1], self._worker(pick), cut)

    def ask_again(self, pick: int, cut: Cut = None) -> None:
        """Also by another worker, which gets nothing of the first."""
        if self.asked:
            self._claim(self.asked[pick % len(self.asked)], self._worker(pick), cut)

    def _claim(self, claim_id: str, worker: Worker, cut: Cut) -> None:
        mine, known = RegisteredWorker(id=worker.id, machine=""), self.fleet.of_claim(claim_id)
        plan, free = self._planned_claim(known, worker)
        got = self.ask(worker, lambda api: api.claim(claim_id, mine, LEASE), plan, cut)
        if known is None:
            for batch in self._leased_by(claim_id):
                assert batch in free, f"{batch} is not free to {worker}"
                assert cut != "before", "it was rolled back"
                batch.take(claim_id, worker)
        if got is not None:
            now = self.fleet.of_claim(claim_id)
            assert now is not None and (got.batch_id, got.attempt) == (now.id, now.attempt)
            assert (got.run_name, got.seq) == (now.iteration.run.name, now.seq)
            self.claims[claim_id] = got

    def _planned_claim(self, known: Batch | None, worker: Worker) -> tuple[Plan, list[Batch]]:
        """What a claim has to do, and the batches one of which it gets."""
        is_mine = known is not None and known.status == "leased" and known.worker is worker
        if is_mine:
            return Plan(lambda got: got is not None), []
        if len(self.fleet.held(worker)) >= MOST_HELD and known is None:
            return refuse(TooManyRequests), []
        if known is not None:
            return refuse(LeaseLost), []
        free = self.fleet.next_batches(worker)
        return Plan(lambda got: (got is not None) == bool(free)), free

    def _leased_by(self, claim_id: str) -> list[Batch]:
        query = "SELECT id FROM spsa_batch WHERE claim_id = :claim"
        ids = [row.id for row in self.sql(query, claim=claim_id)]
        return [batch for batch in self.fleet.batches if batch.id in ids]

    def _picked(self, pick: int) -> tuple[Claim, Worker, Batch | None] | None:
        """One of the last claims that got a batch, and the batch if it is still this claim's."""
        lately = list(self.claims.values())[-6:]
        if not lately:
            return None
        claim = lately[pick % len(lately)]
        batch = self.fleet.of_claim(claim.claim_id)
        worker = next(w for w in self.fleet.workers if w.id == claim.worker_id)
        is_its = batch is not None and batch.id == claim.batch_id and batch.worker is worker
        is_its = is_its and batch.status != "purged"
        return claim, worker, batch if is_its else None

    def report(self, pick: int, cut: Cut = None, *, honest: bool = True) -> None:
        if (picked := self._picked(pick)) is None:
            return
        claim, worker, batch = picked
        tally = tally_of_seed(claim.seed if honest else claim.seed + 1, claim.pairs)
        result = BatchResult(tally=tally, voids={"crash": pick % 3} if pick % 3 else {})
        plan = self._planned_report(batch, result)
        self.ask(worker, lambda api: api.report(claim, result), plan, cut)

    def _planned_report(self, batch: Batch | None, result: BatchResult) -> Plan:
        if batch is None:
            return refuse(LeaseLost)
        if batch.status == "done":
            same = result.tally == batch.tally
            return Plan(lambda got: got == "already") if same else refuse(ReportConflict)
        if result.tally.games != 4:
            return refuse(OutOfRange)
        if batch.iteration.status != "in_progress":
            return refuse(LeaseLost)

        def effect() -> None:
            batch.status, batch.is_expired, batch.tally = "done", False, result.tally
            batch.voids += sum(result.voids.values())

        return Plan(lambda got: got == "accepted", effect)

    def lie(self, pick: int, cut: Cut = None) -> None:
        self.report(pick, cut, honest=False)

    def report_of_another_batch(self, pick: int, cut: Cut = None) -> None:
        """The number of games is not the batch's."""
        if (picked := self._picked(pick)) is not None:
            claim, worker, batch = picked
            result = BatchResult(tally=tally_of_seed(1, 1 + 2 * (pick % 2)))
            plan = self._planned_report(batch, result)
            self.ask(worker, lambda api: api.report(claim, result), plan, cut)

    def report_what_cannot_be(self, pick: int, cut: Cut = None) -> None:
        if (picked := self._picked(pick)) is not None:
            claim, worker, _ = picked
            wrong = (("moves", -5), ("seconds", float("nan")), ("slot", -3), ("plus_nodes", 2**64))
            tally = tally_of_seed(claim.seed, claim.pairs)
            result = BatchResult(tally=tally, **dict([wrong[pick % 4]]))
            self.ask(worker, lambda api: api.report(claim, result), refuse(OutOfRange), cut)

    def forge(self, pick: int, cut: Cut = None) -> None:
        """A report by a claim that never was, or by a worker that does not hold the claim."""
        if (picked := self._picked(pick)) is None:
            return
        claim, worker, _ = picked
        other = self._worker(pick)
        if other is worker:
            forged = replace(claim, claim_id="forged")
        else:
            forged = replace(claim, worker_id=other.id)
        won = BatchResult(tally=Tally(4, 0, 0, (0, 0, 0, 0, 2)))
        self.ask(other, lambda api: api.report(forged, won), refuse(LeaseLost), cut)
        self.ask(other, lambda api: api.release(forged), Plan(), cut)
        self.ask(other, lambda api: api.fail(forged, Failure(reason="no")), Plan(), cut)

    def speak_for_another(self, pick: int, cut: Cut = None) -> None:
        """A server does not believe that a worker is one of another machine."""
        worker, other = self._worker(pick), self._worker(pick // 4)
        if self.place.url is not None and worker.machine is not other.machine:
            mine = RegisteredWorker(id=other.id, machine=other.machine.name)
            self.ask(
                worker, lambda api: api.touch_worker(mine, Measured()), refuse(NotPermitted), cut
            )
            some = lambda api: api.claim("stolen", mine, LEASE)  # noqa: E731
            self.ask(worker, some, refuse(NotPermitted), cut)

    def release(self, pick: int, cut: Cut = None) -> None:
        if (picked := self._picked(pick)) is not None:
            claim, worker, batch = picked
            mine = batch is not None and batch.status == "leased"
            effect = (lambda: batch.give_back(attempts=1)) if mine and batch else Plan.effect
            self.ask(worker, lambda api: api.release(claim), Plan(effect=effect), cut)

    def fail(self, pick: int, cut: Cut = None) -> None:
        if (picked := self._picked(pick)) is None:
            return
        claim, worker, batch = picked
        voids = pick % 3

        def effect() -> None:
            if batch is not None and batch.status == "leased":
                batch.voids += voids
                worker.machine.voids += voids
                batch.failures[worker.machine.name] += 1
                batch.give_back()

        failure = Failure(reason="it broke", void_games=voids)
        self.ask(worker, lambda api: api.fail(claim, failure), Plan(effect=effect), cut)

    def renew(self, pick: int, cut: Cut = None) -> None:
        """All claims that were ever made, of which the worker's own are renewed."""
        worker = self._worker(pick)
        held = [b for b in self.fleet.held(worker) if b.iteration.status == "in_progress"]
        names = {batch.claim for batch in held}

        def effect() -> None:
            for batch in held:
                batch.is_expired = False

        if self.asked:
            mine = RegisteredWorker(id=worker.id, machine="")
            plan = Plan(lambda got: got == names, effect)
            self.ask(worker, lambda api: api.renew(mine, self.asked, LEASE), plan, cut)

    def play(self, pick: int, cut: Cut = None) -> None:
        """What happens most of the time: a batch is claimed, played and reported."""
        self.claim(pick)
        self.report(-1, cut)

    def a_worker_sleeps_too_long(self, pick: int, cut: Cut = None) -> None:
        """A lease expires, another worker gets the batch, and the first one comes back."""
        self.a_lease_expires(pick)
        self.claim(pick)
        self.report(pick, cut)

    def a_worker_starts_again(self, pick: int, cut: Cut = None) -> None:
        """Under its name, and takes the first run or leaves it."""
        worker = self._worker(pick)
        if worker.machine.is_revoked or not worker.machine.is_present:
            return
        worker.takes_first = not worker.takes_first
        same = Plan(lambda got: got.id == worker.id)
        self.do(lambda: self._register(worker), same)

    # what a master does, each on what it saw last

    def _master(self, pick: int) -> tuple[Run, str]:
        return self.fleet.runs[pick % 2], NAMES[pick // 2 % 3]

    def _leads(self, run: Run, name: str) -> bool:
        lease = self.leases[run.id, name]
        return run.master == name and lease.epoch == run.epoch

    def become_master(self, pick: int, cut: Cut = None) -> None:
        run, name = self._master(pick)
        epoch = run.epoch + 1

        def effect() -> None:
            run.epoch, run.master, run.is_expired = epoch, name, False

        is_free = run.master in (None, name) or run.is_expired
        plan = Plan(lambda got: got.epoch == epoch, effect) if is_free else refuse(MasterLeaseLost)
        got = self.do(lambda: self.store.acquire_master_lease(run.id, name, LEASE), plan, cut)
        if got is not None:
            if (run.id, name) in self.leases:
                self.replaced.append(self.leases[run.id, name])
            self.leases[run.id, name] = got
            self.views.pop((run.id, name), None)

    def look(self, pick: int, cut: Cut = None) -> None:
        run, name = self._master(pick)
        if (run.id, name) not in self.leases:
            return
        gone = self.fleet.exhausted(run)

        def effect() -> None:
            run.is_expired = False

        def shows(view: Any) -> bool:
            batches = [b for i in run.open for b in i.batches]
            leased = sum(b.status == "leased" for b in batches)
            return (
                (view.run.status, view.run.applied) == (run.status, run.applied)
                and [i.k for i in view.open] == [i.k for i in run.open]
                and len(view.failed) == sum(b.status == "failed" for b in batches)
                and (view.opened, view.leased_games) == (len(run.iterations), 4 * leased)
                and len(view.obstacles) == len(gone)
            )

        plan = Plan(shows, effect) if self._leads(run, name) else refuse(MasterLeaseLost)
        view = self.do(lambda: self.store.tick(self.leases[run.id, name], LEASE), plan, cut)
        if view is not None:
            self.views[run.id, name] = view
            if view.obstacles:
                self.pause_at_obstacles(pick, cut)

    def pause_at_obstacles(self, pick: int, cut: Cut = None) -> None:
        """Fail what no machine can play, if there still is any such batch."""
        run, name = self._master(pick)
        if (run.id, name) not in self.leases:
            return
        gone = self.fleet.exhausted(run)

        def effect() -> None:
            for batch in gone:
                batch.give_back("failed")
            run.status = "paused" if run.status == "running" else run.status

        plan = Plan(effect=effect) if gone else refuse(IllegalTransition)
        if not self._leads(run, name):
            plan = refuse(MasterLeaseLost)
        lease = self.leases[run.id, name]
        self.do(lambda: self.store.pause_at_obstacles(lease), plan, cut)

    def open(self, pick: int, cut: Cut = None) -> None:
        run, name = self._master(pick)
        view = self.views.get((run.id, name))
        if view is None or view.opened >= ITERATIONS:
            return
        k, seen = view.opened + 1, view.run
        new = new_iteration(
            k=k,
            opened_on=seen.applied,
            opened_purges=seen.purges,
            in_flight=IN_FLIGHT,
            max_attempts=ATTEMPTS,
            requires=Iteration(run, k).requires,
        )
        lease = self.leases[run.id, name]
        plan = self._planned_opening(run, name, k, seen)
        self.do(lambda: self.store.open_iteration(lease, new), plan, cut)

    def _planned_opening(self, run: Run, name: str, k: int, seen: Any) -> Plan:
        if not self._leads(run, name):
            return refuse(MasterLeaseLost)
        if k <= len(run.iterations):
            return Plan(lambda got: got == k)
        is_timely = max(0, k - IN_FLIGHT) <= seen.applied <= run.applied
        if run.status != "running" or not is_timely or seen.purges != run.purges:
            return refuse(IllegalTransition)

        def effect() -> None:
            iteration = Iteration(run, k)
            rows = self.sql(_BATCHES, run=run.id, k=k)
            iteration.batches = [Batch(iteration, row.id, seq) for seq, row in enumerate(rows)]
            assert len(rows) == 2
            run.iterations.append(iteration)

        return Plan(lambda got: got == k, effect)

    def apply(self, pick: int, cut: Cut = None, *, hasty: bool = False) -> None:
        """Move theta by the oldest open iteration, or, in haste, by any that is open."""
        run, name = self._master(pick)
        view = self.views.get((run.id, name))
        found = [] if view is None else [i for i in view.open if hasty or i.is_played]
        if view is None or not found:
            return
        row = found[-1] if hasty else found[0]
        (seen, step), lease = step_from(view.run, row.tally), self.leases[run.id, name]
        iteration = run.iterations[row.k - 1]
        is_next = view.run.applied == run.applied == row.k - 1 and view.run.purges == run.purges

        def effect() -> None:
            run.applied, run.theta, iteration.status = row.k, step.theta, "complete"

        plan = Plan(effect=effect)
        if not self._leads(run, name):
            plan = refuse(MasterLeaseLost)
        elif not (is_next and iteration.is_played and iteration.status == "in_progress"):
            plan = refuse(IllegalTransition)
        self.do(lambda: self.store.apply(lease, row.id, seen, step), plan, cut)

    def apply_in_haste(self, pick: int, cut: Cut = None) -> None:
        self.apply(pick, cut, hasty=True)

    def move(self, pick: int, cut: Cut = None) -> None:
        """What a master does most of the time: look, and do what is next."""
        self.look(pick)
        self.apply(pick, cut)
        self.look(pick)
        self.open(pick, cut)

    def finish(self, pick: int, cut: Cut = None) -> None:
        run, name = self._master(pick)
        if (run.id, name) not in self.leases:
            return
        plan = Plan(effect=lambda: setattr(run, "status", "finished"))
        if not self._leads(run, name):
            plan = refuse(MasterLeaseLost)
        elif run.applied < ITERATIONS or run.status != "running":
            plan = refuse(IllegalTransition)
        self.do(lambda: self.store.finish(self.leases[run.id, name]), plan, cut)

    def resign(self, pick: int, cut: Cut = None) -> None:
        run, name = self._master(pick)
        if (run.id, name) in self.leases:
            lease = self.leases[run.id, name]
            effect = lambda: setattr(run, "master", None)  # noqa: E731
            plan = Plan(effect=effect) if lease.epoch == run.epoch else Plan()
            self.do(lambda: self.store.release_master_lease(lease), plan, cut)

    def another_master_takes_over(self, pick: int, cut: Cut = None) -> None:
        self.a_master_lease_expires(pick)
        self.become_master(pick)

    def a_replaced_master_writes(self, pick: int, cut: Cut = None) -> None:
        """A master's process from before, also one of the same name, can do nothing any more."""
        if self.replaced:
            old = self.replaced[pick // 2 % len(self.replaced)]
            if pick % 2:
                self.do(lambda: self.store.release_master_lease(old), Plan(), cut)
            else:
                self.do(lambda: self.store.tick(old, LEASE), refuse(MasterLeaseLost), cut)

    # what people and the clock do

    def pause(self, pick: int, cut: Cut = None) -> None:
        run = self.fleet.runs[pick % 2]
        may = Plan(effect=lambda: setattr(run, "status", "paused"))
        plan = may if run.status == "running" else refuse(IllegalTransition)
        self.do(lambda: self.store.pause(run.name, "me", "why"), plan, cut)

    def resume(self, pick: int, cut: Cut = None) -> None:
        run = self.fleet.runs[pick % 2]

        def effect() -> None:
            run.status = "running"
            for batch in run.batches:
                if batch.status == "failed":
                    batch.give_back(attempts=batch.attempt)
                    batch.failures.clear()
                    batch.lost.clear()

        plan = Plan(effect=effect) if run.status == "paused" else refuse(IllegalTransition)
        self.do(lambda: self.store.resume(run.name, "me"), plan, cut)

    def stop(self, pick: int, cut: Cut = None) -> None:
        run = self.fleet.runs[pick % 2]

        def effect() -> None:
            run.status = "stopped"
            for iteration in run.open:
                iteration.status = "abandoned"

        if pick % 8 < 2:  # seldom, because nothing happens afterwards
            may = run.status in ("running", "paused")
            plan = Plan(effect=effect) if may else refuse(IllegalTransition)
            self.do(lambda: self.store.stop(run.name, "me", "why"), plan, cut)

    def purge(self, pick: int, cut: Cut = None) -> None:
        """One result or all of an iteration; theta is made up."""
        run = self.fleet.runs[pick % 2]
        if not run.iterations:
            return
        iteration = run.iterations[pick // 2 % len(run.iterations)]
        chosen = [b for b in iteration.batches if pick // 8 % 3 == 0 or b.seq == pick // 4 % 2]
        hit = any(batch.status == "done" for batch in chosen)
        new, reason = self._new_purge(run, iteration, chosen), f"purge {run.purges}"

        def effect() -> None:
            for batch in chosen:
                self._purge(batch)
            run.theta, run.purges = dict(new.theta), run.purges + 1

        plan = Plan(effect=effect) if hit else refuse(NothingToDo)
        self.do(lambda: self.store.purge(new, "me", reason), plan, cut)

    def _new_purge(self, run: Run, iteration: Iteration, chosen: list[Batch]) -> PurgePlan:
        hit = any(batch.status == "done" for batch in chosen)
        counted = iteration.status == "complete" and hit
        theta = {name: x + 1.0 for name, x in run.theta.items()}
        after = Update(k=run.applied, theta=theta, delta={}, state={"purged": run.purges})
        return PurgePlan(
            run=self.store.run(run.name),
            selection=Selection(batches=tuple((iteration.k, batch.seq) for batch in chosen)),
            matches=(),
            after=after if counted else None,
            verdicts={self._row_of(iteration): after} if counted else {},
        )

    def _purge(self, batch: Batch) -> None:
        iteration = batch.iteration
        if batch.status == "done":
            batch.status = "purged"
            if iteration.is_open:
                query = "SELECT max(id) AS id FROM spsa_batch WHERE iteration_id = :id"
                query += " AND seq = :seq"
                place = {"id": self._row_of(iteration), "seq": batch.seq}
                again = self.sql(query, **place)[0].id
                iteration.batches.append(Batch(iteration, again, batch.seq))
        elif batch.status == "leased" and iteration.is_open:
            batch.give_back(attempts=1)

    def _row_of(self, iteration: Iteration) -> int:
        query = "SELECT id FROM spsa_iteration WHERE run_id = :run AND k = :k"
        found: int = self.sql(query, run=iteration.run.id, k=iteration.k)[0].id
        return found

    def _machine(self, pick: int) -> Machine:
        return self._worker(pick).machine

    def revoke(self, pick: int, cut: Cut = None) -> None:
        machine = self._machine(pick)

        def effect() -> None:
            self.fleet.withdraw(machine)
            machine.is_revoked = True

        held = [b for b in self.fleet.batches if b.holder == machine.name and b.iteration.is_open]
        plan = Plan(lambda got: got == len(held), effect)
        self.do(lambda: self.store.revoke_machine(machine.name, "me"), plan, cut)

    def invite(self, pick: int, cut: Cut = None) -> None:
        """A machine that was revoked gets another token."""
        machine = self._machine(pick)
        plan = Plan() if machine.is_revoked else refuse(NameTaken)
        token = self.do(lambda: self._invite(machine.name), plan)
        if token is not None:
            machine.token, machine.is_revoked = token, False

    def withdraw(self, pick: int, cut: Cut = None) -> None:
        machine = self._machine(pick)
        plan = Plan(effect=lambda: self.fleet.withdraw(machine))
        self.do(lambda: self.store.withdraw_batches(machine.name, "me"), plan, cut)

    def set_aside(self, pick: int, cut: Cut = None) -> None:
        machine = self._machine(pick)
        is_new = not machine.is_set_aside
        plan = Plan(lambda got: got == is_new, lambda: setattr(machine, "is_set_aside", True))
        self.do(lambda: self.store.set_aside(machine.name, "why", "me"), plan, cut)

    def release_machine(self, pick: int, cut: Cut = None) -> None:
        machine = self._machine(pick)
        was = machine.is_set_aside

        def effect() -> None:
            machine.is_set_aside, machine.voids = False, 0
            for batch in self.fleet.batches:
                batch.forget(machine.name)

        plan = Plan(lambda got: got == was, effect)
        self.do(lambda: self.store.release_machine(machine.name, "me"), plan, cut)

    def a_machine_falls_silent(self, pick: int, cut: Cut = None) -> None:
        machine = self._machine(pick)
        update = "UPDATE spsa_worker SET last_seen_at = :old WHERE host = :machine"
        self.sql(update, old=OLD, machine=machine.name)
        machine.is_present = False

    def a_machine_comes_back(self, pick: int, cut: Cut = None) -> None:
        machine = self._machine(pick)
        plan = Plan(
            lambda got: (got is None) == (not machine.is_set_aside),
            lambda: setattr(machine, "is_present", True),
        )
        for worker in self.fleet.workers:
            if worker.machine is machine:
                mine = RegisteredWorker(id=worker.id, machine=machine.name)
                self.ask(
                    worker,
                    lambda api, mine=mine: api.touch_worker(mine, Measured(nps=1e6)),
                    plan,
                    None,
                )

    def a_lease_expires(self, pick: int, cut: Cut = None) -> None:
        picked = self._picked(pick)
        batch = None if picked is None else picked[2]
        if batch is not None and batch.status == "leased":
            self.sql.expire(batch.id)
            batch.is_expired = True

    def a_master_lease_expires(self, pick: int, cut: Cut = None) -> None:
        run = self.fleet.runs[pick % 2]
        self.sql.expire(run_id=run.id)
        run.is_expired = run.master is not None


def _value(stored: Any) -> Any:
    """The value of a JSON column, which SQLite returns as text."""
    return json.loads(stored) if isinstance(stored, str) else stored


OFTEN = ("claim", "report", "play", "play", "move", "move", "a_worker_sleeps_too_long", "resume")
RARELY = (
    *("ask_again", "forge", "speak_for_another", "lie", "release", "fail", "renew"),
    *("report_of_another_batch", "report_what_cannot_be", "a_worker_starts_again"),
    *("become_master", "open", "apply", "apply_in_haste", "finish", "resign", "look"),
    "pause_at_obstacles",
    *("another_master_takes_over", "a_replaced_master_writes", "a_master_lease_expires"),
    *("pause", "stop", "purge", "purge", "a_lease_expires"),
    *("revoke", "invite", "invite", "withdraw", "set_aside", "release_machine", "release_machine"),
    *("a_machine_falls_silent", "a_machine_comes_back", "a_machine_comes_back"),
)
ACTS = OFTEN * 3 + RARELY
