"""What the triggers refuse on both databases, whoever writes the SQL."""

import pytest
import sqlalchemy as sa
from builders import result_of, stage
from invariants import miscounted
from shell import Shell

from spsa.db.sql_files import definitions
from spsa.db.store import open_store
from spsa.errors import IllegalTransition
from spsa.lifecycle import BatchStatus

SUMS = "does not have the sums of its batches"
NOT_PLAYED = r"takes no (more )?results"


@pytest.fixture
def run(store):
    """One complete iteration, and one with a batch reported, of two."""
    started = stage(store, max_iterations=9)
    started.whole_iteration()
    started.open()
    store.report(claim := started.claim("x"), result_of(claim, voids={"crash": 1}))
    return started


def rows(run):
    return run.store.iterations(run.run.id), run.store.batches(run.run.id)


WRONG = {
    "an iteration's void games alone": (
        "UPDATE spsa_iteration SET void_games = void_games + 1 WHERE k = 2",
        SUMS,
    ),
    "an iteration's games alone": (
        "UPDATE spsa_iteration SET games_played = games_played + 2, draws = draws + 2,"
        " ptnml_2 = ptnml_2 + 1 WHERE k = 2",
        SUMS,
    ),
    "games that are moved from wins to losses": (
        "UPDATE spsa_iteration SET plus_wins = minus_wins, minus_wins = plus_wins,"
        " ptnml_0 = ptnml_4, ptnml_1 = ptnml_3, ptnml_3 = ptnml_1, ptnml_4 = ptnml_0"
        " WHERE k = 1",
        SUMS,
    ),
    "an iteration whose purged games nobody purged": (
        "UPDATE spsa_iteration SET struck_games = games_played, games_played = 0, plus_wins = 0,"
        " minus_wins = 0, draws = 0, ptnml_0 = 0, ptnml_1 = 0, ptnml_2 = 0, ptnml_3 = 0,"
        " ptnml_4 = 0 WHERE k = 1",
        SUMS,
    ),
    "a batch that is done and gets other counts": (
        "UPDATE spsa_batch SET draws = draws + 2 WHERE status = 'done'",
        "counts",
    ),
    "a batch that is done without its games": (
        "UPDATE spsa_batch SET status = 'done', claim_id = 'forged' WHERE status = 'ready'",
        "counts",
    ),
    "a batch that is given up and keeps its games": (
        "UPDATE spsa_batch SET status = 'failed' WHERE status = 'done'",
        "counts",
    ),
    "a batch of an iteration that is not being played": (
        "UPDATE spsa_batch SET status = 'done', claim_id = 'forged', draws = 4, ptnml_2 = 2"
        " WHERE status = 'ready' AND iteration_id ="
        " (SELECT id FROM spsa_iteration WHERE status = 'pending') AND seq = 0",
        NOT_PLAYED,
    ),
    "a batch that counts is deleted": (
        "DELETE FROM spsa_batch WHERE status = 'done'",
        "neither inserted nor deleted",
    ),
    "a batch begins with games": (
        "INSERT INTO spsa_batch (iteration_id, seq, games, seed, status, max_attempts, claim_id,"
        " plus_wins, minus_wins, ptnml_2) SELECT iteration_id, 99, 2, seed, 'done', 5, 'forged',"
        " 1, 1, 1 FROM spsa_batch WHERE status = 'ready' LIMIT 1",
        "neither inserted nor deleted",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_change_that_would_miscount_is_refused(run, sql, name):
    text, words = WRONG[name]
    run.open(k=3, opened_on=1, in_flight=2)
    before = rows(run)
    with pytest.raises(sa.exc.IntegrityError, match=words):
        sql(text)
    assert rows(run) == before


def test_a_defect_of_the_trigger_that_counts_is_refused(postgresql_url):
    """It adds a void game too many: seen with the last report, and with all that is no report."""
    right = definitions("postgresql")["function", "spsa_count"]
    wrong = right.replace("void_games + NEW.void_games", "void_games + 1 + NEW.void_games")
    sql = Shell(postgresql_url)
    sql(f"SET search_path = public, pg_temp; {wrong}")
    with open_store(postgresql_url, durable=False) as store:
        on = stage(store)
        on.open()
        first, last = on.claim("a"), on.claim("b")
        with pytest.raises(IllegalTransition, match=SUMS):
            store.fail(first, "crashed", void_games=1)
        assert store.report(first, result_of(first)) == "accepted"
        with pytest.raises(IllegalTransition, match=SUMS):
            store.report(last, result_of(last))
        (iteration,) = store.iterations(on.run.id)
        assert (iteration.games_played, iteration.target_games) == (4, 8)
        with pytest.raises(sa.exc.IntegrityError, match=SUMS):
            sql("UPDATE spsa_iteration SET status = 'abandoned'")
    sql.close()


def test_games_are_counted_whoever_reports_them(run, sql):
    sql(
        "UPDATE spsa_batch SET status = 'done', claim_id = 'by hand', draws = 4, ptnml_2 = 2,"
        " void_games = 5 WHERE status = 'ready'"
    )
    iteration = run.store.iterations(run.run.id)[1]
    assert (iteration.games_played, iteration.void_games) == (8, 6)
    assert miscounted(sql) == []


def test_other_counts_of_a_done_batch_move_its_iteration(run, sql):
    """Consistent ones; nothing is left to whoever writes the statement."""
    half = "plus_wins = 2, minus_wins = 2, draws = 0, ptnml_0 = 0, ptnml_1 = 0, ptnml_3 = 0"
    sql(f"UPDATE spsa_batch SET {half}, ptnml_4 = 0, ptnml_2 = 2 WHERE status = 'done'")  # noqa: S608
    assert miscounted(sql) == []
    assert all(batch.tally.wins in (0, 2) for batch in run.store.batches(run.run.id))


def test_several_batches_are_purged_by_one_statement(run, sql):
    counts = ("plus_wins", "minus_wins", "draws", "void_games", *(f"ptnml_{i}" for i in range(5)))
    zero = ", ".join(f"{name} = 0" for name in counts)
    sql(
        f"UPDATE spsa_batch SET status = 'purged', {zero} WHERE iteration_id ="  # noqa: S608
        " (SELECT id FROM spsa_iteration WHERE k = 1)"
    )
    iteration = run.store.iterations(run.run.id)[0]
    assert (iteration.games_played, iteration.struck_games) == (0, 8)
    purged = [b.status for b in run.store.batches(run.run.id)].count(BatchStatus.PURGED)
    assert purged == 2
