"""A worker's verbs: claim, renew, report, release, fail; and what is kept of a batch.

`test_protocol_model` has what may be claimed, and what counts, in any order of calls.
"""

import json

import pytest
from builders import LEASE, new_iteration, new_validation, new_worker, result_of, stage

from spsa.errors import LeaseLost, ReportConflict, TooManyRequests
from spsa.lifecycle import IterationStatus
from spsa.protocol import BatchResult, Failure, KeptVoid, Measured

COSTS = {
    "plus_nodes": 11,
    "minus_nodes": 12,
    "moves": 13,
    "plus_time_losses": 1,
    "minus_time_losses": 2,
    "seconds": 1.5,
    "think_seconds": 1.25,
    "slot": 3,
}


@pytest.fixture
def run(store):
    """A run whose first iteration, of two batches, is open."""
    started = stage(store)
    started.open()
    return started


@pytest.fixture
def short(store):
    """A run whose only batch may be tried nine times."""
    started = stage(store)
    started.open(target_games=4, max_attempts=9)
    return started


def iteration(run):
    return run.store.iterations(run.run.id)[-1]


def test_a_claim_says_all_that_has_to_be_played(run):
    assert iteration(run).status is IterationStatus.PENDING
    claim, second, new = run.claim("a"), run.claim("b"), new_iteration()
    assert iteration(run).status is IterationStatus.IN_PROGRESS
    assert [(c.seq, c.attempt, c.first_pair, c.pairs) for c in (claim, second)] == [
        (0, 1, 0, 2),
        (1, 1, 2, 2),
    ]
    assert (claim.run_name, claim.run_seed, claim.iteration_number) == ("first", 42, 1)
    plus, minus = new.sides.plus, new.sides.minus
    assert (claim.plus.sha256, claim.plus.path) == (plus.engine.sha256, plus.engine.path)
    assert (claim.plus.options, claim.minus.options) == (plus.options, minus.options)
    assert claim.game_settings == new.row.game_settings
    assert claim.lease_seconds == LEASE


def test_a_refusal_says_why(run):
    claim, other = run.claim("a"), run.claim("b")
    right = result_of(claim)
    run.store.report(claim, right)
    with pytest.raises(LeaseLost, match="was already reported"):
        run.claim("a")
    with pytest.raises(ReportConflict, match="already reported with other counts"):
        run.store.report(claim, BatchResult(tally=right.tally + -right.tally))
    run.store.stop("first", "me", "enough")
    assert iteration(run).status is IterationStatus.ABANDONED
    with pytest.raises(LeaseLost, match="its iteration is over"):
        run.store.report(other, result_of(other))
    assert not run.store.work_left()


def test_a_worker_holds_no_more_than_it_plays_soon_and_nothing_of_what_is_over(store):
    run, most = stage(store), 2 * new_worker().concurrency + 2
    for match in range(2):
        store.open_iteration(run.master, new_validation(target_games=100, batch_games=2))
        assert None not in [run.claim(f"{match}-{n}") for n in range(most)]
        with pytest.raises(TooManyRequests, match=f"holds {most} batches already"):
            run.claim(f"{match}-more")
        store.abandon_validation(run.master, store.matches(run.run.id)[-1].id)


def test_a_lease_is_renewed_for_a_week_and_no_longer(run, sql):
    claim = run.claim("a")
    assert run.store.renew(run.worker, ["a"], LEASE) == {"a"}
    sql("UPDATE spsa_batch SET leased_at = '2020-01-01 00:00:00.000'")
    assert run.store.renew(run.worker, ["a"], LEASE) == set()
    assert run.store.report(claim, result_of(claim)) == "accepted"


