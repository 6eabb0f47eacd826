"""Two runs in one database: what is done to one of them changes nothing of the other."""

import pytest
from builders import LEASE, Stage, new_validation, result_of, stage
from invariants import broken

from spsa.db.purge_queries import PurgePlan, Selection
from spsa.errors import IllegalTransition, MasterLeaseLost

TABLES = {
    "spsa_run": "SELECT * FROM spsa_run t WHERE id = :run",
    "spsa_iteration": "SELECT * FROM spsa_iteration t WHERE run_id = :run ORDER BY id",
    "spsa_batch": "SELECT t.* FROM spsa_batch t JOIN spsa_iteration i ON i.id = t.iteration_id"
    " WHERE i.run_id = :run ORDER BY t.id",
    "spsa_step": "SELECT * FROM spsa_step WHERE run_id = :run ORDER BY id",
    "spsa_event": "SELECT * FROM spsa_event WHERE run_id = :run ORDER BY id",
    "spsa_purge": "SELECT * FROM spsa_purge WHERE run_id = :run ORDER BY id",
}


class Two:
    """Each run has a complete iteration, and an open one with a batch reported and one leased."""

    def __init__(self, store, sql) -> None:
        self.store, self.sql = store, sql
        self.one, self.claim = self.begun("one")
        self.two, claim = self.begun("two")
        # the batch that is leased in `two` was left behind by all who may try it
        sql("UPDATE spsa_batch SET max_attempts = 1 WHERE id = :id", id=claim.batch_id)
        sql.expire(claim.batch_id)

    def begun(self, name):
        on = stage(self.store, name=name, max_iterations=9)
        on.open()
        on.play(name)
        on.apply()
        on.open()
        first, second = on.claim(f"{name} first"), on.claim(f"{name} second")
        self.store.report(first, result_of(first, voids={"crash": 1}))
        return on, second

    def rows(self, on: Stage):
        return {
            table: [tuple(map(str, row)) for row in self.sql(query, run=on.run.id)]
            for table, query in TABLES.items()
        }


@pytest.fixture
def two(store, sql):
    made = Two(store, sql)
    yield made
    assert broken(sql) == []


def tick(two):
    view = two.store.tick(two.one.master, LEASE)
    assert (view.opened, len(view.open), view.failed) == (2, 1, [])
    assert (view.ready_games, view.leased_games, view.leased_batches) == (0, 4, 1)


def apply(two):
    two.store.report(two.claim, result_of(two.claim))
    two.one.apply()


def abandon(two):
    row = opened_validation(two)
    two.store.abandon_validation(two.one.master, row.id)
    statuses = [it.status for it in two.store.iterations(two.one.run.id)]
    assert statuses == ["complete", "in_progress", "abandoned"]
    with pytest.raises(IllegalTransition):
        two.store.abandon_validation(two.one.master, row.id)


def opened_validation(two):
    two.store.open_iteration(two.one.master, new_validation(opened_on=1))
    return two.store.iterations(two.one.run.id)[-1]


def validate(two):
    row = opened_validation(two)
    two.one.play("validation")
    two.store.complete_validation(two.one.master, row.id, 12.5)
    assert two.store.iterations(two.one.run.id)[-1].elo_diff == 12.5


def stop(two):
    two.store.stop("one", "me", "why")
    assert [it.status for it in two.store.iterations(two.one.run.id)] == ["complete", "abandoned"]


def test_a_run_that_is_resumed_leaves_the_other(two):
    two.sql("UPDATE spsa_run SET status = 'paused'")
    for claim_id in ("one second", "two second"):
        two.sql(
            "UPDATE spsa_batch SET status = 'failed', claim_id = NULL, lease_expires_at = NULL"
            " WHERE claim_id = :claim_id",
            claim_id=claim_id,
        )
    before = two.rows(two.two)
    two.store.resume("one", "me")
    assert two.rows(two.two) == before
    two.sql("UPDATE spsa_batch SET status = 'ready', attempt = 0 WHERE status = 'failed'")


def purge(two):
    """Everything that the worker has played or has, of both open iterations, but in one run."""
    run = two.one.now()
    selection = Selection(worker="machine-1", iterations=(2,))
    done = two.store.purge(PurgePlan(run=run, selection=selection, matches=()), "me", "why")
    assert (done.games, done.number) == (4, 1)
    assert [b.status for b in two.store.batches(run.id)][-2:] == ["ready", "ready"]
    found = [two.store.purged_batches(run.id, it.id) for it in two.store.iterations(run.id)]
    assert [[one.iteration_number for one in purged] for purged in found] == [[], [2]]
    assert two.store.purged_batches(two.two.run.id) == two.store.purges(two.two.run.id) == []


VERBS = {
    "acquire": lambda two: two.store.acquire_master_lease(two.one.run.id, "m1", LEASE),
    "resign": lambda two: two.store.release_master_lease(two.one.master),
    "open": lambda two: two.one.open(k=3, opened_on=1, in_flight=2),
    "pause": lambda two: two.store.pause("one", "me", "why"),
    "extend": lambda two: two.store.extend("one", "me", 9),
    "prioritize": lambda two: two.store.prioritize("one", "me", priority=2, share=3.0),
    **{verb.__name__: verb for verb in (tick, apply, abandon, validate, stop, purge)},
}


@pytest.mark.parametrize("verb", VERBS)
def test_what_is_done_to_one_run_leaves_the_other(two, verb):
    before, own = two.rows(two.two), two.rows(two.one)
    VERBS[verb](two)
    assert two.rows(two.two) == before
    assert two.rows(two.one) != own


def test_a_validation_is_abandoned_by_its_master_only(two):
    row = opened_validation(two)
    with pytest.raises(IllegalTransition):
        two.store.abandon_validation(two.two.master, row.id)
    (tuned, _, _) = two.store.iterations(two.one.run.id)
    with pytest.raises(IllegalTransition):
        two.store.abandon_validation(two.one.master, tuned.id)
    VERBS["acquire"](two)
    with pytest.raises(MasterLeaseLost):
        two.store.abandon_validation(two.one.master, row.id)


def test_a_level_that_is_refused_is_told_of_once_in_each_run(two):
    for on in (two.one, two.two):
        for k in (3, 4):
            on.open(k=k, opened_on=1, in_flight=3, refused={"x86-64-v3": "another bench"})
        told = two.store.events(on.run.id, kinds=["level_refused"])
        assert [one.detail["level"] for one in told] == ["x86-64-v3"]
