"""A master's verbs: acquire, tick, open, apply, finish; and that only one master has them."""

import threading
import time
from dataclasses import replace

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
from spsa.core.scoring import Tally
from spsa.errors import IllegalTransition, MasterLeaseLost
from spsa.lifecycle import IterationStatus, Purpose, RunStatus
from spsa.protocol import Failure


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


@pytest.mark.slow
def test_pairs_are_numbered_through_the_whole_run_without_gaps(store):
    run = stage(store)
    for games in (8, 6, 12):
        run.whole_iteration(target_games=games)
    places = [(b.first_pair, b.games // 2) for b in store.batches(run.run.id)]
    assert places == [(0, 2), (2, 2), (4, 2), (6, 1), (7, 2), (9, 2), (11, 2)]


def test_a_step_from_another_theta_is_refused(store):
    run = stage(store)
    run.open()
    run.play()
    with pytest.raises(IllegalTransition):
        other = replace(run.now(), theta=THETA | {"margin": 200.00000000000003})
        store.apply(run.master, iterations(run)[0].id, *step_from(other, Tally()))
    assert store.steps(run.run.id) == []


@pytest.mark.slow
def test_another_runs_iteration_is_not_applied(store):
    run = stage(store)
    run.open()
    run.play()
    other = store.create_run(new_run(name="second"))
    foreign = store.acquire_master_lease(other.id, "m1", LEASE)
    row = iterations(run)[0]
    with pytest.raises(IllegalTransition):
        store.apply(foreign, row.id, *step_from(other, row.tally))
    for master in (foreign, run.master):  # nor is one of tuning closed as a validation
        with pytest.raises(IllegalTransition):
            store.complete_validation(master, row.id, 0.0)
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
def test_a_run_ends_when_all_its_iterations_are_applied(store, expire):
    run = stage(store, max_iterations=2)
    run.whole_iteration()
    with pytest.raises(IllegalTransition, match="has iterations left"):
        store.finish(run.master)
    assert store.work_left()
    run.whole_iteration()
    store.finish(run.master)
    assert run.now().status is RunStatus.FINISHED
    assert run.now().finished_at is not None
    assert store.work_left(), "its master may be about to open the validation"
    store.release_master_lease(run.master)
    assert not store.work_left()
    store.acquire_master_lease(run.run.id, "next", LEASE)
    expire(run_id=run.run.id)
    assert not store.work_left(), "a master that died holds nobody"


@pytest.mark.slow
@pytest.mark.parametrize("ended_by", ["finish", "stop"])
def test_a_run_that_has_ended_can_still_be_validated(store, ended_by):
    run = stage(store, max_iterations=1)
    run.whole_iteration()
    if ended_by == "finish":
        store.finish(run.master)
    else:
        store.stop("first", "me", "enough")
    assert store.open_iteration(run.master, new_validation(opened_on=1)) == 2
    assert store.work_left()
    assert [claim.iteration_number for claim in run.play()] == [2, 2]
    (row,) = store.iterations(run.run.id, purpose=Purpose.VALIDATE)
    store.complete_validation(run.master, row.id, 7.5)
    (after,) = store.iterations(run.run.id, last=1)
    assert (after.status, after.elo_diff, after.k) == (IterationStatus.COMPLETE, 7.5, None)
    assert (run.now().applied, len(store.steps(run.run.id))) == (1, 1)
    store.release_master_lease(run.master)
    assert not store.work_left()


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
    def statuses():
        return [match.status for match in store.matches(run.run.id)]

    run = stage(store)
    store.open_iteration(run.master, new_validation())
    assert statuses() == [IterationStatus.PENDING]
    run.claim("v")
    assert statuses() == [IterationStatus.IN_PROGRESS]
    store.abandon_validation(run.master, iterations(run)[0].id)
    assert statuses() == [IterationStatus.ABANDONED]


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
