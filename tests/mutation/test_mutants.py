"""Eight defects that would count wrongly: a story finds each one, and holds without it.

`make mutants` tries hundreds, against many more tests. The first three are those that an earlier
version of these tests did not notice.
"""

import os
from collections import deque

import pytest
from builders import LEASE, new_worker, result_of, stage
from cutting import CutStore
from protocol import Protocol
from protocol_server import machine as on_server  # noqa: F401
from protocol_stories import STORIES, tell

from mutation.targets import Mutant, picked
from spsa.db.connection import create_engine, parse_url
from spsa.errors import DatabaseUnreachable
from worker.batches.database_client import POLL, DatabaseClient, PendingReport

STATEMENTS, FUNCTIONS = "worker_statements.sql", "worker_functions.sql"
VOIDS = "claim fail:2 claim:2 report:1"
TWICE = STORIES["a report is repeated, and a lie"]

ON_SQLITE = {
    "void games are written, not added": (
        picked(STATEMENTS, "report", "void_games = void_games +", "void_games = min"),
        VOIDS,
    ),
    "a report that comes twice is counted twice": (
        picked(STATEMENTS, "report", "AND status = 'leased'", "(nothing)"),
        TWICE,
    ),
    "whoever had a batch before may fail it": (
        picked(STATEMENTS, "fail", "AND claim_id = :claim_id", "(nothing)"),
        "claim a_lease_runs_out claim:2 fail",
    ),
    "a master that was replaced still writes": (
        picked(
            "spsa/db/master_lease.py",
            "MasterLeaseQueries._locked_run",
            ".where",
            "without runs.c.epoch == master_lease.epoch",
        ),
        STORIES["a master of the same name is another one"],
    ),
}
ON_POSTGRESQL = {
    "void games are written, not added": (
        picked(FUNCTIONS, "spsa_report", "void_games = void_games +", "void_games = least"),
        VOIDS,
    ),
    "a report that comes twice is counted twice": (
        picked(FUNCTIONS, "spsa_report", "AND b.status = 'leased'", "(nothing)"),
        TWICE,
    ),
    "a lease is no lease": (
        picked(
            FUNCTIONS,
            "spsa_lease_batch",
            "b.lease_expires_at < statement_timestamp()",
            "b.lease_expires_at >= statement_timestamp()",
        ),
        STORIES["a zombie comes back"],
    ),
}


def holds(act) -> bool:
    """Whether `act` passes, in a process of its own that it may spoil."""
    child = os.fork()
    if child == 0:
        try:
            act()
        except BaseException:  # noqa: BLE001 (a defect may raise anything)
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("defect", ON_SQLITE)
def test_a_defect_is_found_on_sqlite(defect, sqlite_template):
    mutant, story = ON_SQLITE[defect]
    machine = type("Chosen", (Protocol,), {"template": sqlite_template})

    def told(mutant: Mutant | None):
        if mutant is not None:
            mutant.make()
        tell(machine, story)

    assert holds(lambda: told(None))
    assert not holds(lambda: told(mutant))


@pytest.mark.slow
@pytest.mark.parametrize("defect", ON_POSTGRESQL)
def test_a_defect_is_found_on_postgresql(defect, on_server, postgresql_url):  # noqa: F811
    mutant, story = ON_POSTGRESQL[defect]
    tell(on_server, story)
    engine = create_engine(parse_url(postgresql_url), durable=False)
    with engine.begin() as connection, connection.connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL search_path = public, pg_temp; {mutant.script}")
    engine.dispose()
    with pytest.raises(AssertionError):
        tell(on_server, story)


class Forgetful(DatabaseClient):
    """Clears what it has to deliver before the database has answered."""

    def deliver(self):
        waiting, self._reports = self._reports, deque()
        for report in waiting:
            self._deliver(report)


@pytest.mark.parametrize("kind", [DatabaseClient, Forgetful])
def test_reports_that_are_cleared_before_the_answer_are_missed(kind, sqlite_url):
    with CutStore(sqlite_url) as store:
        run = stage(store)
        run.open()
        client = kind(store, new_worker("machine-1"), LEASE, POLL)
        claim = client.claim()
        client.enqueue(PendingReport(claim=claim, result=result_of(claim)))
        store.cut_next("before")
        with pytest.raises(DatabaseUnreachable):
            client.deliver()
        client.deliver()
        (iteration,) = store.iterations(run.run.id)
        assert iteration.games_played == (4 if kind is DatabaseClient else 0)
