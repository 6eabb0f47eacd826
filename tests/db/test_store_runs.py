"""What an owner tells a run, what its one master may do, and that values survive the database."""

import math
import struct
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from builders import (
    LEASE,
    THETA,
    new_engine,
    new_iteration,
    new_run,
    new_validation,
    stage,
    step_from,
)

from spsa.cli import held_run as master_session
from spsa.core import NOTHING_KNOWN, Estimates
from spsa.core.scoring import Tally
from spsa.errors import IllegalTransition, MasterLeaseLost, NothingToDo
from spsa.lifecycle import RUN, IterationStatus, Purpose, RunStatus
from spsa.protocol import Failure

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
    run = stage(store, name="short", max_iterations=1)
    run.whole_iteration()
    store.finish(run.master)
    for iterations, status in ((1, RunStatus.FINISHED), (2, RunStatus.RUNNING)):
        store.extend("short", "me", iterations)
        assert run.now().status is status


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


def iterations(run):
    return run.store.iterations(run.run.id)


def test_a_lease_that_is_renewed_is_not_abandoned_whatever_its_end(store, sql, monkeypatch):
    """As where the holder's clock is a day ahead; a master with another clock stands by."""
    run = stage(store)
    monkeypatch.setattr(master_session, "MASTER_LEASE_SECONDS", 0.5)
    monkeypatch.setattr(master_session, "POLL_SECONDS", 0.1)
    watch = master_session.LeaseWatch()
    for second in range(8):
        sql("UPDATE spsa_run SET lease_expires_at = :end", end=f"2500-01-01 00:00:0{second}.000")
        with pytest.raises(MasterLeaseLost) as refused:
            store.acquire_master_lease(run.run.id, "m2", LEASE, watch.abandoned())
        watch.saw(refused.value.lease_end)
        time.sleep(0.1)
    lease = master_session._acquired(store, run.run, threading.Event(), longest_wait=60)
    assert lease.epoch == run.master.epoch + 1


def test_a_master_that_was_replaced_can_change_nothing(store, expire):
    run = stage(store)
    run.open()
    run.play()
    step = step_from(run.now(), iterations(run)[0].tally)
    expire(run_id=run.run.id)
    new = store.acquire_master_lease(run.run.id, "m2", LEASE)
    for attempt in (
        lambda: store.tick(run.master, LEASE),
        lambda: store.open_iteration(run.master, new_iteration(k=2)),
        lambda: store.apply(run.master, iterations(run)[0].id, *step),
        lambda: store.complete_validation(run.master, iterations(run)[0].id, 0.0),
        lambda: store.finish(run.master),
    ):
        with pytest.raises(MasterLeaseLost):
            attempt()
    store.release_master_lease(run.master)
    assert run.now().master_id == "m2"
    store.apply(new, iterations(run)[0].id, *step)
    assert run.now().applied == 1


def test_opening_on_other_results_than_the_run_holds_is_refused(store):
    run = stage(store, max_iterations=2)
    with pytest.raises(IllegalTransition, match=r"k=2 was decided on 1 results, the run has 0"):
        store.open_iteration(run.master, new_iteration(k=2, opened_on=1))
    with pytest.raises(IllegalTransition, match=r"k=3 is past the run's 2 iterations"):
        store.open_iteration(run.master, new_iteration(k=3))
    run.whole_iteration()
    with pytest.raises(IllegalTransition):
        store.open_iteration(run.master, new_iteration(k=2, opened_on=0))


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


@pytest.mark.slow
def test_the_view_tells_what_games_have_lasted_lately(store):
    def lasted():
        return store.tick(run.master, LEASE).game_seconds

    run = stage(store)
    run.open()
    run.play(seconds=6.0)
    assert lasted() == 1.5
    run.apply()
    assert lasted() == 1.5
    run.open(k=2, opened_on=1, target_games=12)
    run.claim("held")
    run.play(seconds=0.5)
    assert lasted() == 1.5


