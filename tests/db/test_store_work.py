"""A worker's verbs: claim, renew, report, release, fail."""

import pytest
from builders import LEASE, new_iteration, new_worker, result_of, stage

from spsa.core.scoring import Tally
from spsa.errors import IllegalTransition, LeaseLost, OutOfRange, ReportConflict
from spsa.lifecycle import IterationStatus
from spsa.protocol import BatchResult, Measured


@pytest.fixture
def run(store):
    """A run whose first iteration, of two batches, is open."""
    started = stage(store)
    started.open()
    return started


def batches(run):
    return run.store.batches(run.run.id)


def iteration(run):
    return run.store.iterations(run.run.id)[-1]


def test_claims_hand_out_batches_in_order_and_start_the_iteration(run):
    assert iteration(run).status is IterationStatus.PENDING
    first, second = run.claim("a"), run.claim("b")
    assert [(c.seq, c.attempt, c.first_pair, c.pairs) for c in (first, second)] == [
        (0, 1, 0, 2),
        (1, 1, 2, 2),
    ]
    assert run.claim("c") is None
    assert iteration(run).status is IterationStatus.IN_PROGRESS


def test_a_claim_says_all_that_has_to_be_played(run):
    claim, new = run.claim("a"), new_iteration()
    assert (claim.run_name, claim.run_seed, claim.iteration_number) == ("first", 42, 1)
    assert (claim.plus.sha256, claim.plus.path) == (new.sides.plus.sha256, new.sides.plus.path)
    assert claim.plus.options == new.sides.plus_options
    assert claim.minus.options == new.sides.minus_options
    assert claim.game_settings == new.row.game_settings
    assert claim.lease_seconds == LEASE


def test_a_claim_id_that_was_reported_gets_no_second_batch(run):
    run.store.report(claim := run.claim("a"), result_of(claim))
    with pytest.raises(LeaseLost, match="was already reported"):
        run.claim("a")


def test_a_report_counts_once_and_a_repeated_one_is_answered_already(run):
    claim = run.claim("a")
    result = result_of(claim, voids={"crash": 2}, plus_nodes=10, minus_nodes=20, seconds=1.5)
    assert run.store.report(claim, result) == "accepted"
    assert run.store.report(claim, result) == "already"
    row = iteration(run)
    assert (row.tally, row.games_played, row.void_games) == (result.tally, 4, 2)
    assert batches(run)[0].tally == result.tally
    assert batches(run)[0].void_games == 2


def test_other_counts_under_the_same_claim_are_a_conflict(run):
    claim = run.claim("a")
    right = result_of(claim)
    run.store.report(claim, right)
    with pytest.raises(ReportConflict, match="iteration 1 batch 0 of run first"):
        run.store.report(claim, BatchResult(tally=right.tally + -right.tally))
    assert iteration(run).tally == right.tally


def test_an_expired_lease_is_taken_over_before_a_free_batch(run, expire):
    released, lost = run.claim("a"), run.claim("b")
    run.store.release(released)
    expire(lost.batch_id)
    assert [run.claim(name).batch_id for name in "cd"] == [lost.batch_id, released.batch_id]


def test_a_lease_is_renewed_for_a_week_and_no_longer(run, sql):
    claim = run.claim("a")
    assert run.store.renew(run.worker, ["a"], LEASE) == {"a"}
    sql("UPDATE spsa_batch SET leased_at = '2020-01-01 00:00:00.000'")
    assert run.store.renew(run.worker, ["a"], LEASE) == set()
    assert run.store.report(claim, result_of(claim)) == "accepted"


def test_results_of_several_iterations_count_where_they_belong(run):
    run.open(k=2, in_flight=2)
    claims = [run.claim(name) for name in "abc"]
    assert [(c.iteration_number, c.seq) for c in claims] == [(1, 0), (1, 1), (2, 0)]
    for voids, claim in enumerate(claims, 1):
        run.store.report(claim, result_of(claim, voids={"crash": voids}))
    one, two = run.store.iterations(run.run.id)
    assert one.tally == result_of(claims[0]).tally + result_of(claims[1]).tally
    assert two.tally == result_of(claims[2]).tally
    assert (one.void_games, two.void_games) == (3, 3)


def test_a_stop_takes_the_work_away(run):
    claim = run.claim("a")
    run.store.stop("first", "me", "enough")
    assert iteration(run).status is IterationStatus.ABANDONED
    assert run.store.renew(run.worker, ["a"], LEASE) == frozenset()
    with pytest.raises(LeaseLost, match="its iteration is over"):
        run.store.report(claim, result_of(claim))
    assert batches(run)[0].tally == Tally()
    assert iteration(run).games_played == 0
    assert run.claim("b") is None
    assert not run.store.work_left()


@pytest.mark.parametrize(
    "tally",
    [
        Tally.of_pair(2, 2),
        Tally.of_pair(2, 2) + Tally.of_pair(1, 1) + Tally.of_pair(0, 0),
        Tally(2, 1, 1, (0, 1, 0, 1, 0)),
        Tally(4, 0, 0, (0, 0, 2, 0, 0)),
        Tally(5, -1, 0, (0, 0, 0, 0, 2)),
    ],
    ids=["half a batch", "too many", "a game off", "pairs that disagree", "negative"],
)
def test_the_database_refuses_counts_that_are_not_this_batch(run, tally):
    claim = run.claim("a")
    with pytest.raises((IllegalTransition, OutOfRange)):
        run.store.report(claim, BatchResult(tally=tally))
    assert iteration(run).games_played == 0
    assert run.store.report(claim, result_of(claim)) == "accepted"


def test_registering_again_is_the_same_worker_brought_up_to_date(store):
    first = store.register_worker(new_worker())
    assert store.register_worker(new_worker(concurrency=7)) == first
    store.touch_worker(first, Measured(nps=1.5e6, scale=1.25))
    store.touch_worker(first, Measured())
    (row,) = store.workers()
    assert (row.concurrency, row.nps, row.scale) == (7, 1.5e6, 1.25)
    assert 0 <= row.seconds_since_seen < 60
    assert store.register_worker(new_worker("machine-2")) != first


def test_a_workers_row_tells_what_it_has_done(run):
    run.store.report(claim := run.claim("a"), result_of(claim, plus_time_losses=1))
    run.claim("b")
    (row,) = run.store.workers()
    assert (row.batches, row.games, row.games_leased, row.time_losses) == (1, 4, 4, 1)
    assert {type(value) for value in (row.batches, row.games, row.games_leased)} == {int}
