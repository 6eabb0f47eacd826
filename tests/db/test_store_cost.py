"""What a tick, a claim, a renewal, a report and a look cost does not grow with the run.

Sums over a run read each of its rows once. PostgreSQL tells the plans of statements by its module
auto_explain; SQLite those of the statements that it is asked for.
"""

import pytest
import sqlalchemy as sa
from asking import Store
from builders import LEASE, result_of, stage

from spsa.lifecycle import Purpose
from spsa.protocol import Failure

PLAYED = 25


@pytest.fixture
def long_run(database_url, sql):
    """Its iterations were completed long ago, as the planner is told."""
    with Store(database_url, durable=False) as store:
        run = stage(store, max_iterations=PLAYED + 1)
        for _ in range(PLAYED):
            run.whole_iteration()
        run.open()
        if not store.is_file:
            sql("UPDATE spsa_iteration SET completed_at = '2020-01-01' WHERE status = 'complete'")
            sql("ANALYZE")
        yield run


class Plans:
    """The plans of the statements that a store executes, a line a row."""

    def __init__(self, store):
        self._lines = []
        if store.is_file:
            sa.event.listen(store._engine, "before_cursor_execute", self._explain)
        else:
            store._engine.dispose()
            sa.event.listen(store._engine, "connect", self._ask_for_plans)

    def _explain(self, connection, cursor, statement, parameters, context, many):
        if statement.startswith(("SELECT", "UPDATE", "WITH")) and not many:
            plan = cursor.connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)
            self._lines += [row[-1] for row in plan]

    def _ask_for_plans(self, driver, _record):
        """A server sends them as notices; SQLAlchemy would empty a list of these."""
        driver.notices = self
        with driver.cursor() as cursor:
            cursor.execute(
                "LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0;"
                " SET client_min_messages = log;"
                " SET enable_seqscan = off"
            )
        driver.commit()

    def append(self, notice):
        self._lines += notice.splitlines()

    def of(self, call):
        self._lines = []
        call()
        return self._lines


PARTIAL = ("_open", "_abandoned", "_validation", "_completed", "_ready", "_leased")
GROWING = ("spsa_iteration", "spsa_batch", "spsa_step", "spsa_failure")


def whole_scans(plan):
    """The lines that read all iterations or batches there are; a partial index is no such thing."""
    sqlite = tuple(f"SCAN {table}" for table in GROWING)
    return [
        line
        for line in plan
        if any(f"Seq Scan on {table}" in line for table in GROWING)
        or "ix_spsa_batch_worker_id (worker_id>?)" in line
        # a time that is no condition of the index is compared in every row of the iteration
        or ("Filter: " in line and "completed_at >" in line)
        or (
            (line.startswith(sqlite) or "(run_id=?)" in line)
            and "spsa_purge" not in line  # people make few of them
            and not any(name in line for name in (*PARTIAL, "COVERING"))
        )
    ]


@pytest.mark.slow
def test_no_call_reads_the_whole_run(long_run):
    store, held = long_run.store, {}
    plans = Plans(store)

    def claim():
        held["claim"] = long_run.claim("one")

    calls = {
        "tick": lambda: store.tick(long_run.master, LEASE),
        "claim": claim,
        "renew": lambda: store.renew(long_run.worker, ["one"], LEASE),
        "report": lambda: store.report(held["claim"], result_of(held["claim"])),
        "work left": store.work_left,
        "retire": lambda: store.retire_engines(long_run.master, PLAYED - 1),
        "fail": lambda: store.fail(long_run.claim("two"), Failure(reason="broken")),
        "rate": lambda: store.games_in_the_last(long_run.run.id, 300),
        "open ones": lambda: store.open_iterations(long_run.run.id),
        "validations": lambda: store.iterations(long_run.run.id, purpose=Purpose.VALIDATE, last=5),
        "matches": lambda: store.matches(long_run.run.id),
        "run_overviews": store.run_overviews,
        "path": lambda: store.theta_path(long_run.run.id, [0, 1, PLAYED // 2]),
    }
    told = {name: plans.of(call) for name, call in calls.items()}
    assert all(told.values()), "no plan was told"
    assert {name: whole_scans(plan) for name, plan in told.items()} == {name: [] for name in calls}
