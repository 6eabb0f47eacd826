"""Drives a real database and the model of `protocol_model` with the same calls, in any order.

Workers report late or twice, claim what others have, and forge; responses are lost before or after
the commit; masters act on what they saw long ago; people pause and revoke; time passes.
After each call the database has to be what the model says, and no invariant may be broken.

The workers' calls go to the database, or over HTTP to a server.
"""

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from operator import methodcaller
from random import Random
from typing import Any

from asking import RemoteStore
from builders import LEASE, new_iteration, new_run, new_worker, step_from, tally_of_seed
from cutting import Cut, CutStore
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from invariants import broken
from protocol_model import (
    ATTEMPTS,
    IN_FLIGHT,
    ITERATIONS,
    MOST_HELD,
    Batch,
    Fleet,
    Iteration,
    Machine,
    Refused,
    Run,
    Worker,
    counts,
)
from shell import Shell

from spsa.core.scoring import Tally
from spsa.db.migrate import metadata
from spsa.db.run_view import MasterLease, RunView
from spsa.errors import DatabaseUnreachable, LeaseLost, MasterLeaseLost, NotPermitted, TuningError
from spsa.lifecycle import MachineRole
from spsa.protocol import BatchResult, Claim, Failure, Measured

MACHINES = ("machine", "machine", "other", "third")  # of each worker
PROVIDED = (("fast",), ("fast",), ("fast", "big"), ())  # by each worker
NAMES = ("m1", "m1", "m2")  # masters
CUTS: tuple[Cut, ...] = (None, None, None, "before", "after")
OLD = "2000-01-01 00:00:00.000"
_COUNTS = "plus_wins, minus_wins, draws, ptnml_0, ptnml_1, ptnml_2, ptnml_3, ptnml_4"
_OF_B = ", ".join(f"b.{name}" for name in _COUNTS.split(", "))


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


