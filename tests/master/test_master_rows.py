"""A row that no worker could have written stops no master: it is left out, or the run pauses."""

from builders import LEASE, result_of, stage

from spsa.lifecycle import RunStatus

DAMAGE = {
    "sqlite": ("PRAGMA ignore_check_constraints = ON", "9e999"),
    "postgresql": ("ALTER TABLE spsa_batch DROP CONSTRAINT ck_spsa_batch_seconds", "'NaN'"),
}


def test_a_number_that_is_none_is_left_out_of_the_mean(store, sql):
    run = stage(store)
    run.open()
    first, second = run.claim("a"), run.claim("b")
    store.report(first, result_of(first, seconds=8.0))
    store.report(second, result_of(second, seconds=8.0))
    unchecked, nonsense = DAMAGE[sql.dialect]
    with sql._engine.begin() as connection:
        connection.exec_driver_sql(unchecked)
        connection.exec_driver_sql(f"UPDATE spsa_batch SET seconds = {nonsense} WHERE id = 1")  # noqa: S608
    view = store.tick(run.master, LEASE)
    assert view.game_seconds == 1.0
    assert view.run.status is RunStatus.RUNNING


def test_counts_that_are_not_those_of_the_batches_pause_the_run(store, sql):
    """Written past the triggers, as by an owner who has switched them off."""
    run = stage(store)
    run.open()
    claim = run.claim("a")
    store.report(claim, result_of(claim))
    with sql._engine.begin() as connection:
        if sql.dialect == "postgresql":
            connection.exec_driver_sql("SET LOCAL session_replication_role = replica")
        else:
            connection.exec_driver_sql("DROP TRIGGER spsa_check_counts")
        connection.exec_driver_sql(
            "UPDATE spsa_iteration SET games_played = games_played + 2, draws = draws + 2,"
            " ptnml_2 = ptnml_2 + 1"
        )
    view = store.tick(run.master, LEASE)
    assert view.run.status is RunStatus.PAUSED
    assert "the counts of iteration 1 are not the sums of its batches" in str(view.run.reason)
