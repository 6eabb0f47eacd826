"""The protocol as it is meant, in plain Python: who may have which batch, and when a run gives up.

This is written anew, from docs/reliability.md; no code of the product decides anything here. A call
does what the store has to do, or raises `Refused` with the error that the store has to raise.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spsa.core.scoring import Tally
from spsa.errors import (
    IllegalTransition,
    LeaseLost,
    MasterLeaseLost,
    NameTaken,
    OutOfRange,
    ReportConflict,
    TooManyRequests,
    TuningError,
)
from spsa.protocol import RegisteredWorker

ATTEMPTS, ITERATIONS, IN_FLIGHT, MOST_HELD = 3, 3, 2, 4
OPEN = ("pending", "in_progress")


class Refused(Exception):
    def __init__(self, error: type[TuningError]) -> None:
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
    def registered(self) -> RegisteredWorker:
        return RegisteredWorker(id=self.id, machine=self.machine.name)

    def suits(self, iteration: "Iteration") -> bool:
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
    def holder(self) -> str | None:
        """The machine that has a lease, which may have expired."""
        return self.worker.machine.name if self.status == "leased" and self.worker else None

    @property
    def tried(self) -> int:
        """How many machines have tried it."""
        return len({*self.failures, *self.lost, self.holder} - {None})

    @property
    def is_there(self) -> bool:
        """Whether no machine plays it now."""
        return self.status == "ready" or (self.status == "leased" and self.is_expired)

    def take(self, claim: str, worker: Worker) -> None:
        if self.holder is not None:
            self.lost[self.holder] += 1
        self.status, self.claim, self.worker, self.is_expired = "leased", claim, worker, False
        self.attempt += 1
        self.iteration.status = "in_progress"

    def give_back(self, status: str = "ready", attempts: int = 0) -> None:
        self.status, self.claim, self.is_expired = status, None, False
        self.attempt -= attempts

    def tried_by_nobody(self) -> None:
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
    def requires(self) -> tuple[str, ...]:
        return () if self.k % 2 else ("fast",)

    @property
    def is_played(self) -> bool:
        return all(batch.status == "done" for batch in self.batches)

    @property
    def row(self) -> tuple[Any, ...]:
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
    def open(self) -> list[Iteration]:
        return [iteration for iteration in self.iterations if iteration.status in OPEN]

    @property
    def batches(self) -> list[Batch]:
        return [batch for iteration in self.iterations for batch in iteration.batches]

    @property
    def row(self) -> tuple[Any, ...]:
        theta = dict(self.theta)
        return (self.status, self.applied, self.epoch, self.master, theta)

    def become_master(self, name: str) -> int:
        if not (self.master in (None, name) or self.is_expired):
            raise Refused(MasterLeaseLost)
        self.epoch, self.master, self.is_expired = self.epoch + 1, name, False
        return self.epoch

    def hold(self, epoch: int) -> None:
        """A master writes, or looks, with the lease of this epoch."""
        if self.master is None or epoch != self.epoch:
            raise Refused(MasterLeaseLost)

    def resign(self, epoch: int) -> None:
        if epoch == self.epoch:
            self.master = None

    def open_iteration(self, k: int, seen_applied: int) -> int:
        if k > len(self.iterations):
            is_timely = max(0, k - IN_FLIGHT) <= seen_applied <= self.applied
            if self.status != "running" or not is_timely:
                raise Refused(IllegalTransition)
            iteration = Iteration(self, k)
            iteration.batches = [Batch(iteration, 0), Batch(iteration, 1)]
            self.iterations.append(iteration)
        return k

    def apply(self, k: int, seen_applied: int, theta: Any) -> None:
        iteration = self.iterations[k - 1]
        is_next = seen_applied == self.applied == k - 1
        if not (is_next and iteration.is_played and iteration.status == "in_progress"):
            raise Refused(IllegalTransition)
        self.applied, self.theta, iteration.status = k, theta, "complete"

    def finish(self) -> None:
        if self.applied < ITERATIONS:
            raise Refused(IllegalTransition)
        self.become("finished", "running")

    def become(self, status: str, *before: str) -> None:
        if self.status not in before:
            raise Refused(IllegalTransition)
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
    def machines(self) -> Mapping[str, Machine]:
        return {worker.machine.name: worker.machine for worker in self.workers}

    @property
    def batches(self) -> list[Batch]:
        return [batch for run in self.runs for batch in run.batches]

    def of_claim(self, claim: str, worker: Worker | None = None) -> Batch | None:
        """The batch that a claim (of this worker) has, or has reported."""
        found = (b for b in self.batches if b.claim == claim and worker in (None, b.worker))
        return next(found, None)

    def held(self, worker: Worker) -> list[Batch]:
        return [b for b in self.batches if b.status == "leased" and b.worker is worker]

    def claim(self, claim: str, worker: Worker) -> list[Batch]:
        """The batches one of which a claim gets."""
        known = self.of_claim(claim)
        if known is not None and known.status == "leased" and known.worker is worker:
            return [known]
        if known is not None:
            raise Refused(LeaseLost)
        if len(self.held(worker)) >= MOST_HELD:
            raise Refused(TooManyRequests)
        firsts = []
        for run in self.runs:
            free = [b for b in run.batches if run.status == "running" and self.is_free(worker, b)]
            firsts += sorted(free, key=_order)[:1]
        return firsts

    def report(self, claim: str, worker: Worker, tally: Tally, voids: int) -> str:
        batch = self.of_claim(claim, worker)
        if batch is None:
            raise Refused(LeaseLost)
        if batch.status == "done":
            if tally != batch.tally:
                raise Refused(ReportConflict)
            return "already"
        if tally.games != 4:
            raise Refused(OutOfRange)
        if batch.iteration.status != "in_progress":
            raise Refused(LeaseLost)
        batch.status, batch.is_expired, batch.tally = "done", False, tally
        batch.voids += voids
        return "accepted"

    def release(self, claim: str, worker: Worker) -> None:
        batch = self.of_claim(claim, worker)
        if batch is not None and batch.status == "leased":
            batch.give_back(attempts=1)

    def fail(self, claim: str, worker: Worker, voids: int) -> None:
        batch = self.of_claim(claim, worker)
        if batch is not None and batch.status == "leased":
            batch.voids += voids
            worker.machine.voids += voids
            batch.failures[worker.machine.name] += 1
            batch.give_back()

    def renew(self, worker: Worker) -> set[str | None]:
        held = [b for b in self.held(worker) if b.iteration.status == "in_progress"]
        for batch in held:
            batch.is_expired = False
        return {batch.claim for batch in held}

    def able(self, iteration: Iteration) -> list[Worker]:
        """The workers that are there and may play an iteration."""
        return [w for w in self.workers if w.machine.is_present and w.suits(iteration)]

    def has_given_up(self, worker: Worker, batch: Batch) -> bool:
        """Whether the worker's machine is done with a batch."""
        name = worker.machine.name
        tries = batch.failures[name] + batch.lost[name] + (batch.holder == name)
        others = any(w.machine is not worker.machine for w in self.able(batch.iteration))
        return tries >= ATTEMPTS or (batch.failures[name] > 0 and others)

    def is_free(self, worker: Worker, batch: Batch) -> bool:
        """Whether a worker may claim a batch."""
        iteration = batch.iteration
        if not (batch.is_there and worker.suits(iteration) and iteration.status in OPEN):
            return False
        if batch.attempt == 0:
            return True
        return batch.tried < ATTEMPTS and not self.has_given_up(worker, batch)

    def exhausted(self, run: Run) -> list[Batch]:
        """The batches that no machine may claim any more."""
        tried = [b for i in run.open for b in i.batches if b.attempt > 0 and b.is_there]
        return [batch for batch in tried if self._is_exhausted(batch)]

    def _is_exhausted(self, batch: Batch) -> bool:
        able = self.able(batch.iteration)
        all_gave_up = bool(able) and all(self.has_given_up(w, batch) for w in able)
        return all_gave_up or (batch.tried >= ATTEMPTS and batch.tried > 1)

    def unplayed(self, run: Run) -> list[Batch]:
        """What the machines failed, if each that is there failed three and none played any."""
        failed = [batch for batch in run.batches if batch.failures]
        by_machine = Counter(name for batch in failed for name in batch.failures)
        there = {worker.machine.name for worker in self.workers if worker.machine.is_present}
        played = [b for batch in failed for b in batch.iteration.batches if b.status == "done"]
        is_all = bool(failed) and min(by_machine.values()) >= 3 and there <= by_machine.keys()
        return failed if is_all and not played and run.status == "running" else []

    def pause_at_obstacles(self, run: Run) -> None:
        gone = {*self.exhausted(run), *self.unplayed(run)}
        if not gone:
            raise Refused(IllegalTransition)
        for batch in gone:
            if batch.status != "failed":
                batch.give_back("failed")
        run.status = "paused" if run.status == "running" else run.status

    def withdraw(self, machine: Machine) -> int:
        """Take back what a machine holds; how many batches."""
        its = [b for b in self.batches if b.holder == machine.name and b.iteration.status in OPEN]
        for batch in its:
            batch.give_back(attempts=1)
        return len(its)

    def revoke(self, machine: Machine) -> int:
        machine.is_revoked = True
        return self.withdraw(machine)

    def invite(self, machine: Machine) -> None:
        if not machine.is_revoked:
            raise Refused(NameTaken)
        machine.is_revoked = False

    def set_aside(self, machine: Machine) -> bool:
        was, machine.is_set_aside = machine.is_set_aside, True
        return not was

    def release_machine(self, machine: Machine) -> bool:
        was, machine.is_set_aside, machine.voids = machine.is_set_aside, False, 0
        for batch in self.batches:
            batch.failures.pop(machine.name, None)
            batch.lost.pop(machine.name, None)
        return was


def counts(tally: Tally) -> tuple[int, ...]:
    return (tally.games, tally.wins, tally.losses, tally.draws, *tally.pentanomial)


def _order(batch: Batch) -> tuple[int, bool, bool, int]:
    """The oldest iteration first; in it what was left by a machine, then what was tried before."""
    return (batch.iteration.k, batch.attempt == 0, batch.status == "ready", batch.seq)