def refusing(error: type[TuningError]) -> Callable[[], Any]:
    def refuse() -> None:
        raise Refused(error)

    return refuse


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
        self.apis: dict[str, Any] = {}
        for i, name in enumerate(MACHINES):
            worker = Worker(invited[name], PROVIDED[i])
            self.fleet.workers.append(worker)
            facts = {"host": name, "secret": worker.machine.token, "provides": worker.provides}
            info = new_worker(f"worker-{i}", concurrency=(MOST_HELD - 2) // 2, **facts)
            worker.id = self.api(worker).register_worker(info).id

    def teardown(self) -> None:
        for api in self.apis.values():
            api.close()
        assert broken(self.sql) == []

    def _invite(self, name: str) -> str:
        return self.store.invite_machine(name, MachineRole.WORKER, "owner")

    def api(self, worker: Worker) -> Any:
        """What a worker calls."""
        if self.place.url is None:
            return self.store
        token = worker.machine.token
        if token not in self.apis:
            self.apis[token] = RemoteStore(self.place.url, token)
        return self.apis[token]

    def do(self, call: Callable[[], Any], meant: Callable[[], Any], cut: Cut = None) -> Any:
        """Make a call, and the model's; what it returned, or None where it was refused or cut."""
        before, refused, expected = deepcopy(self.fleet), None, None
        try:
            expected = meant()
        except Refused as error:
            refused = error.error
        self.store.cut_next(cut)
        try:
            got = call()
        except TuningError as error:
            if type(error) is DatabaseUnreachable and cut is not None:
                self.fleet = self.fleet if cut == "after" else before
            else:
                assert type(error) is refused, f"{error!r} instead of {refused}"
            return None
        finally:
            self.store.cut_next(None)
        assert refused is None, f"{got!r} instead of {refused}"
        is_right = expected(got) if callable(expected) else expected in (None, got)
        assert is_right, f"{got!r} instead of {expected}"
        return got

    def ask(self, worker: Worker, call: Callable[[Any], Any], meant: Any, cut: Cut) -> Any:
        """The same for a call of a worker: a server does not listen to one that was revoked."""
        if self.place.url is not None and worker.machine.is_revoked:
            meant = refusing(NotPermitted)
        return self.do(lambda: call(self.api(worker)), meant, cut)

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
        self.act(act, pick, cut)

    def act(self, name: str, pick: int, cut: Cut) -> None:
        """What a worker, a master, a person or the clock does."""
        if name not in OF_PEOPLE:
            return getattr(self, name)(pick, cut)
        call, *words = OF_PEOPLE[name]
        whose: Any = self.fleet.runs[pick % 2] if name in BECOMES else self._worker(pick).machine

        def meant() -> Any:
            if name in BECOMES:
                return whose.become(*BECOMES[name])
            return getattr(self.fleet, name)(whose)

        return self.do(lambda: getattr(self.store, call)(whose.name, *words), meant, cut)

    @invariant()
    def the_database_is_the_model(self) -> None:
        runs = self.sql("SELECT status, applied, epoch, master_id, theta FROM spsa_run ORDER BY id")
        assert [(*row[:-1], _value(row[-1])) for row in runs] == [r.row for r in self.fleet.runs]
        rows = self.sql(
            f"SELECT run_id, k, status, games_played, {_COUNTS}, void_games"  # noqa: S608
            " FROM spsa_iteration ORDER BY run_id, k"
        )
        assert rows == [i.row for run in self.fleet.runs for i in run.iterations]
        rows = self.sql(
            f"SELECT run_id, k, seq, b.status, attempt, claim_id, b.void_games, {_OF_B}"  # noqa: S608
            " FROM spsa_batch b JOIN spsa_iteration i ON i.id = b.iteration_id ORDER BY 1, 2, 3"
        )
        assert rows == [
            (*_place(b), b.status, b.attempt, b.claim, b.voids, *counts(b.tally)[1:])
            for b in self.fleet.batches
        ]
        voids = self.sql("SELECT host, sum(failed_void_games) FROM spsa_worker GROUP BY host")
        assert {name: int(n) for name, n in voids} == {
            machine.name: machine.voids for machine in self.fleet.machines.values()
        }

    # what a worker does

    def _worker(self, pick: int) -> Worker:
        return self.fleet.workers[pick % len(self.fleet.workers)]

    def claim(self, pick: int, cut: Cut = None) -> None:
        self.asked.append(f"c{len(self.asked)}")
        self._claim(self.asked[-1], pick, cut)

    def ask_again(self, pick: int, cut: Cut = None) -> None:
        """Also by another worker, which gets nothing of the first."""
        if self.asked:
            self._claim(self.asked[pick % len(self.asked)], pick, cut)

    def _claim(self, claim_id: str, pick: int, cut: Cut) -> None:
        worker, free = self._worker(pick), list[tuple[int, ...]]()

        def meant() -> Callable[[Any], bool]:
            found = self.fleet.claim(claim_id, self._worker(pick))
            free.extend(map(_place, found))
            return lambda got: (got is not None) == bool(found)

        call = methodcaller("claim", claim_id, worker.registered, LEASE)
        got = self.ask(worker, call, meant, cut)
        held = "SELECT run_id, k, seq, b.status FROM spsa_batch b JOIN spsa_iteration i"
        where = "ON i.id = b.iteration_id WHERE claim_id = :claim"
        for row in self.sql(f"{held} {where}", claim=claim_id):
            batch = self.fleet.runs[row.run_id - 1].iterations[row.k - 1].batches[row.seq]
            if batch.claim != claim_id and row.status == "leased":
                assert _place(batch) in free, f"{batch} is not free"
                assert cut != "before", "it was rolled back"
                batch.take(claim_id, self._worker(pick))
        if got is not None:
            now = self.fleet.of_claim(claim_id)
            assert now is not None and (got.seq, got.attempt) == (now.seq, now.attempt)
            assert (got.run_name, got.iteration_number) == (now.iteration.run.name, now.iteration.k)
            self.claims[claim_id] = got

    def _picked(self, pick: int) -> list[tuple[Claim, Worker]]:
        """One of the last claims that got a batch, if there is any."""
        lately = list(self.claims.values())[-6:]
        return [
            (claim, worker)
            for claim in (lately[pick % len(lately)] for _ in lately[:1])
            for worker in self.fleet.workers
            if worker.id == claim.worker_id
        ]

    def report(self, pick: int, cut: Cut = None, *, lie: int = 0, pairs: int = 2) -> None:
        """`pairs` other than 2 is not the number of the batch."""
        voids = pick % 3 if pairs == 2 else 0
        for claim, worker in self._picked(pick):
            tally = tally_of_seed(claim.seed + lie, pairs)
            result = BatchResult(tally=tally, voids={"crash": voids} if voids else {})
            meant = partial(self.fleet.report, claim.claim_id, worker, tally, voids)
            self.ask(worker, methodcaller("report", claim, result), meant, cut)

    def lie(self, pick: int, cut: Cut = None) -> None:
        self.report(pick, cut, lie=1)

    def report_of_another_batch(self, pick: int, cut: Cut = None) -> None:
        self.report(pick, cut, pairs=1 + 2 * (pick % 2))

    def forge(self, pick: int, cut: Cut = None) -> None:
        """A report by a claim that never was, or by a worker that does not hold the claim."""
        other, won = self._worker(pick), BatchResult(tally=Tally(4, 0, 0, (0, 0, 0, 0, 2)))
        for claim, worker in self._picked(pick):
            wrong = {"claim_id": "forged"} if other is worker else {"worker_id": other.id}
            forged = replace(claim, **wrong)  # type: ignore[arg-type]
            self.ask(other, methodcaller("report", forged, won), refusing(LeaseLost), cut)
            self.ask(other, methodcaller("release", forged), lambda: None, cut)
            failure = Failure(reason="no")
            self.ask(other, methodcaller("fail", forged, failure), lambda: None, cut)

    def speak_for_another(self, pick: int, cut: Cut = None) -> None:
        """A server does not believe that a worker is one of another machine."""
        worker, other = self._worker(pick), self._worker(pick // 4)
        if self.place.url is not None and worker.machine is not other.machine:
            theirs, refused = other.registered, refusing(NotPermitted)
            self.ask(worker, methodcaller("touch_worker", theirs, Measured()), refused, cut)
            self.ask(worker, methodcaller("claim", "stolen", theirs, LEASE), refused, cut)

    def release(self, pick: int, cut: Cut = None) -> None:
        for claim, worker in self._picked(pick):
            meant = partial(self.fleet.release, claim.claim_id, worker)
            self.ask(worker, methodcaller("release", claim), meant, cut)

    def fail(self, pick: int, cut: Cut = None) -> None:
        failure = Failure(reason="it broke", void_games=pick % 3)
        for claim, worker in self._picked(pick):
            meant = partial(self.fleet.fail, claim.claim_id, worker, pick % 3)
            self.ask(worker, methodcaller("fail", claim, failure), meant, cut)

    def renew(self, pick: int, cut: Cut = None) -> None:
        """All claims that were ever made, of which the worker's own are renewed."""
        worker = self._worker(pick)
        if self.asked:
            call = methodcaller("renew", worker.registered, self.asked, LEASE)
            self.ask(worker, call, partial(self.fleet.renew, worker), cut)

    def play(self, pick: int, cut: Cut = None) -> None:
        """What happens most of the time: a batch is claimed, played and reported."""
        self.claim(pick)
        self.report(-1, cut)

    def a_worker_sleeps_too_long(self, pick: int, cut: Cut = None) -> None:
        """A lease expires, another worker gets the batch, and the first one comes back."""
        self.a_lease_expires(pick)
        self.claim(pick)
        self.report(pick, cut)

    # what a master does, each on what it saw last

    def _master(self, pick: int) -> tuple[Run, str, MasterLease | None]:
        run, name = self.fleet.runs[pick % 2], NAMES[pick // 2 % 3]
        return run, name, self.leases.get((run.id, name))

    def become_master(self, pick: int, cut: Cut = None) -> None:
        run, name, old = self._master(pick)

        def meant() -> Callable[[Any], bool]:
            epoch = run.become_master(name)
            return lambda got: got.epoch == epoch

        got = self.do(lambda: self.store.acquire_master_lease(run.id, name, LEASE), meant, cut)
        if got is not None:
            self.replaced += [] if old is None else [old]
            self.leases[run.id, name] = got
            self.views.pop((run.id, name), None)

    def _write(self, pick: int, cut: Cut, call: Any, meant: Callable[[Run], Any]) -> Any:
        """A call of a master with its last lease, if it ever had one."""
        run, _, lease = self._master(pick)
        if lease is None:
            return None

        def held() -> Any:
            run.hold(lease.epoch)
            return meant(run)

        return self.do(lambda: call(lease), held, cut)

    def look(self, pick: int, cut: Cut = None) -> None:
        def meant(run: Run) -> Callable[[Any], bool]:
            run.is_expired = False
            statuses = [b.status for i in run.open for b in i.batches]
            shown = (run.status, run.applied, len(run.iterations), [i.k for i in run.open])
            gone = len(self.fleet.exhausted(run)) + bool(self.fleet.unplayed(run))
            shown += (statuses.count("failed"), 4 * statuses.count("leased"), gone)
            return lambda view: _shown(view) == shown

        view = self._write(pick, cut, lambda lease: self.store.tick(lease, LEASE), meant)
        if view is not None:
            run, name, _ = self._master(pick)
            self.views[run.id, name] = view
            if view.obstacles:
                self.pause_at_obstacles(pick, cut)

    def pause_at_obstacles(self, pick: int, cut: Cut = None) -> None:
        """Fail what no machine can play, if there still is any such batch."""
        self._write(pick, cut, self.store.pause_at_obstacles, self.fleet.pause_at_obstacles)

    def _seen(self, pick: int) -> Any:
        run, name, _ = self._master(pick)
        return self.views.get((run.id, name))

    def open(self, pick: int, cut: Cut = None) -> None:
        view = self._seen(pick)
        if view is None or view.opened >= ITERATIONS:
            return
        k, seen = view.opened + 1, view.run
        requires = Iteration(self._master(pick)[0], k).requires
        facts = {"k": k, "opened_on": seen.applied, "requires": requires}
        new = new_iteration(in_flight=IN_FLIGHT, max_attempts=ATTEMPTS, **facts)
        call = lambda lease: self.store.open_iteration(lease, new)  # noqa: E731
        self._write(pick, cut, call, lambda run: run.open_iteration(k, seen.applied))

    def apply(self, pick: int, cut: Cut = None, *, hasty: bool = False) -> None:
        """Move theta by the oldest open iteration, or, in haste, by any that is open."""
        view = self._seen(pick)
        found = [] if view is None else [i for i in view.open if hasty or i.is_played]
        if not found:
            return
        row = found[-1] if hasty else found[0]
        seen, step = step_from(view.run, row.tally)
        call = lambda lease: self.store.apply(lease, row.id, seen, step)  # noqa: E731
        self._write(pick, cut, call, lambda run: run.apply(row.k, seen.applied, step.theta))

    def apply_in_haste(self, pick: int, cut: Cut = None) -> None:
        self.apply(pick, cut, hasty=True)

    def move(self, pick: int, cut: Cut = None) -> None:
        """What a master does most of the time: look, and do what is next."""
        self.look(pick)
        self.apply(pick, cut)
        self.look(pick)
        self.open(pick, cut)

    def finish(self, pick: int, cut: Cut = None) -> None:
        self._write(pick, cut, self.store.finish, lambda run: run.finish())

    def resign(self, pick: int, cut: Cut = None) -> None:
        run, _, lease = self._master(pick)
        if lease is not None:
            call, epoch = self.store.release_master_lease, lease.epoch
            self.do(lambda: call(lease), lambda: run.resign(epoch), cut)

    def a_replaced_master_writes(self, pick: int, cut: Cut = None) -> None:
        """A master's process from before, also one of the same name, can do nothing any more."""
        if self.replaced:
            old = self.replaced[pick // 2 % len(self.replaced)]
            self.do(lambda: self.store.release_master_lease(old), lambda: None, cut)
            self.do(lambda: self.store.tick(old, LEASE), refusing(MasterLeaseLost), cut)

    # what people and the clock do, besides OF_PEOPLE

    def invite(self, pick: int, cut: Cut = None) -> None:
        """A machine that was revoked gets another token."""
        machine = self._worker(pick).machine
        token = self.do(lambda: self._invite(machine.name), lambda: self.fleet.invite(machine))
        machine.token = token or machine.token

    def a_machine_falls_silent(self, pick: int, cut: Cut = None) -> None:
        machine = self._worker(pick).machine
        update = "UPDATE spsa_worker SET last_seen_at = :old WHERE host = :machine"
        self.sql(update, old=OLD, machine=machine.name)
        machine.is_present = False

    def a_machine_comes_back(self, pick: int, cut: Cut = None) -> None:
        machine = self._worker(pick).machine

        def meant() -> Callable[[Any], bool]:
            machine.is_present = True
            return lambda got: (got is None) == (not machine.is_set_aside)

        for worker in self.fleet.workers:
            if worker.machine is machine:
                call = methodcaller("touch_worker", worker.registered, Measured(nps=1e6))
                self.ask(worker, call, meant, None)

    def a_lease_expires(self, pick: int, cut: Cut = None) -> None:
        for claim, worker in self._picked(pick):
            batch = self.fleet.of_claim(claim.claim_id, worker)
            if batch is not None and batch.status == "leased":
                self.sql.expire(claim.batch_id)
                batch.is_expired = True

    def a_master_lease_expires(self, pick: int, cut: Cut = None) -> None:
        run = self.fleet.runs[pick % 2]
        self.sql.expire(run_id=run.id)
        run.is_expired = run.master is not None


def _shown(view: RunView) -> tuple[Any, ...]:
    """What the model knows of a view."""
    open_ks = [iteration.k for iteration in view.open]
    counted = (len(view.failed), view.leased_games, len(view.obstacles))
    return (view.run.status, view.run.applied, view.opened, open_ks, *counted)


def _place(batch: Batch) -> tuple[int, ...]:
    return batch.iteration.run.id, batch.iteration.k, batch.seq


def _value(stored: Any) -> Any:
    """The value of a JSON column, which SQLite returns as text."""
    return json.loads(stored) if isinstance(stored, str) else stored


OF_PEOPLE: dict[str, tuple[str, ...]] = {
    "pause": ("pause", "me", "why"),
    "resume": ("resume", "me"),
    "stop": ("stop", "me", "why"),
    "revoke": ("revoke_machine", "me"),
    "withdraw": ("withdraw_batches", "me"),
    "set_aside": ("set_aside", "why", "me"),
    "release_machine": ("release_machine", "me"),
}
"""What they call, with what besides the name of a run or a machine; the model's name of it."""

BECOMES = {
    "pause": ("paused", "running"),
    "resume": ("running", "paused"),
    "stop": ("stopped", "running", "paused"),
}
"""The status of a run after a call and those that it may have before."""

OFTEN = ("claim", "report", "play", "play", "move", "move", "a_worker_sleeps_too_long", "resume")
RARELY = (
    *("ask_again", "forge", "speak_for_another", "lie", "release", "fail", "renew"),
    *("report_of_another_batch", "become_master", "open", "apply", "apply_in_haste", "finish"),
    *("resign", "look", "pause_at_obstacles", "a_replaced_master_writes"),
    *("a_master_lease_expires", "pause", "a_lease_expires"),
    *("revoke", "invite", "invite", "withdraw", "set_aside", "release_machine", "release_machine"),
    *("a_machine_falls_silent", "a_machine_comes_back", "a_machine_comes_back"),
)
ACTS = (*4 * (OFTEN * 3 + RARELY), "stop")  # after which nothing happens
