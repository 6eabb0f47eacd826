"""Two runs in one database: what is done to one of them changes nothing of the other."""

import pytest
from builders import LEASE, Stage, new_engine, new_validation, result_of, stage
from invariants import broken

from spsa.core.game_settings import GameSettings, TimeControl, TimeKind
from spsa.db.purge_queries import PurgePlan, Selection
from spsa.errors import IllegalTransition, MasterLeaseLost

NAMED = ("ancient", "old", "kept", "young", "theirs")
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


def test_failures_are_of_their_own_run(two):
    (failed,) = two.two.view().failed
    assert failed.iteration_id == two.store.iterations(two.two.run.id)[-1].id
    assert two.store.tick(two.one.master, LEASE).failed == []


def test_a_level_that_is_refused_is_told_of_once_in_each_run(two):
    for on in (two.one, two.two):
        for k in (3, 4):
            on.open(k=k, opened_on=1, in_flight=3, refused={"x86-64-v3": "another bench"})
        told = two.store.events(on.run.id, kinds=["level_refused"])
        assert [one.detail["level"] for one in told] == ["x86-64-v3"]


def test_totals_are_of_their_own_run(two):
    for on in (two.one, two.two):
        totals = two.store.totals(on.run.id)
        rows = [b.tally for b in two.store.batches(on.run.id)]
        assert totals.tally == sum(rows[1:], rows[0])


def test_what_a_person_does_with_a_machine_is_an_event_in_every_run(two):
    two.store.set_aside("machine", "why", "me")
    assert two.store.withdraw_batches("machine", "me") == 2
    two.store.release_machine("machine", "them")
    for on in (two.one, two.two):
        told = two.store.events(on.run.id, 3)
        assert [(one.kind, one.actor, one.detail.get("batches")) for one in told] == [
            ("set_aside", "me", None),
            ("withdraw", "me", 2),
            ("release", "them", None),
        ]


def test_how_long_a_game_lasts_is_told_of_the_runs_own_latest_result(two, sql):
    sql("UPDATE spsa_batch SET seconds = id WHERE status = 'done'")
    for on in (two.one, two.two):
        ((seconds,),) = sql(
            "SELECT SUM(b.seconds) FROM spsa_batch b JOIN spsa_iteration i ON i.id = b.iteration_id"
            " WHERE i.run_id = :run AND i.k = 1",
            run=on.run.id,
        )
        assert two.store.tick(on.master, LEASE).game_seconds == seconds / 8


def test_a_run_with_several_miscounted_iterations_is_paused(two, sql):
    two.store.report(two.claim, result_of(two.claim))
    two.one.open(k=3, opened_on=1, in_flight=2)
    two.one.play("third")
    worse = "UPDATE spsa_iteration SET void_games = void_games {} 7 WHERE k > 1 AND run_id = :id"
    sql(worse.format("+"), id=two.one.run.id)
    view = two.one.view()
    assert view.run.status == "paused"
    assert "iteration 2 has 8 games" in view.run.reason
    assert two.two.now().status == "running"
    sql(worse.format("-"), id=two.one.run.id)


def whole(on, **engines):
    on.open(**engines)
    on.play(f"{on.run.name} {on.now().applied}")
    on.apply()


def test_the_binaries_of_an_old_iteration_are_given_up(two, sql):
    """Those that nothing younger, open or of another run names keep their bytes."""
    engines = {name: new_engine(name, content=name.encode()) for name in NAMED}
    ancient, old, kept, young, theirs = engines.values()
    other = stage(two.store, name="three", max_iterations=9)
    for _ in range(4):
        whole(other, plus=theirs, minus=kept)
    whole(other, plus=old, minus=kept)
    apply(two)
    whole(two.one, plus=ancient, minus=kept)
    whole(two.one, plus=old, minus=kept)
    two.one.open(plus=young, minus=kept)
    assert two.store.retire_engines(two.one.master, 4) == [old.sha256]
    left = {name: two.store.file(engine.sha256) for name, engine in engines.items()}
    assert left == {name: None if name == "old" else name.encode() for name in NAMED}


def test_an_iterations_times_are_in_milliseconds(two, sql):
    assert {(row.timelow_ms, row.timehigh_ms) for row in sql("SELECT * FROM spsa_iteration")} == {
        (50, 100)
    }
    nodes = TimeControl(kind=TimeKind.NODES, low=500, high=900)
    two.one.open(k=3, opened_on=1, in_flight=2, game_settings=GameSettings(time_control=nodes))
    (row,) = sql("SELECT timelow_ms, timehigh_ms FROM spsa_iteration WHERE k = 3")
    assert tuple(row) == (0, 0)
