"""Any call may say that it failed, whether or not it was done: a fifth of all calls does.

In one process, a call after the other, whoever's turn it is by chance; SPSA_TEST_SEED decides,
SPSA_TEST_LONG=1 is ten thousand calls on each database.
"""

import random
import time
from typing import Any

import pytest
from builders import result_of, stage
from fleet import NAME, FleetMaster, FleetWorker, is_over, start
from processes import LONG, SEED, RunningProcesses, assert_undisturbed

from spsa.db.store import Store, open_store
from spsa.errors import DatabaseUnreachable
from worker.batches.database_client import BackoffTimes

CALLS = 10_000 if LONG else 600
PART = 0.2
NO_WAIT = BackoffTimes(first=0.0, growth=1.0, cap=0.0, jitter=0.0)


class Liar:
    """A store whose calls now and then say that they failed; half of those were done all the same.

    `looks` are for the test's own eyes and always answered.
    """

    looks = ("run",)

    def __init__(self, store: Store, chance: random.Random) -> None:
        self._store, self._chance = store, chance
        self.calls = self.undone = self.done = 0

    def __getattr__(self, method: str) -> Any:
        call = getattr(self._store, method)
        if method in self.looks:
            return call

        def doubtful(*args: Any) -> Any:
            self.calls += 1
            chance = self._chance.random()
            if chance < PART / 2:
                self.undone += 1
                raise DatabaseUnreachable("said to have failed, and not done")
            answer = call(*args)
            if chance < PART:
                self.done += 1
                raise DatabaseUnreachable("said to have failed, and done")
            return answer

        return doubtful


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_fifth_of_all_calls_says_that_it_failed(database_url, sql, figures):
    began, chance = time.monotonic(), random.Random(SEED)
    with open_store(database_url, durable=False) as store:
        start(store)
        liar = Liar(store, chance)
        hands = [FleetWorker(liar, NO_WAIT) for _ in range(3)]
        hands += [FleetMaster(liar, name, NO_WAIT, pause=0.0) for name in ("m1", "m2")]
        while not is_over(store):
            if liar.calls >= CALLS and store.run(NAME).max_iterations > CALLS:
                _shorten(store)
            if chance.random() < 0.01:
                sql.expire(run_id=store.run(NAME).id)
            chance.choice(hands).step()
        games = assert_undisturbed(RunningProcesses(store, sql, None, chance))
    figures(
        calls=liar.calls,
        failed_undone=liar.undone,
        failed_done=liar.done,
        games=games,
        seconds=time.monotonic() - began,
    )


def test_a_worker_that_a_crash_has_made_unknown_says_again_who_it_is(database_url, sql):
    """Workers' commits do not wait for the disk: the first that is lost may be its own row."""
    with open_store(database_url, durable=False) as store:
        on = stage(store)
        on.open()
        player = FleetWorker(store, NO_WAIT)
        player.client.renew((), None)
        sql("DELETE FROM spsa_worker WHERE name <> 'machine-1'")
        claim = player.client.claim()
        assert claim is not None
        assert store.report(claim, result_of(claim)) == "accepted"


def _shorten(store: Store) -> None:
    opened = max(it.iteration_number for it in store.iterations(store.run(NAME).id))
    store.extend(NAME, "test", opened)
