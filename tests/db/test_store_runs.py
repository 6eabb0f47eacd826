"""What an owner tells a run, what anybody may ask, and that values survive the database."""

import math
import struct
from datetime import UTC, datetime, timedelta

import pytest
from builders import LEASE, THETA, new_run, stage

from spsa.core import NOTHING_KNOWN, Estimates
from spsa.errors import IllegalTransition, NothingToDo
from spsa.lifecycle import RUN, RunStatus

BOUNDARIES = [-0.0, 0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1e308, -1e308, 0.1 + 0.2, 1e22]


def bits(values):
    return {name: struct.pack("<d", value) for name, value in values.items()}


def test_a_new_run_is_what_was_asked_for(store):
    new = new_run(source_sha256="a" * 64)
    run = store.create_run(new)
    for name in ("name", "seed", "algorithm", "settings", "space", "game_settings"):
        assert getattr(run, name) == getattr(new, name)
    assert (run.source_sha256, run.max_iterations) == ("a" * 64, new.max_iterations)
    assert (run.theta, run.start_theta, run.state) == (new.theta, new.theta, new.state)
    assert (run.status, run.applied, run.epoch, run.master_id) == (RunStatus.RUNNING, 0, 0, None)
    assert store.run() == store.find_run("first") == run
    with pytest.raises(IllegalTransition, match="the database refused"):
        store.create_run(new_run())
    assert [event.kind for event in store.events(run.id)] == ["start"]


def test_a_run_that_is_not_there_is_named_with_those_that_are(store):
    with pytest.raises(NothingToDo, match="there is no run yet"):
        store.run()
    for name in ("first", "second"):
        store.create_run(new_run(name=name))
    with pytest.raises(NothingToDo, match="no run named 'third'; the runs are: first, second"):
        store.run("third")
    assert store.find_run("third") is None
    assert store.run().name == "second"
    assert [run.name for run in store.runs()] == ["first", "second"]


@pytest.mark.slow
@pytest.mark.parametrize("to", RunStatus)
@pytest.mark.parametrize("status", RunStatus)
def test_a_run_moves_only_as_its_lifecycle_says(store, status, to):
    run = stage(store, max_iterations=1)
    run.whole_iteration()
    verbs = {
        RunStatus.RUNNING: lambda: (
            store.extend("first", "me", 5)
            if status is RunStatus.FINISHED
            else store.resume("first", "me")
        ),
        RunStatus.PAUSED: lambda: store.pause("first", "me", "why"),
        RunStatus.STOPPED: lambda: store.stop("first", "me", "why"),
        RunStatus.FINISHED: lambda: store.finish(run.master),
    }
    if status is not RunStatus.RUNNING:
        verbs[status]()
    if to in RUN[status]:
        verbs[to]()
        assert run.now().status is to
    else:
        with pytest.raises(IllegalTransition, match=f"run first cannot become {to}: it is"):
            verbs[to]()
        assert run.now().status is status


def test_who_did_what_is_on_record(store):
    run = store.create_run(new_run())
    store.pause("first", "anna", "the machine is needed")
    store.resume("first", "ben")
    store.extend("first", "ben", 9)
    store.extend("first", "ben", 9)
    told = [(event.kind, event.actor, event.detail) for event in store.events(run.id)]
    assert told == [
        ("start", "master", {"seed": 42}),
        ("paused", "anna", {"reason": "the machine is needed"}),
        ("running", "ben", {}),
        ("extend", "ben", {"max_iterations": 9}),
    ]
    assert [event.kind for event in store.events(run.id, last=2)] == ["running", "extend"]


def test_a_run_is_extended_but_never_below_what_it_has_opened(store):
    run = stage(store)
    run.whole_iteration()
    run.open()
    store.extend("first", "me", 2)
    assert run.now().max_iterations == 2
    with pytest.raises(IllegalTransition, match="has already opened 2 iterations"):
        store.extend("first", "me", 1)
    store.stop("first", "me", "enough")
    with pytest.raises(IllegalTransition, match="first is stopped: it cannot be extended"):
        store.extend("first", "me", 10)
    with pytest.raises(IllegalTransition, match="no run named 'nobody'"):
        store.extend("nobody", "me", 10)


def test_a_finished_run_goes_on_only_where_it_becomes_longer(store):
    run = stage(store, max_iterations=1)
    run.whole_iteration()
    store.finish(run.master)
    store.extend("first", "me", 1)
    assert run.now().status is RunStatus.FINISHED
    store.extend("first", "me", 2)
    assert run.now().status is RunStatus.RUNNING


def test_every_float_comes_back_to_the_bit(store):
    theta = {f"p{i}": value for i, value in enumerate(BOUNDARIES)}
    run = stage(store, theta=theta, state={"velocity": BOUNDARIES})
    assert bits(run.now().theta) == bits(theta)
    assert [math.copysign(1, x) for x in run.now().state["velocity"][:2]] == [-1, 1]
    run.open(plus_parameters=theta, minus_parameters=theta, base_parameters=theta)
    run.play()
    (row,) = store.iterations(run.run.id)
    for kept in (row.plus_parameters, row.minus_parameters, row.base_parameters):
        assert bits(kept) == bits(theta)
    assert run.now().estimates == NOTHING_KNOWN
    estimates = Estimates(**dict.fromkeys(NOTHING_KNOWN.by_name(), theta))
    run.apply(delta=theta, theta=theta, gradient=theta, estimates=estimates)
    (logged,) = store.steps(run.run.id)
    assert bits(logged.delta) == bits(logged.theta_before) == bits(run.now().theta) == bits(theta)
    assert bits(store.iterations(run.run.id)[0].gradient_estimate) == bits(theta)
    for values in run.now().estimates.by_name().values():
        assert bits(values) == bits(theta)
    run.open()
    run.play()
    known = Estimates(averaged=None, supported=THETA, supported_sd={"margin": 2.0})
    run.apply(estimates=known)
    assert run.now().estimates == known


def test_times_are_aware_utc_and_of_the_databases_clock(store):
    run = stage(store, max_iterations=1)
    run.whole_iteration()
    store.finish(run.master)
    row = store.iterations(run.run.id)[0]
    times = [run.now().created_at, run.now().finished_at, row.created_at, row.completed_at]
    times += [store.steps(run.run.id)[0].created_at, store.events(run.run.id)[0].at]
    assert {moment.tzinfo for moment in times} == {UTC}
    # the database of the tests is on this machine, so the two clocks are one
    assert all(abs(datetime.now(UTC) - moment) < timedelta(minutes=5) for moment in times)
    assert row.created_at <= row.completed_at + timedelta(seconds=1)
    assert timedelta() <= store.clock() - run.now().created_at < timedelta(seconds=300)


def test_a_run_that_never_began_gives_way_to_one_of_its_name(store):
    run = store.create_run(new_run(seed=1))
    assert not store.is_unopened(run.id), "its master is about to take it"
    master = store.acquire_master_lease(run.id, "living", LEASE)
    assert not store.is_unopened(run.id)
    with pytest.raises(IllegalTransition, match="the database refused"):
        store.create_run(new_run(seed=2), replacing=run.id)
    store.release_master_lease(master)
    assert store.is_unopened(run.id)
    store.create_run(new_run(seed=2), replacing=run.id)
    assert store.run(run.name).seed == 2