@pytest.mark.slow
@pytest.mark.parametrize("ended_by", ["finish", "stop"])
def test_a_run_ends_when_all_is_applied_and_can_still_be_validated(store, expire, ended_by):
    run = stage(store, max_iterations=2)
    run.whole_iteration()
    with pytest.raises(IllegalTransition, match="has iterations left"):
        store.finish(run.master)
    assert store.work_left()
    run.whole_iteration()
    if ended_by == "finish":
        store.finish(run.master)
        assert run.now().status is RunStatus.FINISHED
        assert store.work_left(), "its master may be about to open the validation"
    else:
        store.stop("first", "me", "enough")
    assert run.now().finished_at is not None
    assert store.open_iteration(run.master, new_validation(opened_on=2)) == 3
    assert store.work_left()
    assert [claim.iteration_number for claim in run.play()] == [3, 3]
    (row,) = store.iterations(run.run.id, purpose=Purpose.VALIDATE)
    store.complete_validation(run.master, row.id, 7.5)
    (after,) = store.iterations(run.run.id, last=1)
    assert (after.status, after.elo_diff, after.k) == (IterationStatus.COMPLETE, 7.5, None)
    assert (run.now().applied, len(store.steps(run.run.id))) == (2, 2)
    store.release_master_lease(run.master)
    assert not store.work_left()
    store.acquire_master_lease(run.run.id, "next", LEASE)
    expire(run_id=run.run.id)
    assert not store.work_left(), "no worker waits for a master that died"


def engines_named(*names):
    return [new_engine(name, content=name.encode()) for name in names]


def test_engines_of_an_old_iteration_are_given_up(store):
    run = stage(store)
    old, level, kept, new = engines_named("old", "level", "kept", "new")
    net, last = ({"EvalFile": one} for one in engines_named("net", "last"))
    variants = {"x86-64-v3": (level, kept)}
    run.whole_iteration(plus=old, minus=old, variants=variants, plus_files=net, minus_files=last)
    run.open(plus=new, minus=new, variants={"x86-64-v3": (kept, new)}, plus_files=last)
    unused = (level, old, net["EvalFile"])
    assert sorted(store.retire_engines(run.master, 1)) == sorted(one.sha256 for one in unused)
    left = [store.file(one.sha256) for one in (*unused, last["EvalFile"], kept, new)]
    assert left == [None, None, None, b"last", b"kept", b"new"]
    assert store.file("0" * 64) is None


def test_engines_of_a_validation_are_given_up_with_the_iteration_that_it_was_opened_beside(store):
    run = stage(store)
    old, round_1, round_2, new = engines_named("old", "round 1", "round 2", "new")
    beside = new_validation(plus=round_1, minus=round_1)
    store.open_iteration(run.master, new_iteration(plus=old, minus=old), beside=beside)
    run.play()
    store.complete_validation(run.master, iterations(run)[0].id, 0.0)
    run.apply()
    beside = new_validation(plus=round_2, minus=round_2, opened_on=1)
    tuning = new_iteration(k=2, opened_on=1, plus=new, minus=new)
    store.open_iteration(run.master, tuning, beside=beside)
    assert sorted(store.retire_engines(run.master, 1)) == sorted((old.sha256, round_1.sha256))
    assert store.file(round_2.sha256) == b"round 2"


def test_a_round_belongs_to_the_first_match_of_its_values(store, sql):
    run = stage(store)
    for _ in range(2):
        store.open_iteration(run.master, new_validation())
    # PostgreSQL reads a row that has changed after the others
    sql("UPDATE spsa_iteration SET elo_diff = 0 WHERE iteration_number = 1")
    sql("ANALYZE")
    store.open_iteration(run.master, new_iteration(), beside=new_validation())
    assert [row.match_number for row in iterations(run)] == [1, 2, 1, None]


def test_a_match_waits_is_played_and_may_be_given_up(store):
    run = stage(store)
    store.open_iteration(run.master, new_validation())
    (number,) = (row.id for row in iterations(run))
    for act, status in (
        (lambda: None, IterationStatus.PENDING),
        (lambda: run.claim("v"), IterationStatus.IN_PROGRESS),
        (lambda: store.abandon_validation(run.master, number), IterationStatus.ABANDONED),
    ):
        act()
        assert [match.status for match in store.matches(run.run.id)] == [status]


def test_a_run_that_has_ended_stays_so_when_its_validation_fails(store):
    run = stage(store, max_iterations=1)
    run.whole_iteration()
    store.finish(run.master)
    store.open_iteration(run.master, new_validation(opened_on=1, max_attempts=1))
    store.fail(run.claim("v"), Failure(reason="it broke"))
    view = run.view()
    assert [batch.last_error for batch in view.failed] == ["it broke"]
    assert view.run.status is RunStatus.FINISHED
    assert store.events(run.run.id)[-1].kind == "failed"
