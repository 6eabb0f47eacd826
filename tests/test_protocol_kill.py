"""Workers and masters are killed (SIGKILL) at random moments: no game is lost, none counts twice.

SPSA_TEST_SECONDS is how long the killing lasts (short form: 3), SPSA_TEST_SEED who is killed when.
"""

import multiprocessing
import os
import random
import signal
import time

import pytest
from fleet import GAMES, NAME, lead, play, start, undisturbed
from invariants import broken

from spsa.doctor import check_run
from spsa.lifecycle import RunStatus
from spsa.store import open_store

SECONDS = float(os.environ.get("SPSA_TEST_SECONDS", 60 if os.environ.get("SPSA_TEST_LONG") else 3))
SEED = int(os.environ.get("SPSA_TEST_SEED", 1))
ITERATIONS = int(15 * max(1.0, SECONDS / 3))
WORKERS = 4
PAUSE = 0.02

processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(["fleet"])


class Fleet:
    """Four workers and two masters; whoever is killed is replaced by another."""

    def __init__(self, url):
        self.kinds = [(play, (url, PAUSE))] * WORKERS + [(lead, (url, "m1")), (lead, (url, "m2"))]
        self.crew = [self._hired(kind) for kind in self.kinds]
        self.deaths = 0

    def _hired(self, kind):
        target, arguments = kind
        process = processes.Process(target=target, args=arguments, daemon=True)
        process.start()
        return process

    def kill(self, place):
        if self.crew[place].is_alive():
            self.crew[place].kill()
            self.crew[place].join()
            self.deaths += 1
        self.check(self.crew[place])
        self.crew[place] = self._hired(self.kinds[place])

    def check(self, process):
        """Nobody dies but by our hand."""
        assert process.exitcode in (None, 0, -signal.SIGKILL), process.exitcode

    def end(self):
        for process in self.crew:
            process.kill()
            process.join()


@pytest.mark.timeout(300 + 10 * SECONDS)
def test_no_death_changes_theta(database_url, sql):
    with open_store(database_url, durable=False) as store:
        run = start(store, ITERATIONS)
        fleet, chance = Fleet(database_url), random.Random(SEED)
        try:
            _kill_for(SECONDS, fleet, chance, store)
            _await_end(store, fleet)
        finally:
            fleet.end()
        theta, tally = undisturbed(ITERATIONS)
        now = store.run(NAME)
        assert (now.theta, store.totals(run.id).tally) == (theta, tally)
        assert tally.games == ITERATIONS * GAMES
        assert fleet.deaths >= SECONDS
        assert broken(sql) == []
        assert [str(finding) for finding in check_run(store, now)] == []


def _kill_for(seconds, fleet, chance, store):
    end = time.monotonic() + seconds
    while time.monotonic() < end and store.run(NAME).status is RunStatus.RUNNING:
        time.sleep(chance.uniform(0, 0.15))
        fleet.kill(chance.randrange(len(fleet.crew)))


def _await_end(store, fleet):
    while store.run(NAME).status is RunStatus.RUNNING:
        for process in fleet.crew:
            fleet.check(process)
        time.sleep(0.02)
    assert store.run(NAME).status is RunStatus.FINISHED
