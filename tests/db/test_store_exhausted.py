"""A batch is given up for what was tried with this batch, and for nothing else."""

import pytest
from builders import LEASE, new_worker, stage

from spsa.db.store import open_store
from spsa.lifecycle import BatchStatus, RunStatus

MACHINES = 5


@pytest.fixture
def fleet(database_url):
    with open_store(database_url, durable=False) as store:
        run = stage(store)
        run.open()
        workers = [
            store.register_worker(
                new_worker(f"failing-{n}", host=f"failing-{n}", secret=f"secret {n}")
            )
            for n in range(MACHINES)
        ]
        yield run, workers


def fail(store, worker, claim_id):
    claim = store.claim(claim_id, worker, LEASE)
    store.fail(claim, "does not start")
    return claim.seq


def failed(store, run):
    return [b.seq for b in store.batches(run.run.id) if b.status is BatchStatus.FAILED]


def test_failures_of_other_batches_do_not_count(fleet):
    run, workers = fleet
    seqs = [fail(run.store, workers[0], "one")]
    held = run.store.claim("held", workers[1], LEASE)
    seqs += [fail(run.store, worker, f"other {worker.id}") for worker in workers[2:4]]
    run.store.release(held)
    assert seqs == [0, 1, 1]  # three machines have failed a batch, none of them by all three
    assert run.store.tick(run.master, LEASE).run.status is RunStatus.RUNNING
    assert failed(run.store, run) == []


def test_a_batch_that_enough_machines_failed_is_given_up(fleet):
    run, workers = fleet
    allowed = 3
    seqs = [fail(run.store, worker, str(worker.id)) for worker in workers[:allowed]]
    assert len(set(seqs)) == 1
    assert run.store.tick(run.master, LEASE).run.status is RunStatus.PAUSED
    assert failed(run.store, run) == seqs[:1]
