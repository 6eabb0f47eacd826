"""Workers and masters are killed (SIGKILL) at random moments: no game is lost, none counts twice.

SPSA_TEST_LONG=1 is a thousand deaths on each database, SPSA_TEST_SEED who is killed when.
"""

import time

import pytest
from fleet import LEASE_SECONDS, ProcessSettings
from processes import LONG, assert_undisturbed, of_six, working

DEATHS = 1_000 if LONG else 20
PAUSES = 60 if LONG else 2


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_death_changes_theta(database_url, figures):
    began = time.monotonic()
    with working(database_url, of_six(ProcessSettings(database_url))) as works:
        works.kill_until(DEATHS)
        works.finish()
        games = assert_undisturbed(works)
    figures(kills=works.processes.deaths, games=games, seconds=time.monotonic() - began)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_who_stands_still_for_three_leases_does_no_harm(database_url, figures):
    """A laptop that slept: its leases have long been others' when it goes on."""
    began = time.monotonic()
    with working(database_url, of_six(ProcessSettings(database_url))) as works:
        for _ in range(PAUSES):
            some = works.chance.sample(range(len(works.processes)), 3)
            with works.processes.held_up(some):
                time.sleep(3 * LEASE_SECONDS)
            time.sleep(works.chance.uniform(0, LEASE_SECONDS))
        works.processes.check()
        works.finish()
        games = assert_undisturbed(works)
    figures(stops=3 * PAUSES, games=games, seconds=time.monotonic() - began)
