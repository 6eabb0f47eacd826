"""The protocol as it is meant, and what drives a real database and this model with the same calls.

Workers report late or twice, lie, and claim what others have; responses are lost before or after
the commit; masters act on what they saw long ago; people pause and revoke; time passes.
After each call the database has to be what the model says, and no invariant may be broken.

The workers' calls go to the database, or over HTTP to a server. The model is written anew, from
docs/reliability.md: no code of the product decides anything in it. A call of it does what the store
has to do, or raises `Refused` with the error that the store has to raise.

The short form takes seconds; SPSA_TEST_LONG=1 searches through 1,000 histories each way,
SPSA_TEST_EXAMPLES=n through n, and SPSA_TEST_SEED=n repeats a search.
"""

import json
import os
import re
from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from operator import methodcaller
from pathlib import Path
from random import Random
from typing import Any

import pytest
from asking import RemoteStore
from builders import LEASE, new_iteration, new_run, new_worker, step_from, tally_of_seed
from cutting import Cut, CutStore
from hypothesis import HealthCheck, note, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from served import serving
from shell import Shell, broken

from spsa import errors
from spsa.core.scoring import Tally
from spsa.db.migrate import metadata
from spsa.db.run_view import MasterLease
from spsa.lifecycle import MachineRole
from spsa.master.decide import Pause, upkeep
from spsa.protocol import BatchResult, Claim, Failure, Measured, RegisteredWorker

ATTEMPTS, ITERATIONS, IN_FLIGHT, MOST_HELD = 3, 3, 2, 4
OPEN = ("pending", "in_progress")


class Refused(Exception):
    def __init__(self, error):
        self.error = error


@dataclass
class Machine:
    """A machine that was invited; `voids` are void games of batches that it failed."""

    name: str
    token: str
    is_present: bool = True
    is_set_aside: bool = False
    is_revoked: bool = False
    voids: int = 0


@dataclass
class Worker:
    """A worker with one slot; `id` is that of its row."""

    machine: Machine
    provides: tuple[str, ...]
    id: int = 0

    @property
    def registered(self):
        return RegisteredWorker(id=self.id, machine=self.machine.name)

    def suits(self, iteration):
        """Whether it may be given batches of an iteration."""
        may = not (self.machine.is_set_aside or self.machine.is_revoked)
        return may and set(iteration.requires) <= set(self.provides)


@dataclass(eq=False)
class Batch:
    """What is true of one batch of two pairs; `claim` has it, or has reported it."""

    iteration: "Iteration"
    seq: int
    status: str = "ready"
    attempt: int = 0
    claim: str | None = None
    worker: Worker | None = None
    is_expired: bool = False
    tally: Tally = field(default_factory=Tally)
    voids: int = 0
    failures: Counter[str] = field(default_factory=Counter)  # by machine
    lost: Counter[str] = field(default_factory=Counter)  # leases

    @property
    def holder(self):
        """The machine that has a lease, which may have expired."""
        return self.worker.machine.name if self.status == "leased" and self.worker else None

    @property
    def tried(self):
        """How many machines have tried it."""
        return len({*self.failures, *self.lost, self.holder} - {None})

    @property
    def is_there(self):
        """Whether no machine plays it now."""
        return self.status == "ready" or (self.status == "leased" and self.is_expired)

    def take(self, claim, worker):
        if self.holder is not None:
            self.lost[self.holder] += 1
        self.status, self.claim, self.worker, self.is_expired = "leased", claim, worker, False
        self.attempt += 1
        self.iteration.status = "in_progress"

    def give_back(self, status="ready", attempts=0):
        self.status, self.claim, self.is_expired = status, None, False
        self.attempt -= attempts

    def tried_by_nobody(self):
        self.give_back(attempts=self.attempt)
        self.failures.clear()
        self.lost.clear()


@dataclass(eq=False)
class Iteration:
    """Iteration k of a run, of two batches."""

    run: "Run"
    k: int
    status: str = "pending"
    batches: list[Batch] = field(default_factory=list)

    @property
    def requires(self):
        return () if self.k % 2 else ("fast",)

    @property
    def is_played(self):
        return all(batch.status == "done" for batch in self.batches)

    @property
    def row(self):
        """What its row in the database has to say."""
        tally = sum((batch.tally for batch in self.batches), Tally())
        voids = sum(batch.voids for batch in self.batches)
        return (self.run.id, self.k, self.status, *counts(tally), voids)


