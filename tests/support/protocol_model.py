"""The protocol as it is meant, in plain Python: who may have which batch, and when a run gives up.

This is written anew, from docs/reliability.md; no code of the product decides anything here.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from spsa.core.scoring import Tally

ATTEMPTS, ITERATIONS, IN_FLIGHT, MOST_HELD = 3, 3, 2, 4
OPEN = ("pending", "in_progress")


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
    takes_first: bool = True

    def suits(self, iteration: "Iteration") -> bool:
        """Whether it may be given batches of an iteration."""
        machine, run = self.machine, iteration.run
        may = not (machine.is_set_aside or machine.is_revoked)
        takes = self.takes_first or run.name != "first"
        return may and takes and set(iteration.requires) <= set(self.provides)


@dataclass
class Batch:
    """What is true of one batch; `claim` has it, or has reported it."""

    iteration: "Iteration"
    id: int
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
        is_leased = self.status == "leased" and self.worker is not None
        return self.worker.machine.name if is_leased and self.worker else None

    @property
    def tried(self) -> int:
        """How many machines have tried it."""
        machines = {*self.failures, *self.lost, self.holder} - {None}
        return len(machines)

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

    def forget(self, machine: str) -> None:
        self.failures.pop(machine, None)
        self.lost.pop(machine, None)


@dataclass
class Iteration:
    """Iteration k of a run."""

    run: "Run"
    k: int
    status: str = "pending"
    batches: list[Batch] = field(default_factory=list)

    @property
    def requires(self) -> tuple[str, ...]:
        return () if self.k % 2 else ("fast",)

    @property
    def is_open(self) -> bool:
        return self.status in OPEN

    @property
    def is_played(self) -> bool:
        return all(batch.status == "done" for batch in self.last)

    @property
    def last(self) -> list[Batch]:
        """Of the batches with the same `seq`, the one that was added last."""
        return list({batch.seq: batch for batch in self.batches}.values())

    @property
    def tally(self) -> Tally:
        return sum((batch.tally for batch in self.batches if batch.status == "done"), Tally())

    @property
    def row(self) -> tuple[Any, ...]:
        """What its row in the database has to say."""
        purged = sum(4 for batch in self.last if batch.status == "purged")
        voids = sum(batch.voids for batch in self.batches if batch.status != "purged")
        return (self.run.id, self.k, self.status, *counts(self.tally), voids, purged)


@dataclass
class Run:
    """A run; `master` is who holds it, in its `epoch`."""

    id: int
    name: str
    theta: Any
    status: str = "running"
    applied: int = 0
    purges: int = 0
    epoch: int = 0
    master: str | None = None
    is_expired: bool = False
    iterations: list[Iteration] = field(default_factory=list)

    @property
    def open(self) -> list[Iteration]:
        return [iteration for iteration in self.iterations if iteration.is_open]

    @property
    def batches(self) -> list[Batch]:
        return [batch for iteration in self.iterations for batch in iteration.batches]


def counts(tally: Tally) -> tuple[int, ...]:
    return (tally.games, tally.wins, tally.losses, tally.draws, *tally.pentanomial)


class Fleet:
    """All runs and workers, and the rules that concern more than one of them."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.workers: list[Worker] = []

    @property
    def batches(self) -> list[Batch]:
        return [batch for run in self.runs for batch in run.batches]

    def of_claim(self, claim: str) -> Batch | None:
        """The batch that a claim has, or has reported."""
        return next((batch for batch in self.batches if batch.claim == claim), None)

    def held(self, worker: Worker) -> list[Batch]:
        return [b for b in self.batches if b.status == "leased" and b.worker is worker]

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
        if not (batch.is_there and worker.suits(batch.iteration) and batch.iteration.is_open):
            return False
        if batch.attempt == 0:
            return True
        return batch.tried < ATTEMPTS and not self.has_given_up(worker, batch)

    def next_batches(self, worker: Worker) -> list[Batch]:
        """What a claim may get: the first free batch of each run that is served."""
        firsts = []
        for run in self.runs:
            free = [b for b in run.batches if run.status == "running" and self.is_free(worker, b)]
            firsts += sorted(free, key=_order)[:1]
        return firsts

    def exhausted(self, run: Run) -> list[Batch]:
        """The batches that no machine may claim any more."""
        return [
            batch
            for iteration in run.open
            for batch in iteration.batches
            if batch.attempt > 0 and batch.is_there and self._is_exhausted(batch)
        ]

    def _is_exhausted(self, batch: Batch) -> bool:
        able = self.able(batch.iteration)
        all_gave_up = bool(able) and all(self.has_given_up(w, batch) for w in able)
        return all_gave_up or (batch.tried >= ATTEMPTS and batch.tried > 1)

    def withdraw(self, machine: Machine) -> int:
        """Take back what a machine holds; how many batches."""
        its = [b for b in self.batches if b.holder == machine.name and b.iteration.is_open]
        for batch in its:
            batch.give_back(attempts=1)
        return len(its)


def _order(batch: Batch) -> tuple[int, bool, bool, int]:
    """The oldest iteration first; in it what was left by a machine, then what was tried before."""
    return (batch.iteration.k, batch.attempt == 0, batch.status == "ready", batch.seq)


def rows_of(runs: Sequence[Run]) -> list[tuple[Any, ...]]:
    return [
        (run.status, run.applied, run.purges, run.epoch, run.master, dict(run.theta))
        for run in runs
    ]
