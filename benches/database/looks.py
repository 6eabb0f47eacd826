"""What a master's tick and a `status` cost as a run grows."""

import statistics
import time
from collections.abc import Callable

import sqlalchemy as sa

from benches.database.scene import (
    LEASE,
    claimed,
    new_iteration,
    new_run,
    register,
    reported,
    shell,
    unmoved,
)
from spsa.db import Store
from spsa.db.run_view import MasterLease
from spsa.db.tables import Run
from spsa.protocol import BatchFailure, Failure, HeldClaim
from spsa.report.status import status

CALLS = 40
WORKERS = 8
GAMES = 4
_LONG_AGO = "'2026-01-01 00:00:00.000'"
# every batch of which the first iteration's was failed by a machine was failed by it too
_FAILURES = f"""
INSERT INTO spsa_failure (batch_id, machine, failures, reason, at)
SELECT b.id, f.machine, f.failures, f.reason, {_LONG_AGO}
  FROM spsa_failure f JOIN spsa_batch o ON o.id = f.batch_id
  JOIN spsa_batch b ON b.seq = o.seq AND b.id <> o.id
"""  # noqa: S608
_NUMBERS = "WITH RECURSIVE n(k) AS (SELECT 2 UNION ALL SELECT k + 1 FROM n WHERE k < :last) "


def make(url: str, length: int) -> None:
    """A run of so many complete iterations, two batches each, and one that is being played."""
    with Store(url, durable=False) as store:
        run = store.create_run(new_run("bench", length + 1))
        master = store.acquire_master_lease(run.id, "bench", LEASE)
        register(store, WORKERS)
        _play_one(store, master, run)
        if length > 1:
            with shell(url) as connection:
                _multiply(connection, length)
        store.open_iteration(master, new_iteration(length + 1, length, games=GAMES))
        claimed(store, "held", 1)
    _freshen(url)


def measure(url: str) -> tuple[float, float]:
    """Milliseconds of the median tick, and of the median status."""
    with Store(url) as store:
        run = store.run()
        master = store.acquire_master_lease(run.id, "bench", LEASE)
        return (
            _median(lambda: store.tick(master, LEASE)),
            _median(lambda: status(store, store.run())),
        )


def _median(call: Callable[[], object]) -> float:
    times = []
    for _ in range(CALLS):
        began = time.perf_counter()
        call()
        times.append(1000 * (time.perf_counter() - began))
    return statistics.median(times)


def _play_one(store: Store, master: MasterLease, run: Run) -> None:
    store.open_iteration(master, new_iteration(1, 0, games=GAMES))
    broken = claimed(store, "broken", 1)
    if broken is not None:
        failure = Failure(reason="does not start")
        store.ask(BatchFailure(held=HeldClaim.of(broken), failure=failure))
    for n in range(1, 1 + GAMES // 2):
        claim = claimed(store, f"first-{n}", 1 + n)
        if claim is not None:
            reported(store, claim)
    oldest = store.tick(master, LEASE).open[0]
    store.apply(master, oldest.id, run, unmoved(run))


def _multiply(connection: sa.Connection, last: int) -> None:
    """Write iterations 2 to `last` as copies of the first, their batches and steps too."""
    numbers = {
        "iteration_number": "n.k",
        "k": "n.k",
        "opened_on": "n.k - 1",
        "completed_at": _LONG_AGO,
    }
    copy_rows(connection, "spsa_iteration", numbers, "t.iteration_number = 1", last)
    its = "f.iteration_number = 1"
    claim = {
        "iteration_id": "i.id",
        "claim_id": "t.claim_id || '-' || n.k",
        "reported_at": _LONG_AGO,
    }
    copy_rows(connection, "spsa_batch", claim, its, last)
    copy_rows(connection, "spsa_step", {"iteration_id": "i.id", "k": "n.k"}, its, last)
    connection.execute(sa.text(_FAILURES))
    connection.execute(sa.text("UPDATE spsa_run SET applied = :last"), {"last": last})


def copy_rows(
    connection: sa.Connection, table: str, over: dict[str, str], which: str, last: int
) -> None:
    """Write rows like those `which` picks for k from 2 to `last`, but with the values of `over`."""
    names = [c["name"] for c in sa.inspect(connection).get_columns(table) if c["name"] != "id"]
    values = ", ".join(over.get(name, f"t.{name}") for name in names)
    source = f"{table} t"
    if table != "spsa_iteration":
        source += (
            " JOIN spsa_iteration f ON f.id = t.iteration_id JOIN spsa_iteration i ON i.k = n.k"
        )
    connection.execute(
        sa.text(
            f"INSERT INTO {table} ({', '.join(names)}) {_NUMBERS}"  # noqa: S608
            f"SELECT {values} FROM n CROSS JOIN {source} WHERE {which}"
        ),
        {"last": last},
    )


def _freshen(url: str) -> None:
    with shell(url) as connection:
        connection.exec_driver_sql("ANALYZE")
