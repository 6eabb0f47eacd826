"""The simulated fleet: its slots, and what iterations in flight cost in a short run."""

from collections import deque
from random import Random

import pytest
from click.testing import CliRunner

from benches.fleet import staleness
from benches.fleet.pool import SleepingPool
from benches.fleet.scene import Scene
from spsa.core.game_settings import GameSettings, TimeControl
from spsa.uci.spawning import EngineSpec
from worker.runner.game import Pair, Pairing
from worker.runner.pool import Job, JobEnded

INSTANT = Scene(workers=1, games=8, builders=1, warm=0, seconds=1, haste=1e5)


def job(key: str) -> Job:
    engine = EngineSpec(name=key, path=key, options={})
    pairing = Pairing(number=0, opening=None, time=1.0)  # type: ignore[arg-type]
    settings = GameSettings(
        time_control=TimeControl(low=1, high=1),
        adjudication=None,  # type: ignore[arg-type]
    )
    return Job(key=key, plus=engine, minus=engine, pairings=(pairing,) * 2, settings=settings)


def test_a_slot_that_sleeps_plays_one_job_after_the_other():
    pool = SleepingPool(1, INSTANT, Random(1))
    for key in "ab":
        pool.submit(job(key))
    events = deque(iter(lambda: pool.next_event(0.05), None))
    assert [(type(event), event.key) for event in events] == [
        *[(Pair, "a"), (Pair, "a"), (JobEnded, "a")],
        *[(Pair, "b"), (Pair, "b"), (JobEnded, "b")],
    ]
    (began, ended), (again, _) = pool.spans
    assert began < ended <= again


@pytest.mark.slow
def test_iterations_in_flight_at_once_and_growing_are_measured_against_the_same():
    told = CliRunner().invoke(
        staleness.main, ["--table", "short", "--problems", "2", "--processes", "1"]
    )
    assert told.exit_code == 0, told.output
    at_once, growing = (text.split("|") for text in told.output.splitlines()[2:])
    assert (at_once[4].strip(), growing[4].strip()) == ("yes", "")
    assert at_once[5] == growing[5]
    assert at_once[6] != growing[6]
