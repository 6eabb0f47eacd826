"""Processes that play and move a run without chess, made to be killed.

A batch's result is a function of its seed, and a step one of the counts: whatever happens to the
processes, theta has one right value, which `undisturbed` computes without any database.
"""

import random
import time
import uuid

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

from spsa.errors import DatabaseUnreachable, IllegalTransition, LeaseLost, MastershipLost
from spsa.lifecycle import RunStatus
from spsa.scoring import Tally
from spsa.seeds import derived_seed
from spsa.store import Run, open_store

NAME, SEED = "fleet", 2026
GAMES, BATCH, IN_FLIGHT = 24, 4, 2
LEASE_SECONDS = 0.4
IDLE_SECONDS = 0.03  # without it one busy master keeps everybody else from an SQLite file


def start(store, iterations: int) -> Run:
    return store.create_run(new_run(name=NAME, seed=SEED, max_iterations=iterations))


def play(url: str, pause: float) -> None:
    """A worker, until its run has ended."""
    chance = random.Random()
    with open_store(url, durable=False) as store:
        worker = store.register_worker(new_worker(uuid.uuid4().hex))
        while store.run(NAME).status is not RunStatus.FINISHED:
            try:
                claim = store.claim(uuid.uuid4().hex, worker, LEASE_SECONDS)
                time.sleep(chance.uniform(0, pause))
                if claim is not None:
                    store.report(claim, result_of(claim))
                else:
                    time.sleep(IDLE_SECONDS)
            except (LeaseLost, DatabaseUnreachable):
                continue


def lead(url: str, name: str) -> None:
    """A master, until its run has ended; another one may lead at any time."""
    with open_store(url) as store:
        while (run := store.run(NAME)).status is not RunStatus.FINISHED:
            try:
                mastership = store.acquire(run.id, name, LEASE_SECONDS)
                while _move(store, mastership):
                    pass
            except (MastershipLost, IllegalTransition, DatabaseUnreachable):
                time.sleep(IDLE_SECONDS)


def _move(store, mastership) -> bool:
    view = store.tick(mastership, LEASE_SECONDS)
    run, k = view.run, view.opened + 1
    if k <= run.max_iterations and k - IN_FLIGHT <= run.applied:
        store.open_iteration(mastership, _iteration(k, run.applied))
    elif view.open and view.open[0].played_out:
        oldest = view.open[0]
        store.apply(mastership, oldest.id, step_from(run, oldest.tally))
    elif not view.open:
        store.finish(mastership)
        return False
    else:
        time.sleep(IDLE_SECONDS)
    return True


def _iteration(k: int, opened_on: int):
    return new_iteration(
        k=k,
        opened_on=opened_on,
        in_flight=IN_FLIGHT,
        target_games=GAMES,
        batch_games=BATCH,
        max_attempts=1_000_000,
        terms=TERMS,
    )


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