@dataclass(eq=False)
class Run:
    """A run; `master` is who holds it, in its `epoch`."""

    id: int
    name: str
    theta: Any
    status: str = "running"
    applied: int = 0
    epoch: int = 0
    master: str | None = None
    is_expired: bool = False
    iterations: list[Iteration] = field(default_factory=list)

    @property
    def open(self):
        return [iteration for iteration in self.iterations if iteration.status in OPEN]

    @property
    def batches(self):
        return [batch for iteration in self.iterations for batch in iteration.batches]

    @property
    def row(self):
        return (self.status, self.applied, self.epoch, self.master, dict(self.theta))

    def become_master(self, name):
        if not (self.master in (None, name) or self.is_expired):
            raise Refused(errors.MasterLeaseLost)
        self.epoch, self.master, self.is_expired = self.epoch + 1, name, False
        return self.epoch

    def hold(self, epoch):
        """A master writes, or looks, with the lease of this epoch."""
        if self.master is None or epoch != self.epoch:
            raise Refused(errors.MasterLeaseLost)

    def resign(self, epoch):
        if epoch == self.epoch:
            self.master = None

    def open_iteration(self, k, seen_applied):
        if k > len(self.iterations):
            is_timely = max(0, k - IN_FLIGHT) <= seen_applied <= self.applied
            if self.status != "running" or not is_timely:
                raise Refused(errors.IllegalTransition)
            iteration = Iteration(self, k)
            iteration.batches = [Batch(iteration, 0), Batch(iteration, 1)]
            self.iterations.append(iteration)
        return k

    def apply(self, k, seen_applied, theta):
        iteration = self.iterations[k - 1]
        is_next = seen_applied == self.applied == k - 1
        if not (is_next and iteration.is_played and iteration.status == "in_progress"):
            raise Refused(errors.IllegalTransition)
        self.applied, self.theta, iteration.status = k, theta, "complete"

    def finish(self):
        if self.applied < ITERATIONS:
            raise Refused(errors.IllegalTransition)
        self.become("finished", "running")

    def become(self, status, *before):
        if self.status not in before:
            raise Refused(errors.IllegalTransition)
        if status == "running":
            for batch in self.batches:
                if batch.status == "failed":
                    batch.tried_by_nobody()
        if status == "stopped":
            for iteration in self.open:
                iteration.status = "abandoned"
        self.status = status


