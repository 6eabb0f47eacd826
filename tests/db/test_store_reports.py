"""What is kept of a batch that was reported, failed or left behind, on both databases."""

import json

import pytest
from builders import LEASE, new_worker, stage, tally_of_seed
from invariants import miscounted

from spsa.core.scoring import Tally
from spsa.protocol import BatchResult, Failure, KeptVoid

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
    """A run whose only batch may be tried nine times."""
    started = stage(store)
    started.open(target_games=4, max_attempts=9)
    return started


def reported(run, name, **over):
    claim = run.claim(name)
    result = BatchResult(tally=tally_of_seed(claim.seed, claim.pairs), **over)
    run.store.report(claim, result)
    return claim


def test_a_batch_keeps_what_its_games_have_cost(run, sql):
    claim = reported(run, "a", voids={"crash": 2, "hang": 1}, **COSTS)
    (row,) = sql("SELECT * FROM spsa_batch")
    kept = row._mapping
    assert {name: kept[name] for name in COSTS} == COSTS
    voids = kept["voids"]
    assert (json.loads(voids) if isinstance(voids, str) else voids) == {"crash": 2, "hang": 1}
    assert (kept["void_games"], kept["worker_id"]) == (3, run.worker.id)
    assert kept["claim_id"] == claim.claim_id
    assert kept["leased_at"] <= kept["reported_at"] <= kept["lease_expires_at"]


def test_void_games_add_up_over_attempts(run, sql):
    run.store.fail(run.claim("a"), Failure(reason="it broke", void_games=2))
    run.store.fail(run.claim("b"), Failure(reason="it broke again", void_games=1))
    reported(run, "c", voids={"crash": 4})
    ((of_batch,),) = sql("SELECT void_games FROM spsa_batch")
    ((of_iteration,),) = sql("SELECT void_games FROM spsa_iteration")
    assert (of_batch, of_iteration) == (7, 7)


def test_the_last_void_games_are_kept_with_the_machine_that_had_them(run):
    store = run.store
    other, third = (
        store.register_worker(new_worker(name, host=name)) for name in ("other", "third")
    )

    def report(name, worker, **over):
        claim = store.claim(name, worker, LEASE)
        result = BatchResult(tally=tally_of_seed(claim.seed, claim.pairs), **over)
        store.report(claim, result)

    def kept(pair):
        where = {"white": "plus", "position": "position startpos", "output": ""}
        return [KeptVoid(pair=pair, culprit="minus", detail="crash", **where)]

    def known():
        return [(void.machine, void.kept.pair) for void in store.void_games(run.run.id, 9)]

    store.fail(run.claim("a"), Failure(reason="it broke", void_games=1, kept_voids=kept(1)))
    assert known() == [("machine", 1)]
    store.fail(store.claim("b", other, LEASE), Failure(reason="no book"))
    assert known() == [("machine", 1)]
    report("c", third, voids={"crash": 1}, kept_voids=kept(2))
    assert known() == [("third", 2)]
    run.open(k=2, in_flight=2, target_games=4)
    store.fail(run.claim("d"), Failure(reason="it broke", void_games=1, kept_voids=kept(3)))
    report("e", other)
    assert known() == [("third", 2), ("machine", 3)]


def failure(sql):
    (row,) = sql("SELECT * FROM spsa_failure")
    return row.machine, row.failures, row.lost_leases, row.sha256, row.reason


def test_leases_that_a_machine_lost_and_batches_that_it_failed_are_told_apart(run, sql):
    for name in ("a", "b"):
        sql.expire(run.claim(name).batch_id)
    claim = run.claim("c")
    assert failure(sql) == ("machine", 0, 2, None, None)
    run.store.fail(claim, Failure(reason="no engine", sha256="a" * 64))
    assert failure(sql) == ("machine", 1, 2, "a" * 64, "no engine")
    sql.expire(run.claim("d").batch_id)
    claim = run.claim("e")
    assert failure(sql) == ("machine", 1, 3, "a" * 64, "no engine")
    run.store.fail(claim, Failure(reason="no book", sha256="b" * 64))
    assert failure(sql) == ("machine", 2, 3, "b" * 64, "no book")
    assert [row.last_error for row in sql("SELECT last_error FROM spsa_batch")] == ["no book"]


def test_a_failure_is_dated_by_its_latest_time(run, sql):
    run.store.fail(run.claim("a"), Failure(reason="no engine"))
    sql("UPDATE spsa_failure SET at = :then", then="2000-01-01 00:00:00.000")
    assert run.store.tick(run.master, LEASE).machine_failures == [], "it is too long ago"
    run.store.fail(run.claim("b"), Failure(reason="no engine"))
    view = run.store.tick(run.master, LEASE)
    assert [(f.machine, f.batches) for f in view.machine_failures] == [("machine", 1)]


def test_what_is_given_back_is_as_it_was(run, sql):
    claim = run.claim("a")
    run.store.release(claim)
    (row,) = sql("SELECT status, attempt, claim_id, lease_expires_at FROM spsa_batch")
    assert tuple(row) == ("ready", 0, None, None)
    assert sql("SELECT * FROM spsa_failure") == []


@pytest.mark.slow
def test_every_kind_of_pair_is_added(store, sql):
    """All nine results of a pair, two of each."""
    run = stage(store)
    run.open(target_games=36, batch_games=2)
    results = [Tally.of_pair(one, other) for one in range(3) for other in range(3)] * 2
    total = Tally()
    for number, tally in enumerate(results):
        total += tally
        store.report(run.claim(f"c{number}"), BatchResult(tally=tally, voids={"crash": number}))
        (iteration,) = store.iterations(run.run.id)
        assert (iteration.tally, iteration.games_played) == (total, total.games)
        assert iteration.void_games == number * (number + 1) // 2
    assert miscounted(sql) == []
