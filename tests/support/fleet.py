"""Workers and masters that play and move a run without chess, made to be disturbed.

A batch's result is a function of its seed, and a step one of the counts: whatever happens to the
processes, theta has one right value, which `undisturbed` computes without any database. A worker
speaks through the product's own `DatabaseClient`.
"""

import os
import time
import uuid
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from builders import (
    TERMS,
    THETA,
    new_iteration,
    new_run,
    new_worker,
    result_of,
    step_from,
    tally_of_seed,
)

from spsa.core.scoring import Tally
from spsa.core.seeds import derived_seed
from spsa.db import deadline
from spsa.db.store import Claim, MasterLease, Run, Store, open_store
from spsa.errors import DatabaseUnreachable, IllegalTransition, MasterLeaseLost
from spsa.lifecycle import RunStatus
from worker.batches.database_client import Backoff, BackoffTimes, DatabaseClient, PendingReport

NAME, SEED = "fleet", 2026
GAMES, BATCH, IN_FLIGHT = 24, 4, 2
ENDLESS = 1_000_000
LEASE_SECONDS = 0.4
IDLE_SECONDS = 0.03  # without it one busy master keeps everybody else from an SQLite file
AT_ONCE = BackoffTimes(first=IDLE_SECONDS, growth=1.0, cap=1.0, jitter=0.5)


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    """Where somebody works and how.

    `pause` is the most that a batch takes, `retry` the waits for a database that does not answer;
    `durable` is whether a master's commits wait for the disk, `journal` the folder where everybody
    writes down what it was answered, and `deadlines` the seconds to connect and to answer, where
    they are not the product's.
    """

    url: str
    pause: float = 0.02
    retry: BackoffTimes = AT_ONCE
    durable: bool = True
    journal: Path | None = None
    deadlines: tuple[float, float] | None = None


def start(store: Store, iterations: int = ENDLESS) -> Run:
    return store.create_run(new_run(name=NAME, seed=SEED, max_iterations=iterations))


def is_over(store: Store) -> bool:
    return store.run(NAME).status is RunStatus.FINISHED


class FleetWorker:
    """A worker: every `step` delivers what it has played and asks for the next batch."""

    def __init__(self, store: Any, retry: BackoffTimes, pause: float = 0.0) -> None:
        self.store, self._pause, self._chance = store, pause, Random()
        self.client = DatabaseClient(store, new_worker(uuid.uuid4().hex), LEASE_SECONDS, retry)
        self.over = False

    def step(self) -> None:
        with self.client.retrying():
            self.client.renew((), None)
            self.client.deliver()
            self._play(self.client.claim())

    def _play(self, claim: Claim | None) -> None:
        if claim is not None:
            time.sleep(self._chance.uniform(0, self._pause))
            self.client.enqueue(PendingReport(claim=claim, result=result_of(claim)))
        elif is_over(self.store):
            self.over = True
        else:
            time.sleep(IDLE_SECONDS if self._pause else 0)

    @property
    def silence(self) -> float:
        """Seconds for which it has nothing to say."""
        return max(0.0, self.client.due_at - time.monotonic()) if self.client.backing_off else 0.0


class FleetMaster:
    """A master; every `step` is one look at the run and what follows. Another one may lead."""

    def __init__(
        self, store: Any, name: str, retry: BackoffTimes, pause: float = IDLE_SECONDS
    ) -> None:
        self.store, self._name, self._pause = store, name, pause
        self._retries = Backoff(retry, Random())
        self._master_lease: MasterLease | None = None
        self.over = False
        self.silence = 0.0

    def step(self) -> None:
        self.silence = 0.0
        try:
            self._lead()
            self._retries.reset()
        except (MasterLeaseLost, IllegalTransition):
            self._master_lease = None
            self._retries.reset()  # an answer, too
            self.silence = self._pause
        except DatabaseUnreachable:
            self.silence = self._retries.next()

    def _lead(self) -> None:
        run = self.store.run(NAME)
        self.over = run.status is RunStatus.FINISHED
        if self.over:
            return
        if self._master_lease is None:
            self._master_lease = self.store.acquire_master_lease(run.id, self._name, LEASE_SECONDS)
        self._move(self._master_lease)

    def _move(self, master_lease: MasterLease) -> None:
        view = self.store.tick(master_lease, LEASE_SECONDS)
        run, k = view.run, view.opened + 1
        if k <= run.max_iterations and k - IN_FLIGHT <= run.applied:
            self.store.open_iteration(master_lease, iteration(k, run.applied))
        elif view.open and view.open[0].is_played:
            oldest = view.open[0]
            self.store.apply(master_lease, oldest.id, step_from(run, oldest.tally))
        elif not view.open:
            self.store.finish(master_lease)
        else:
            self.silence = self._pause


def iteration(k: int, opened_on: int):
    return new_iteration(
        k=k,
        opened_on=opened_on,
        in_flight=IN_FLIGHT,
        target_games=GAMES,
        batch_games=BATCH,
        max_attempts=ENDLESS,
        game_settings=TERMS,
    )


def play(post: ProcessSettings) -> None:
    """A worker's process, until its run has ended."""
    store = _reached(replace(post, durable=False), "worker")
    _work(FleetWorker(store, post.retry, post.pause))


def lead(post: ProcessSettings, name: str) -> None:
    """A master's process, until its run has ended."""
    _work(FleetMaster(_reached(post, name), name, post.retry))


def _work(member: FleetWorker | FleetMaster) -> None:
    while not member.over:
        member.step()
        time.sleep(member.silence)
    member.store.close()


def _reached(post: ProcessSettings, name: str) -> Any:
    if post.deadlines is not None:
        deadline.CONNECT_SECONDS, deadline.RESPONSE_SECONDS = post.deadlines
    pauses = Backoff(post.retry, Random())
    while True:
        try:
            store = open_store(post.url, durable=post.durable)
        except DatabaseUnreachable:
            time.sleep(pauses.next())
        else:
            return store if post.journal is None else Journal(store, post.journal, name)


class Journal:
    """A store whose every call is written down, a line each, when it has been answered.

    A line is: name, monotonic begin and end, method, `ok` or the error, and the claim whose report
    was accepted.
    """

    def __init__(self, store: Store, folder: Path, name: str) -> None:
        self._store = store
        self._name = f"{name}-{os.getpid()}"
        self._file = (folder / self._name).open("a", buffering=1)

    def __getattr__(self, method: str) -> Any:
        call = getattr(self._store, method)

        def written(*args: Any, **kwargs: Any) -> Any:
            began, outcome, accepted = time.monotonic(), "lost", "-"
            try:
                answer = call(*args, **kwargs)
                outcome = "ok"
                if method == "report" and answer == "accepted":
                    accepted = args[0].claim_id
                return answer
            except Exception as error:
                outcome = type(error).__name__
                raise
            finally:
                ended = time.monotonic()
                self._file.write(f"{self._name} {began} {ended} {method} {outcome} {accepted}\n")

        return written


def undisturbed(iterations: int) -> tuple[dict[str, float], Tally]:
    """Theta after so many iterations, and all their games, as nobody's death can change them."""
    theta, total = dict(THETA), Tally()
    for number in range(1, iterations + 1):
        seeds = [derived_seed(SEED, "batch", number, seq) for seq in range(GAMES // BATCH)]
        tally = sum((tally_of_seed(seed, BATCH // 2) for seed in seeds), Tally())
        total += tally
        for place, name in enumerate(sorted(theta)):
            theta[name] += (tally.wins - tally.losses) * 0.1 / (place + 1)
    return theta, total