@dataclass
class Fleet:
    """All runs and workers, and the calls that concern more than one of them."""

    runs: list[Run] = field(default_factory=list)
    workers: list[Worker] = field(default_factory=list)

    @property
    def machines(self):
        return {worker.machine.name: worker.machine for worker in self.workers}

    @property
    def batches(self):
        return [batch for run in self.runs for batch in run.batches]

    def of_claim(self, claim, worker=None):
        """The batch that a claim (of this worker) has, or has reported."""
        found = (b for b in self.batches if b.claim == claim and worker in (None, b.worker))
        return next(found, None)

    def held(self, worker):
        return [b for b in self.batches if b.status == "leased" and b.worker is worker]

    def claim(self, claim, worker):
        """The batches one of which a claim gets."""
        known = self.of_claim(claim)
        if known is not None and known.status == "leased" and known.worker is worker:
            return [known]
        if known is not None:
            raise Refused(errors.LeaseLost)
        if len(self.held(worker)) >= MOST_HELD:
            raise Refused(errors.TooManyRequests)
        firsts = []
        for run in self.runs:
            free = [b for b in run.batches if run.status == "running" and self.is_free(worker, b)]
            firsts += sorted(free, key=_order)[:1]
        return firsts

    def report(self, claim, worker, tally, voids):
        batch = self.of_claim(claim, worker)
        if batch is None:
            raise Refused(errors.LeaseLost)
        if batch.status == "done":
            if tally != batch.tally:
                raise Refused(errors.ReportConflict)
            return "already"
        if batch.iteration.status != "in_progress":
            raise Refused(errors.LeaseLost)
        batch.status, batch.is_expired, batch.tally = "done", False, tally
        batch.voids += voids
        return "accepted"

    def release(self, claim, worker):
        batch = self.of_claim(claim, worker)
        if batch is not None and batch.status == "leased":
            batch.give_back(attempts=1)

    def fail(self, claim, worker, voids):
        batch = self.of_claim(claim, worker)
        if batch is not None and batch.status == "leased":
            batch.voids += voids
            worker.machine.voids += voids
            batch.failures[worker.machine.name] += 1
            batch.give_back()

    def renew(self, worker):
        held = [b for b in self.held(worker) if b.iteration.status == "in_progress"]
        for batch in held:
            batch.is_expired = False
        return {batch.claim for batch in held}

    def able(self, iteration):
        """The workers that are there and may play an iteration."""
        return [w for w in self.workers if w.machine.is_present and w.suits(iteration)]

    def has_given_up(self, worker, batch):
        """Whether the worker's machine is done with a batch."""
        name = worker.machine.name
        tries = batch.failures[name] + batch.lost[name] + (batch.holder == name)
        others = any(w.machine is not worker.machine for w in self.able(batch.iteration))
        return tries >= ATTEMPTS or (batch.failures[name] > 0 and others)

    def is_free(self, worker, batch):
        """Whether a worker may claim a batch."""
        iteration = batch.iteration
        if not (batch.is_there and worker.suits(iteration) and iteration.status in OPEN):
            return False
        if batch.attempt == 0:
            return True
        return batch.tried < ATTEMPTS and not self.has_given_up(worker, batch)

    def exhausted(self, run):
        """The batches that no machine may claim any more."""
        tried = [b for i in run.open for b in i.batches if b.attempt > 0 and b.is_there]
        return [batch for batch in tried if self._is_exhausted(batch)]

    def _is_exhausted(self, batch):
        able = self.able(batch.iteration)
        all_gave_up = bool(able) and all(self.has_given_up(w, batch) for w in able)
        return all_gave_up or (batch.tried >= ATTEMPTS and batch.tried > 1)

    def unplayed(self, run):
        """What the machines failed, if each that is there failed three and none played any."""
        failed = [batch for batch in run.batches if batch.failures]
        by_machine = Counter(name for batch in failed for name in batch.failures)
        there = {worker.machine.name for worker in self.workers if worker.machine.is_present}
        played = [b for batch in failed for b in batch.iteration.batches if b.status == "done"]
        is_all = bool(failed) and min(by_machine.values()) >= 3 and there <= by_machine.keys()
        return failed if is_all and not played and run.status == "running" else []

    def pause_at_obstacles(self, run):
        for batch in {*self.exhausted(run), *self.unplayed(run)}:
            if batch.status != "failed":
                batch.give_back("failed")
        run.status = "paused" if run.status == "running" else run.status

    def withdraw(self, machine):
        """Take back what a machine holds; how many batches."""
        its = [b for b in self.batches if b.holder == machine.name and b.iteration.status in OPEN]
        for batch in its:
            batch.give_back(attempts=1)
        return len(its)

    def revoke(self, machine):
        machine.is_revoked = True
        return self.withdraw(machine)

    def invite(self, machine):
        if not machine.is_revoked:
            raise Refused(errors.NameTaken)
        machine.is_revoked = False

    def set_aside(self, machine):
        was, machine.is_set_aside = machine.is_set_aside, True
        return not was

    def release_machine(self, machine):
        was, machine.is_set_aside, machine.voids = machine.is_set_aside, False, 0
        for batch in self.batches:
            batch.failures.pop(machine.name, None)
            batch.lost.pop(machine.name, None)
        return was


def counts(tally):
    return (tally.games, tally.wins, tally.losses, tally.draws, *tally.pentanomial)


def _order(batch):
    """The oldest iteration first; in it what was left by a machine, then what was tried before."""
    return (batch.iteration.k, batch.attempt == 0, batch.status == "ready", batch.seq)


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

    def empty(self):
        names = [table.name for table in reversed(metadata.sorted_tables)]
        if self.sql.dialect == "postgresql":
            self.sql(f"TRUNCATE {', '.join(names)} RESTART IDENTITY CASCADE")
        else:
            for name in names:
                self.sql(f"DELETE FROM {name}")  # noqa: S608
        self.store._details.clear()  # ids begin at 1 again, which no database does


def refusing(error):
    def refuse():
        raise Refused(error)

    return refuse


