"""What constraints refuse whoever writes the SQL, and what a master compares before a step."""

import pytest
import sqlalchemy as sa
from builders import new_validation, result_of, stage, step_from

from spsa.errors import IllegalTransition
from spsa.history.doctor import check_run
from spsa.lifecycle import IterationStatus, RunStatus


@pytest.fixture
def run(store):
    """One complete iteration, one with all its games, and one with a batch of two reported."""
    started = stage(store, max_iterations=9)
    started.whole_iteration()
    started.open(in_flight=2)
    started.play()
    started.open(k=3, opened_on=1, in_flight=2)
    claim = started.claim("x")
    store.report(claim, result_of(claim, voids={"crash": 1}))
    return started


def rows(run):
    return run.store.iterations(run.run.id), run.store.batches(run.run.id)


REFUSED = {
    "a batch that is done and gets other counts": (
        "UPDATE spsa_batch SET draws = draws + 2 WHERE status = 'done'"
    ),
    "a batch that is done without its games": (
        "UPDATE spsa_batch SET status = 'done', claim_id = 'forged' WHERE status = 'ready'"
    ),
    "a batch with less than no games": (
        "UPDATE spsa_batch SET plus_wins = 3, minus_wins = 3, draws = -2, ptnml_0 = 0, ptnml_1 = 0,"
        " ptnml_2 = 2, ptnml_3 = 0, ptnml_4 = 0 WHERE status = 'done'"
    ),
    "more games than the target": (
        "UPDATE spsa_iteration SET games_played = games_played + 2, draws = draws + 2,"
        " ptnml_2 = ptnml_2 + 1 WHERE k = 2"
    ),
    "half points that are not those of the pairs": (
        "UPDATE spsa_iteration SET plus_wins = plus_wins + 1, draws = draws - 1 WHERE k = 2"
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_counts_that_cannot_be_are_refused(run, sql, name):
    before = rows(run)
    with pytest.raises(sa.exc.IntegrityError, match="counts"):
        sql(REFUSED[name])
    assert rows(run) == before


NOTHING = (
    "plus_wins = 0, minus_wins = 0, draws = 0,"
    " ptnml_0 = 0, ptnml_1 = 0, ptnml_2 = 0, ptnml_3 = 0, ptnml_4 = 0"
)
MISCOUNTED = {
    "a result that is turned round": (
        "UPDATE spsa_iteration SET plus_wins = minus_wins, minus_wins = plus_wins,"
        " ptnml_0 = ptnml_4, ptnml_1 = ptnml_3, ptnml_3 = ptnml_1, ptnml_4 = ptnml_0"
        " WHERE k = 2"
    ),
    "a void game too many": "UPDATE spsa_iteration SET void_games = void_games + 1 WHERE k = 2",
    "a batch that is not reported any more": (
        f"UPDATE spsa_batch SET status = 'ready', claim_id = NULL, {NOTHING}"  # noqa: S608
        " WHERE seq = 1 AND iteration_id = (SELECT id FROM spsa_iteration WHERE k = 2)"
    ),
}


@pytest.mark.parametrize("name", MISCOUNTED)
def test_no_step_is_made_of_counts_that_are_not_the_sums_over_the_batches(run, sql, name):
    store, before = run.store, run.now()
    played = store.iterations(run.run.id)[1]
    sql(MISCOUNTED[name])
    for _ in range(2):
        with pytest.raises(IllegalTransition, match=r"iteration 2 has .*its batches have"):
            store.apply(run.master, played.id, *step_from(before, played.tally))
        run.view()
    now = run.now()
    assert (now.status, now.applied, now.theta) == (RunStatus.PAUSED, 1, before.theta)
    assert "`spsa-master doctor` shows both" in now.reason
    told = [event.kind for event in store.events(run.run.id)]
    assert told.count("paused") == 1 and "failed" not in told
    assert any(" iteration 2: " in violation for violation in check_run(store, now))


def test_an_iteration_that_lacks_games_of_its_batches_does_not_wait_for_them(run, sql):
    sql(f"UPDATE spsa_iteration SET games_played = 0, {NOTHING} WHERE k = 2")  # noqa: S608
    reason = run.view().run.reason
    assert reason.startswith("iteration 2 has 0 games ")


def test_a_validation_is_not_completed_on_other_counts_than_its_batches(run, sql):
    store = run.store
    store.open_iteration(run.master, new_validation(opened_on=1))
    run.play()
    match = store.iterations(run.run.id)[-1]
    sql("UPDATE spsa_iteration SET void_games = 7 WHERE id = :id", id=match.id)
    with pytest.raises(IllegalTransition, match="iteration 4 has"):
        store.complete_validation(run.master, match.id, 0.0)
    assert store.iterations(run.run.id)[-1].status is IterationStatus.IN_PROGRESS


def test_reads_at_one_moment_do_not_see_what_is_written_meanwhile(store):
    run = stage(store)
    run.open(target_games=4)
    with store.at_one_moment() as frozen:
        before = frozen.batches(run.run.id), frozen.run("first")
        store.report(claim := run.claim("x"), result_of(claim))
        store.pause("first", "me", "why")
        assert (frozen.batches(run.run.id), frozen.run("first")) == before
    assert store.batches(run.run.id) != before[0]
    assert store.run("first").status == "paused"
