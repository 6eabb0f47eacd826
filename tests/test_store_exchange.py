"""Results handed in and batches taken out in one call: each part is answered for itself."""

import pytest
from builders import LEASE, new_iteration, new_run, new_worker, result_of, stage

from spsa.errors import IllegalTransition, LeaseLost, ReportConflict
from spsa.lifecycle import BatchStatus, IterationStatus
from spsa.scoring import Tally
from spsa.store import BatchResult


@pytest.fixture
def run(store):
    """A run with two iterations open, of two batches each."""
    started = stage(store)
    started.open(k=1, in_flight=2)
    started.open(k=2, in_flight=2)
    return started


def exchange(run, reported=(), claim_ids=()):
    return run.store.exchange(reported, claim_ids, run.worker, LEASE)


def played(claims):
    return [(claim, result_of(claim)) for claim in claims]


def places(claims):
    return [(claim.iteration_number, claim.seq) for claim in claims]


def iterations(run):
    return sorted(run.store.iterations(run.run.id), key=lambda it: it.iteration_number)


def test_as_many_as_are_wanted_are_taken_out_the_oldest_first(run):
    assert places(exchange(run, claim_ids="abc").claims) == [(1, 0), (1, 1), (2, 0)]
    assert [it.status for it in iterations(run)] == [IterationStatus.IN_PROGRESS] * 2
    assert places(exchange(run, claim_ids="de").claims) == [(2, 1)]
    assert exchange(run, claim_ids="f").claims == ()


def test_what_nobody_took_has_not_begun(run):
    exchange(run, claim_ids="a")
    started = [IterationStatus.IN_PROGRESS, IterationStatus.PENDING]
    assert [it.status for it in iterations(run)] == started


def test_results_of_several_iterations_count_where_they_belong(run):
    first = exchange(run, claim_ids="abc").claims
    reported = [(c, result_of(c, voids={"crash": 1 + n})) for n, c in enumerate(first)]
    answer = exchange(run, reported, "d")
    assert answer.answers == ("accepted",) * 3
    assert places(answer.claims) == [(2, 1)]
    one, two = iterations(run)
    assert one.tally == result_of(first[0]).tally + result_of(first[1]).tally
    assert two.tally == result_of(first[2]).tally
    assert (one.void_games, two.void_games) == (3, 3)


def test_the_same_call_again_is_answered_and_does_nothing(run):
    first = exchange(run, claim_ids="ab").claims
    once = exchange(run, played(first), "cd")
    again = exchange(run, played(first), "cd")
    assert again.answers == ("already", "already")
    assert again.claims == once.claims
    assert iterations(run)[0].games_played == 8


def test_what_is_refused_undoes_nothing_else(run, expire):
    lost, lied, good = exchange(run, claim_ids="abc").claims
    expire(lost.batch_id)
    assert run.claim("other").batch_id == lost.batch_id
    run.store.report(lied, result_of(lied))
    lie = BatchResult(tally=Tally(4, 0, 0, (0, 0, 0, 0, 2)))
    other = lie if result_of(lied).tally != lie.tally else BatchResult(tally=-lie.tally)
    answer = exchange(run, [(lost, result_of(lost)), (lied, other), (good, result_of(good))], "d")
    assert [type(one) for one in answer.answers] == [LeaseLost, ReportConflict, str]
    assert places(answer.claims) == [(2, 1)]
    assert iterations(run)[1].tally == result_of(good).tally


def test_an_abandoned_batch_is_refused_where_nothing_is_free(run):
    claims = exchange(run, claim_ids="a").claims
    run.store.stop("first", "me", "enough")
    answer = exchange(run, played(claims), "b")
    assert isinstance(answer.answers[0], LeaseLost)
    assert answer.claims == ()


def test_a_claim_that_was_reported_is_spent(run):
    claims = exchange(run, claim_ids="a").claims
    answer = exchange(run, played(claims), "ab")
    assert (answer.spent, places(answer.claims)) == ({"a"}, [(1, 1)])


def test_batches_left_behind_go_first(run, expire):
    lost = exchange(run, claim_ids="ab").claims
    expire(lost[1].batch_id)
    assert places(exchange(run, claim_ids="cd").claims) == [(1, 1), (2, 0)]


def test_counts_that_cannot_be_are_refused_and_nothing_is_kept(run):
    first, second = exchange(run, claim_ids="ab").claims
    impossible = BatchResult(tally=Tally(3, 0, 1, (0, 0, 0, 0, 2)))
    with pytest.raises(IllegalTransition):
        exchange(run, [(second, result_of(second)), (first, impossible)], "c")
    rows = run.store.batches(run.run.id)
    assert [row.status for row in rows[:2]] == [BatchStatus.LEASED] * 2
    assert iterations(run)[0].games_played == 0


def test_each_claim_draws_its_own_run(store):
    """Two runs of equal shares: of eight slots taken out at once each has about half."""
    worker = store.register_worker(new_worker())
    for name in ("one", "two"):
        own = store.create_run(new_run(name=name))
        master = store.acquire(own.id, "m", LEASE)
        store.open_iteration(master, new_iteration(k=1, target_games=40, batch_games=2))
    claims = store.exchange((), [f"c{n}" for n in range(8)], worker, LEASE).claims
    names = [claim.run_name for claim in claims]
    assert len({claim.batch_id for claim in claims}) == 8
    assert {names.count("one"), names.count("two")} <= {3, 4, 5}


def test_claims_of_several_runs_end_where_nothing_is_free(store):
    worker = store.register_worker(new_worker())
    for name in ("one", "two"):
        own = store.create_run(new_run(name=name))
        master = store.acquire(own.id, "m", LEASE)
        store.open_iteration(master, new_iteration(k=1, target_games=2, batch_games=2))
    claims = store.exchange((), ("a", "b", "c", "d"), worker, LEASE).claims
    assert sorted(claim.run_name for claim in claims) == ["one", "two"]
