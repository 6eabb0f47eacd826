"""What an owner tells a run, what its one master may do, and that values survive the database."""

import math
import struct
import threading
import time
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta

import pytest
from builders import LEASE, THETA, new_run, stage, step_from
from transcripts import headings

from spsa.core import NOTHING_KNOWN, Estimates
from spsa.core.scoring import Tally
from spsa.errors import IllegalTransition, MasterLeaseLost
from spsa.lifecycle import IterationStatus
from spsa.master import loop

BOUNDARIES = [-0.0, 0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1e308, -1e308, 0.1 + 0.2, 1e22]


def bits(values):
    return {name: struct.pack("<d", value) for name, value in values.items()}


@pytest.mark.parametrize("heading", headings(__file__))
def test_what_owners_and_masters_do(heading, story):
    story(heading, none="b" * 64)


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
    estimates = Estimates(**dict.fromkeys(asdict(NOTHING_KNOWN), theta))
    run.apply(delta=theta, theta=theta, gradient=theta, estimates=estimates)
    (logged,) = store.steps(run.run.id)
    assert bits(logged.delta) == bits(logged.theta_before) == bits(run.now().theta) == bits(theta)
    assert bits(store.iterations(run.run.id)[0].gradient_estimate) == bits(theta)
    for values in asdict(run.now().estimates).values():
        assert bits(values) == bits(theta)
    run.open()
    run.play()
    known = Estimates(supported=THETA, better_step={"margin": 2.0})
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


def iterations(run):
    return run.store.iterations(run.run.id)


def test_a_lease_that_is_renewed_is_not_abandoned_whatever_its_end(store, sql, monkeypatch):
    """As where the holder's clock is a day ahead; a master with another clock stands by."""
    run = stage(store)
    monkeypatch.setattr(loop, "MASTER_LEASE_SECONDS", 0.5)
    monkeypatch.setattr(loop, "POLL_SECONDS", 0.1)
    watch = loop.LeaseWatch()
    for second in range(8):
        sql("UPDATE spsa_run SET lease_expires_at = :end", end=f"2500-01-01 00:00:0{second}.000")
        with pytest.raises(MasterLeaseLost) as refused:
            store.acquire_master_lease(run.run.id, "m2", LEASE, watch.abandoned())
        watch.saw(refused.value)
        time.sleep(0.1)
    taken = loop.acquired(store, run.run, threading.Event(), longest_wait=60)
    assert taken.epoch == run.master.epoch + 1


def test_a_step_from_another_theta_or_of_another_runs_iteration_is_refused(store):
    run = stage(store)
    run.open()
    run.play()
    (row,) = iterations(run)
    other = store.create_run(new_run(name="second"))
    foreign = store.acquire_master_lease(other.id, "m1", LEASE)
    moved = replace(run.now(), theta=THETA | {"margin": 200.00000000000003})
    for attempt in (
        lambda: store.apply(run.master, row.id, *step_from(moved, Tally())),
        lambda: store.apply(foreign, row.id, *step_from(other, row.tally)),
        # nor is one of tuning closed as a validation
        lambda: store.complete_validation(foreign, row.id, 0.0),
        lambda: store.complete_validation(run.master, row.id, 0.0),
    ):
        with pytest.raises(IllegalTransition):
            attempt()
    assert store.steps(run.run.id) == []
    assert iterations(run)[0].status is IterationStatus.IN_PROGRESS
