"""The views that people query: one text, the same answers from both databases."""

import pytest
from builders import new_worker, result_of, stage

from spsa.core.scoring import Tally
from spsa.db.base import COUNTS
from spsa.protocol import BatchResult, Failure


@pytest.fixture
def played(store):
    """Two applied iterations, one half played, one all won, and a worker that holds a batch."""
    run = stage(store, max_iterations=9)
    for _ in range(2):
        run.whole_iteration()
    run.open(target_games=12)
    run.store.report(claim := run.claim("x"), result_of(claim, voids={"hang": 2}, seconds=2.5))
    run.claim("y")
    run.open(k=4, opened_on=2, target_games=4, in_flight=2)
    while (claim := run.claim("last")).iteration_number != 4:
        run.store.release(claim)
        run.claim(f"away-{claim.seq}")
    run.store.report(claim, BatchResult(tally=Tally(4, 0, 0, (0, 0, 0, 0, 2))))
    return run


def test_progress_agrees_with_the_ledger(played, sql):
    rows = sql("SELECT * FROM spsa_progress ORDER BY iteration_number")
    known = played.store.iterations(played.run.id)
    for row, iteration in zip(rows, known, strict=True):
        for name in ("k", "status", "purpose", "void_games", *COUNTS):
            assert getattr(row, name) == getattr(iteration, name), name
        done = 100 * iteration.games_played / iteration.target_games
        assert (row.run, row.percent_done) == ("first", pytest.approx(done))


def test_progress_has_score_and_elo_where_they_exist(played, sql):
    played.open(k=5, opened_on=2, in_flight=3)
    rows = sql("SELECT k, score, elo FROM spsa_progress ORDER BY k")
    won = next(row for row in rows if row.k == 4)
    assert (won.score, won.elo) == (1.0, None)
    assert (rows[-1].score, rows[-1].elo) == (None, None)
    for row in rows[:3]:
        tally = played.store.iterations(played.run.id)[row.k - 1].tally
        score = (tally.wins + tally.draws / 2) / tally.games
        assert row.score == pytest.approx(score)
        assert 1 / (1 + 10 ** (-row.elo / 400)) == pytest.approx(score)


def test_the_history_of_a_parameter_is_that_of_the_log(played, sql):
    rows = sql("SELECT run, k, name, value FROM spsa_param_history ORDER BY k, name")
    steps = played.store.steps(played.run.id)
    thetas = [played.run.start_theta, *(step.theta_after for step in steps)]
    # SQLite writes a float as text of 15 digits
    assert [tuple(row) for row in rows] == [
        ("first", k, name, pytest.approx(theta[name], rel=1e-14))
        for k, theta in enumerate(thetas)
        for name in sorted(theta)
    ]


def test_worker_stats_agree_with_the_store(played, sql):
    (row,) = sql("SELECT * FROM spsa_worker_stats")
    (known,) = played.store.workers()
    for name in ("batches", "games", "games_leased", "void_games", "time_losses", "concurrency"):
        assert getattr(row, name) == getattr(known, name)
    assert row.worker == known.name
    assert row.seconds_played == 2.5
    assert row.last_report_at is not None


def test_void_games_count_for_the_worker_that_had_them(store, sql):
    run = stage(store)
    run.open(target_games=2, batches=[2])
    lost = run.claim("sick")
    for _ in range(2):  # a repeated call changes nothing
        store.fail(lost, Failure(reason="it crashed", void_games=3))
    sound = store.register_worker(new_worker("sound", host="other"))
    claim = store.claim("sound", sound, 60.0)
    store.report(claim, result_of(claim, voids={"crash": 1, "hang": 1}))

    def counted():
        known = {one.name: one.void_games for one in store.workers()}
        rows = sql("SELECT worker, void_games FROM spsa_worker_stats")
        assert dict(map(tuple, rows)) == known
        return known

    assert counted() == {"machine-1": 3, "sound": 2}
    assert {one.worker: one.void_games for one in store.worker_shares(run.run.id)} == {"sound": 2}
    store.release_machine("machine", "me")
    assert counted() == {"machine-1": 0, "sound": 2}