class ProtocolMachine(RuleBasedStateMachine):
    """See the module. An act has a number, which says who does it to what, and where it is cut."""

    place: Place

    def __init__(self):
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

    def teardown(self):
        for api in self.apis.values():
            api.close()
        assert broken(self.sql) == []

    def _invite(self, name):
        return self.store.invite_machine(name, MachineRole.WORKER, "owner")

    def api(self, worker):
        """What a worker calls."""
        if self.place.url is None:
            return self.store
        token = worker.machine.token
        if token not in self.apis:
            self.apis[token] = RemoteStore(self.place.url, token)
        return self.apis[token]

    def do(self, call, meant, cut=None):
        """Make a call, and the model's; what it returned, or None where it was refused or cut."""
        before, refused, expected = deepcopy(self.fleet), None, None
        try:
            expected = meant()
        except Refused as error:
            refused = error.error
        self.store.cut_next(cut)
        try:
            got = call()
        except errors.TuningError as error:
            if type(error) is errors.DatabaseUnreachable and cut is not None:
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

    def ask(self, worker, call, meant, cut):
        """The same for a call of a worker: a server does not listen to one that was revoked."""
        if self.place.url is not None and worker.machine.is_revoked:
            meant = refusing(errors.NotPermitted)
        return self.do(lambda: call(self.api(worker)), meant, cut)

    @initialize()
    def begin(self):
        """Nothing can go wrong before an iteration is open."""
        self.become_master(0)
        self.move(0)

    @rule(chance=st.integers(0, (1 << 64) - 1))
    def something_happens(self, chance):
        """`chance` decides what, who does it to what, and where the call is cut off."""
        dice = Random(chance)  # even odds; hypothesis alone prefers the first words of a list
        act, pick, cut = dice.choice(ACTS), dice.randrange(1 << 16), dice.choice(CUTS)
        note(f"{act}({pick}, {cut!r})")
        self.act(act, pick, cut)

    def act(self, name, pick, cut):
        """What a worker, a master, a person or the clock does."""
        if name not in OF_PEOPLE:
            return getattr(self, name)(pick, cut)
        call, *words = OF_PEOPLE[name]
        whose: Any = self.fleet.runs[pick % 2] if name in BECOMES else self._worker(pick).machine

        def meant():
            if name in BECOMES:
                return whose.become(*BECOMES[name])
            return getattr(self.fleet, name)(whose)

        return self.do(lambda: getattr(self.store, call)(whose.name, *words), meant, cut)

    @invariant()
    def the_database_is_the_model(self):
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

    def _worker(self, pick):
        return self.fleet.workers[pick % len(self.fleet.workers)]

    def claim(self, pick, cut=None):
        self.asked.append(f"c{len(self.asked)}")
        self._claim(self.asked[-1], pick, cut)

    def ask_again(self, pick, cut=None):
        """Also by another worker, which gets nothing of the first."""
        if self.asked:
            self._claim(self.asked[pick % len(self.asked)], pick, cut)

    def _claim(self, claim_id, pick, cut):
        worker, free = self._worker(pick), list[tuple[int, ...]]()

        def meant():
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

    def _picked(self, pick):
        """One of the last claims that got a batch, if there is any."""
        lately = list(self.claims.values())[-6:]
        return [
            (claim, worker)
            for claim in (lately[pick % len(lately)] for _ in lately[:1])
            for worker in self.fleet.workers
            if worker.id == claim.worker_id
        ]

    def report(self, pick, cut=None, *, lie=0):
        voids = pick % 3
        for claim, worker in self._picked(pick):
            tally = tally_of_seed(claim.seed + lie, 2)
            result = BatchResult(tally=tally, voids={"crash": voids} if voids else {})
            meant = partial(self.fleet.report, claim.claim_id, worker, tally, voids)
            self.ask(worker, methodcaller("report", claim, result), meant, cut)

    def lie(self, pick, cut=None):
        self.report(pick, cut, lie=1)

    def release(self, pick, cut=None):
        for claim, worker in self._picked(pick):
            meant = partial(self.fleet.release, claim.claim_id, worker)
            self.ask(worker, methodcaller("release", claim), meant, cut)

    def fail(self, pick, cut=None):
        failure = Failure(reason="it broke", void_games=pick % 3)
        for claim, worker in self._picked(pick):
            meant = partial(self.fleet.fail, claim.claim_id, worker, pick % 3)
            self.ask(worker, methodcaller("fail", claim, failure), meant, cut)

    def renew(self, pick, cut=None):
        """All claims that were ever made, of which the worker's own are renewed."""
        worker = self._worker(pick)
        if self.asked:
            call = methodcaller("renew", worker.registered, self.asked, LEASE)
            self.ask(worker, call, partial(self.fleet.renew, worker), cut)

    def play(self, pick, cut=None):
        """What happens most of the time: a batch is claimed, played and reported."""
        self.claim(pick)
        self.report(-1, cut)

    def a_worker_sleeps_too_long(self, pick, cut=None):
        """A lease expires, another worker gets the batch, and the first one comes back."""
        self.a_lease_expires(pick)
        self.claim(pick)
        self.report(pick, cut)

    # what a master does, each on what it saw last

    def _master(self, pick):
        run, name = self.fleet.runs[pick % 2], NAMES[pick // 2 % 3]
        return run, name, self.leases.get((run.id, name))

    def become_master(self, pick, cut=None):
        run, name, old = self._master(pick)

        def meant():
            epoch = run.become_master(name)
            return lambda got: got.epoch == epoch

        got = self.do(lambda: self.store.acquire_master_lease(run.id, name, LEASE), meant, cut)
        if got is not None:
            self.replaced += [] if old is None else [old]
            self.leases[run.id, name] = got
            self.views.pop((run.id, name), None)

    def _write(self, pick, cut, call, meant):
        """A call of a master with its last lease, if it ever had one."""
        run, _, lease = self._master(pick)
        if lease is None:
            return None

        def held():
            run.hold(lease.epoch)
            return meant(run)

        return self.do(lambda: call(lease), held, cut)

    def look(self, pick, cut=None):
        def meant(run):
            run.is_expired = False
            statuses = [b.status for i in run.open for b in i.batches]
            shown = (run.status, run.applied, len(run.iterations), [i.k for i in run.open])
            gone = len({*self.fleet.exhausted(run), *self.fleet.unplayed(run)})
            shown += (statuses.count("failed"), statuses.count("leased"), gone)
            return lambda view: _shown(view) == shown

        view = self._write(pick, cut, lambda lease: self.store.tick(lease, LEASE), meant)
        if view is not None:
            run, name, _ = self._master(pick)
            self.views[run.id, name] = view
            if isinstance(needed := upkeep(view), Pause):
                seen = (view, needed.reasons, needed.batch_ids)
                self._write(
                    pick,
                    cut,
                    lambda lease: self.store.pause_at_obstacles(lease, *seen),
                    self.fleet.pause_at_obstacles,
                )

    def _seen(self, pick):
        run, name, _ = self._master(pick)
        return self.views.get((run.id, name))

    def open(self, pick, cut=None):
        view = self._seen(pick)
        if view is None or view.opened >= ITERATIONS:
            return
        k, seen = view.opened + 1, view.run
        requires = Iteration(self._master(pick)[0], k).requires
        facts = {"k": k, "opened_on": seen.applied, "requires": requires}
        new = new_iteration(in_flight=IN_FLIGHT, max_attempts=ATTEMPTS, **facts)
        call = lambda lease: self.store.open_iteration(lease, new)  # noqa: E731
        self._write(pick, cut, call, lambda run: run.open_iteration(k, seen.applied))

    def apply(self, pick, cut=None, *, hasty=False):
        """Move theta by the oldest open iteration, or, in haste, by any that is open."""
        view = self._seen(pick)
        found = [] if view is None else [i for i in view.open if hasty or i.is_played]
        if not found:
            return
        row = found[-1] if hasty else found[0]
        seen, step = step_from(view.run, row.tally)
        call = lambda lease: self.store.apply(lease, row.id, seen, step)  # noqa: E731
        self._write(pick, cut, call, lambda run: run.apply(row.k, seen.applied, step.theta))

    def apply_in_haste(self, pick, cut=None):
        self.apply(pick, cut, hasty=True)

    def move(self, pick, cut=None):
        """What a master does most of the time: look, and do what is next."""
        self.look(pick)
        self.apply(pick, cut)
        self.look(pick)
        self.open(pick, cut)

    def finish(self, pick, cut=None):
        self._write(pick, cut, self.store.finish, lambda run: run.finish())

    def resign(self, pick, cut=None):
        run, _, lease = self._master(pick)
        if lease is not None:
            call, epoch = self.store.release_master_lease, lease.epoch
            self.do(lambda: call(lease), lambda: run.resign(epoch), cut)

    def a_replaced_master_writes(self, pick, cut=None):
        """A master's process from before, also one of the same name, can do nothing any more."""
        if self.replaced:
            old = self.replaced[pick // 2 % len(self.replaced)]
            self.do(lambda: self.store.release_master_lease(old), lambda: None, cut)
            self.do(lambda: self.store.tick(old, LEASE), refusing(errors.MasterLeaseLost), cut)

    # what people and the clock do, besides OF_PEOPLE

    def invite(self, pick, cut=None):
        """A machine that was revoked gets another token."""
        machine = self._worker(pick).machine
        token = self.do(lambda: self._invite(machine.name), lambda: self.fleet.invite(machine))
        machine.token = token or machine.token

    def a_machine_falls_silent(self, pick, cut=None):
        machine = self._worker(pick).machine
        update = "UPDATE spsa_worker SET last_seen_at = :old WHERE host = :machine"
        self.sql(update, old=OLD, machine=machine.name)
        machine.is_present = False

    def a_machine_comes_back(self, pick, cut=None):
        machine = self._worker(pick).machine

        def meant():
            machine.is_present = True
            return lambda got: (got is None) == (not machine.is_set_aside)

        for worker in self.fleet.workers:
            if worker.machine is machine:
                call = methodcaller("touch_worker", worker.registered, Measured(nps=1e6))
                self.ask(worker, call, meant, None)

    def a_lease_expires(self, pick, cut=None):
        for claim, worker in self._picked(pick):
            batch = self.fleet.of_claim(claim.claim_id, worker)
            if batch is not None and batch.status == "leased":
                self.sql.expire(claim.batch_id)
                batch.is_expired = True

    def a_master_lease_expires(self, pick, cut=None):
        run = self.fleet.runs[pick % 2]
        self.sql.expire(run_id=run.id)
        run.is_expired = run.master is not None


def _shown(view):
    """What the model knows of a view."""
    open_ks = [iteration.k for iteration in view.open]
    needed = upkeep(view)
    gone = len(needed.batch_ids) if isinstance(needed, Pause) else 0
    counted = (len(view.failed), view.leased_batches, gone)
    return (view.run.status, view.run.applied, view.opened, open_ks, *counted)


def _place(batch):
    return batch.iteration.run.id, batch.iteration.k, batch.seq


def _value(stored):
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
    *("ask_again", "lie", "release", "fail", "renew"),
    *("become_master", "open", "apply", "apply_in_haste", "finish"),
    *("resign", "look", "a_replaced_master_writes"),
    *("a_master_lease_expires", "pause", "a_lease_expires"),
    *("revoke", "invite", "invite", "withdraw", "set_aside", "release_machine", "release_machine"),
    *("a_machine_falls_silent", "a_machine_comes_back", "a_machine_comes_back"),
)
ACTS = (*4 * (OFTEN * 3 + RARELY), "stop")  # after which nothing happens
LONG = bool(os.environ.get("SPSA_TEST_LONG"))
SEED = os.environ.get("SPSA_TEST_SEED")
EXAMPLES = int(os.environ.get("SPSA_TEST_EXAMPLES", 1_000 if LONG else 6))
SEARCH = settings(
    max_examples=EXAMPLES,
    stateful_step_count=60,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
_TEXT = Path(__file__).with_name("stories.txt").read_text(encoding="utf-8")
STORIES = dict(re.findall(r"^(\w.*)\n((?: .*\n)+)", _TEXT, re.MULTILINE))


@pytest.fixture(scope="module")
def database(shared_database_url):
    with CutStore(shared_database_url) as store:
        shell = Shell(shared_database_url)
        yield Place(store, shell)
        shell.close()


@pytest.fixture(scope="module", params=["direct", "remote"])
def place(request, database):
    if request.param == "direct":
        yield database
    else:
        with serving(database.store) as url:
            yield Place(database.store, database.sql, url)


def machine_at(place):
    """The model in a place; a class of its own, because a seed sticks to it."""
    chosen = type("Chosen", (ProtocolMachine,), {"place": place})
    return chosen if SEED is None else seeded(int(SEED))(chosen)


@pytest.mark.slow_on("direct-postgresql", "remote-sqlite")
@pytest.mark.timeout(max(300, 6 * EXAMPLES))
def test_any_history_leaves_the_database_as_it_should_be(place):
    run_state_machine_as_test(machine_at(place), settings=SEARCH)


@pytest.mark.slow_on("direct-postgresql", "remote-sqlite")
@pytest.mark.parametrize("story", STORIES)
def test_a_story_goes_as_it_should(story, place):
    told = machine_at(place)()
    try:
        told.begin()
        for word in STORIES[story].split():
            act, _, how = word.partition(":")
            pick, _, cut = how.partition("/")
            told.act(act, int(pick or 0), cut or None)
            told.the_database_is_the_model()
    finally:
        told.teardown()