def test_registering_again_is_the_same_worker_brought_up_to_date(store, sql):
    first = store.register_worker(new_worker())
    sql("UPDATE spsa_worker SET last_seen_at = :then", then="2000-01-01 00:00:00.000")
    changed = {"platform": "BSD", "cores": 3, "concurrency": 2, "version": "9", "sandbox": "x"}
    assert store.register_worker(new_worker(**changed)) == first
    for told in (Measured(nps=1.0), Measured(nps=1.5e6, scale=1.25), Measured()):
        store.touch_worker(first, told)
    (stored,) = sql("SELECT * FROM spsa_worker")
    assert {name: stored._mapping[name] for name in changed} == changed
    (row,) = store.workers()
    assert (row.nps, row.scale) == (1.5e6, 1.25)
    assert 0 <= row.seconds_since_seen < 60
    assert store.register_worker(new_worker("machine-2")) != first


def test_a_batch_keeps_what_its_games_have_cost(short, sql):
    claim = short.claim("a")
    short.store.report(claim, result_of(claim, voids={"crash": 2, "hang": 1}, **COSTS))
    (row,) = sql("SELECT * FROM spsa_batch")
    kept = row._mapping
    assert {name: kept[name] for name in COSTS} == COSTS
    voids = kept["voids"]
    assert (json.loads(voids) if isinstance(voids, str) else voids) == {"crash": 2, "hang": 1}
    assert (kept["void_games"], kept["worker_id"]) == (3, short.worker.id)
    assert kept["claim_id"] == claim.claim_id
    assert kept["leased_at"] <= kept["reported_at"] <= kept["lease_expires_at"]


def test_the_last_void_games_are_kept_with_the_machine_that_had_them(short):
    store = short.store
    other, third = (
        store.register_worker(new_worker(name, host=name)) for name in ("other", "third")
    )

    def report(name, worker, **over):
        claim = store.claim(name, worker, LEASE)
        store.report(claim, result_of(claim, **over))

    def kept(pair):
        where = {"white": "plus", "position": "position startpos", "output": ""}
        return [KeptVoid(pair=pair, culprit="minus", detail="crash", **where)]

    def known():
        return [(void.machine, void.kept.pair) for void in store.void_games(short.run.id, 9)]

    store.fail(short.claim("a"), Failure(reason="it broke", void_games=1, kept_voids=kept(1)))
    assert known() == [("machine", 1)]
    store.fail(store.claim("b", other, LEASE), Failure(reason="no book"))
    assert known() == [("machine", 1)]
    report("c", third, voids={"crash": 1}, kept_voids=kept(2))
    assert known() == [("third", 2)]
    short.open(k=2, in_flight=2, target_games=4)
    store.fail(short.claim("d"), Failure(reason="it broke", void_games=1, kept_voids=kept(3)))
    report("e", other)
    assert known() == [("third", 2), ("machine", 3)]


def test_leases_that_a_machine_lost_and_batches_that_it_failed_are_told_apart(short, sql):
    def failure():
        return sql("SELECT machine, failures, lost_leases, sha256, reason FROM spsa_failure")

    for name in ("a", "b"):
        sql.expire(short.claim(name).batch_id)
    claim = short.claim("c")
    assert failure() == [("machine", 0, 2, None, None)]
    short.store.fail(claim, Failure(reason="no engine", sha256="a" * 64))
    assert failure() == [("machine", 1, 2, "a" * 64, "no engine")]
    sql.expire(short.claim("d").batch_id)
    claim = short.claim("e")
    assert failure() == [("machine", 1, 3, "a" * 64, "no engine")]
    short.store.fail(claim, Failure(reason="no book", sha256="b" * 64))
    assert failure() == [("machine", 2, 3, "b" * 64, "no book")]
    assert [row.last_error for row in sql("SELECT last_error FROM spsa_batch")] == ["no book"]


def test_a_failure_is_dated_by_its_latest_time(short, sql):
    short.store.fail(short.claim("a"), Failure(reason="no engine"))
    sql("UPDATE spsa_failure SET at = :then", then="2000-01-01 00:00:00.000")
    assert short.store.tick(short.master, LEASE).machine_failures == [], "it is too long ago"
    short.store.fail(short.claim("b"), Failure(reason="no engine"))
    view = short.store.tick(short.master, LEASE)
    assert [(f.machine, f.batches) for f in view.machine_failures] == [("machine", 1)]
