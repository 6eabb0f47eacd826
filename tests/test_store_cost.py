"""What every tick, claim, renewal and report costs does not grow with the run."""

import pytest
import sqlalchemy as sa
from builders import LEASE, result_of, stage

from spsa.store import open_store

PLAYED = 60


@pytest.fixture
def long_run(database_url):
    with open_store(database_url, durable=False) as store:
        run = stage(store, max_iterations=PLAYED + 1)
        for _ in range(PLAYED):
            run.whole_iteration()
        run.open()
        yield run


class Plans:
    """The plan of each statement that is executed: of EXPLAIN, a line a row."""

    def __init__(self, store) -> None:
        self._engine = store._engine
        self._seen: list[tuple[str, object]] = []
        sa.event.listen(self._engine, "before_cursor_execute", self._note)

    def _note(self, connection, cursor, statement, parameters, context, many) -> None:
        if statement.startswith(("SELECT", "UPDATE")) and not many:
            self._seen.append((statement, parameters))

    def of(self, call) -> list[str]:
        self._seen.clear()
        call()
        seen, explain = list(self._seen), "EXPLAIN QUERY PLAN "
        with self._engine.connect() as connection:
            if self._engine.dialect.name == "postgresql":
                explain = "EXPLAIN "
                connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
            return [
                str(row[-1])
                for statement, parameters in seen
                for row in connection.exec_driver_sql(explain + statement, parameters)
            ]


def whole_scans(plan):
    """The lines that read all iterations or batches there are; a partial index is no such thing."""
    growing = ("spsa_iteration", "spsa_batch", "spsa_step")
    sqlite = tuple(f"SCAN {table}" for table in growing)
    return [
        line
        for line in plan
        if (line.startswith(sqlite) and "_open" not in line)
        or any(f"Seq Scan on {table}" in line for table in growing)
        or ("(run_id=?)" in line and "_open" not in line and "COVERING" not in line)
    ]


def test_no_call_reads_the_whole_run(long_run):
    store, held = long_run.store, {}
    plans = Plans(store)

    def claim():
        held["claim"] = long_run.claim("one")

    calls = {
        "tick": lambda: store.tick(long_run.master, LEASE),
        "claim": claim,
        "renew": lambda: store.renew(["one"], LEASE),
        "report": lambda: store.report(held["claim"], result_of(held["claim"])),
        "work left": store.work_left,
        "retire": lambda: store.retire_engines(long_run.master, PLAYED - 1),
        "fail": lambda: store.fail(long_run.claim("two"), "broken"),
    }
    found = {name: whole_scans(plans.of(call)) for name, call in calls.items()}
    assert found == {name: [] for name in calls}
