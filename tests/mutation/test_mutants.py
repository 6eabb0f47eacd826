"""Defects of several kinds: a story finds each one, and holds without it.

tests/db/test_protocol_model.py has more of the statements; `make mutants` tries hundreds, against
many more tests.
"""

import os
from collections import deque
from contextlib import closing

import pytest
from builders import LEASE, new_worker, result_of, stage
from cutting import CutStore
from protocol_machine import Place, ProtocolMachine
from protocol_stories import STORIES, tell
from shell import Shell

from mutation.targets import PROTOCOL, Mutant, picked
from spsa.errors import DatabaseUnreachable
from worker.batches.database_client import POLL, DatabaseClient, PendingReport

DEFECTS = {
    "a lease is no lease": (
        picked(PROTOCOL, "free", "b.lease_expires_at < ", "b.lease_expires_at >= "),
        STORIES["a late report"],
    ),
    "a batch is given up for as long as no machine failed it": (
        picked(PROTOCOL, "exhausted", "AND NOT ({gave_up})", "AND ({gave_up})"),
        STORIES["all machines that are there break a batch"],
    ),
    "a master that was replaced still writes": (
        picked(
            "spsa/db/run_view.py",
            "locked_run",
            "Run.id == master_lease.run_id",
            "without Run.epoch == master_lease.epoch",
        ),
        STORIES["a master of the same name is another one"],
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


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_is_found(defect, sqlite_url):
    mutant, story = DEFECTS[defect]

    def told(mutant: Mutant | None):
        if mutant is not None:
            mutant.make()
        with CutStore(sqlite_url) as store, closing(Shell(sqlite_url)) as shell:
            tell(type("Chosen", (ProtocolMachine,), {"place": Place(store, shell)}), story)

    assert holds(lambda: told(None))
    assert not holds(lambda: told(mutant))


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
