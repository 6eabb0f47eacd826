"""From where on a run's state has notes, and how far a replay is from theta."""

from dataclasses import replace

import pytest
from masters import RunUnderTest
from purges import BAD, moved

from spsa.algorithms.observing import without_notes
from spsa.db.purge_records import Selection
from spsa.history.purge import plan, results_of, steps_apart
from spsa.history.replay import noted_from, replay


@pytest.fixture
def tested(store):
    made = RunUnderTest(store, iterations=4)
    moved(made)
    return made


def test_a_run_that_took_notes_from_the_start_has_them_in_every_state(tested):
    run = tested.now()
    results = results_of(tested.store, run, run.applied)
    assert run.applied >= 2
    assert noted_from(run, results) == 0
    states = [moment.state for moment in replay(tested.tuning, results, 0)]
    assert states[-1] == run.state
    assert states[0] == tested.tuning.start()[1]


@pytest.mark.slow
def test_a_run_of_an_older_program_has_none(tested):
    run = tested.now()
    results = results_of(tested.store, run, run.applied)
    first, *_ = replay(tested.tuning, results, 1)
    assert first.state == without_notes(tested.tuning.start()[1])


def test_the_drift_is_that_of_the_parameter_that_is_farthest_off(tested, sql):
    run = tested.now()
    names = list(steps_apart(run, run.theta, run.theta))
    assert len(names) > 1
    planned = plan(tested.store, run, tested.tuning, Selection(worker=BAD))
    assert planned.drift == 0.0
    farther = dict(run.theta)
    farther[names[0]] += 0.25
    apart = steps_apart(run, farther, run.theta)[names[0]]
    other = plan(tested.store, replace(run, theta=farther), tested.tuning, Selection(worker=BAD))
    assert other.drift == pytest.approx(abs(apart))
    assert next(iter(other.moved)) in names
    sizes = [abs(steps) for steps in other.moved.values()]
    assert sizes == sorted(sizes, reverse=True)
