"""Which batch the next claim gets, at the edges: runs without work, machines that come and go."""

from itertools import count
from random import Random

import pytest
from builders import (
    LEASE,
    looked,
    new_iteration,
    new_run,
    new_validation,
    new_worker,
    result_of,
)

from spsa.errors import LeaseLost
from spsa.protocol import Failure, Measured

OTHER = "2000-01-01 00:00:00.000"


class Runs:
    """Several runs of one database, and one worker."""

    def __init__(self, store, sql) -> None:
        self.store, self.sql, self.asked = store, sql, count()
        self.worker = store.register_worker(new_worker())

    def open(self, name, batches=2, share=1.0, max_attempts=3):
        run = self.store.create_run(new_run(name=name, share=share))
        master = self.store.acquire_master_lease(run.id, f"m-{name}", LEASE)
        new = new_iteration(target_games=4 * batches, max_attempts=max_attempts)
        self.store.open_iteration(master, new)
        return run

    def claim(self, low=0.0, high=1.0, worker=None):
        """By a claim whose first two draws fall between these."""
        ids = ((f"claim {n}", Random(f"claim {n}")) for n in self.asked)
        drawn = next(
            claim_id
            for claim_id, chance in ids
            if low < chance.random() < high and low < chance.random() < high
        )
        return self.store.claim(drawn, worker or self.worker, LEASE)


@pytest.fixture
def runs(store, sql):
    return Runs(store, sql)


def played(runs, claim):
    runs.store.report(claim, result_of(claim))


def held(runs, claim):
    pass


def paused(runs, claim):
    runs.store.release(claim)
    runs.store.pause("idle", "me", "why")


def tried_enough(runs, claim):
    runs.store.release(claim)
    tried = "INSERT INTO spsa_failure (batch_id, machine, lost_leases) VALUES (:id, 'machine', 3)"
    runs.sql(tried, id=claim.batch_id)
    runs.sql("UPDATE spsa_batch SET attempt = 3 WHERE id = :id", id=claim.batch_id)


def left_and_tried_enough(runs, claim):
    runs.sql("UPDATE spsa_batch SET max_attempts = 1 WHERE id = :id", id=claim.batch_id)
    runs.sql.expire(claim.batch_id)


@pytest.mark.slow
@pytest.mark.parametrize("idle", [played, held, paused, tried_enough, left_and_tried_enough])
def test_only_a_run_with_a_free_batch_takes_part_in_the_draw(runs, idle):
    """Else the run of the next number would get the share of the idle one."""
    runs.open("idle", batches=1, share=10.0)
    idle(runs, runs.claim())
    runs.open("b")
    runs.open("c")
    assert runs.claim(0.55, 0.65).run_name == "c"
    assert runs.claim(0.2, 0.3).run_name == "b"


def test_batches_that_were_left_behind_take_part_in_the_draw(runs):
    runs.open("idle", batches=1, share=10.0)
    played(runs, runs.claim())
    runs.open("b", batches=1)
    runs.claim()
    runs.open("c", batches=1)
    runs.claim()
    runs.sql("UPDATE spsa_batch SET lease_expires_at = :then WHERE status = 'leased'", then=OTHER)
    assert runs.claim(0.55, 0.65).run_name == "c"


def test_slots_in_use_are_those_of_open_iterations_and_live_leases(runs):
    """b has two of three slots, so that c is due all of the draw."""
    runs.open("b", batches=5)
    for _ in range(2):
        runs.claim()
    runs.open("c", batches=5)
    assert runs.claim(0.0, 0.1).run_name == "c"


def test_a_reported_batch_is_no_slot_in_use(runs):
    """Both runs are due the same, and b begins the draw."""
    runs.open("b", batches=3)
    for _ in range(2):
        played(runs, runs.claim())
    runs.open("c")
    assert runs.claim(0.0, 0.1).run_name == "b"


def test_a_batch_of_an_abandoned_validation_is_no_slot_in_use(runs):
    run = runs.open("b", batches=1)
    tuning = runs.claim()
    master = runs.store.acquire_master_lease(run.id, "m-b", LEASE)
    runs.store.open_iteration(master, new_validation())
    for _ in range(2):
        runs.claim()
    runs.store.abandon_validation(master, runs.store.open_iterations(run.id)[-1].id)
    runs.store.release(tuning)
    runs.open("c")
    assert runs.claim(0.0, 0.1).run_name == "b"


def test_a_run_that_is_stopped_takes_its_own_work_away_and_no_others(runs):
    runs.open("stopped", batches=1)
    stopped = runs.claim()
    runs.open("going", batches=1)
    going = runs.claim()
    runs.store.stop("stopped", "me", "why")
    assert runs.store.renew(runs.worker, [stopped.claim_id, going.claim_id], LEASE) == {
        going.claim_id
    }
    with pytest.raises(LeaseLost):
        played(runs, stopped)
    played(runs, going)


def test_a_failure_does_not_replace_the_reason_of_a_pause(runs):
    run = runs.open("only", batches=1, max_attempts=1)
    claim = runs.claim()
    runs.store.pause("only", "me", "dinner")
    runs.store.fail(claim, Failure(reason="it broke"))
    master = runs.store.acquire_master_lease(run.id, "m-only", LEASE)
    view = looked(runs.store, master)
    assert (view.run.status, view.run.reason) == ("paused", "dinner")
    (event,) = runs.store.events(run.id, kinds=["failed"])
    assert "it broke" in event.detail["reason"]


def test_a_worker_that_registers_again_brings_its_row_up_to_date(store, sql):
    store.register_worker(new_worker("w"))
    sql("UPDATE spsa_worker SET last_seen_at = :then", then=OTHER)
    changed = {"platform": "BSD", "cores": 3, "concurrency": 2, "version": "9", "sandbox": "x"}
    store.register_worker(new_worker("w", **changed))
    (row,) = sql("SELECT * FROM spsa_worker")
    assert {name: row._mapping[name] for name in changed} == changed
    (seen,) = store.workers()
    assert seen.seconds_since_seen < 60


def test_a_worker_says_its_speed_where_it_knows_it(store, sql):
    worker = store.register_worker(new_worker("w"))
    for told, kept in ((None, None), (5.0, 5.0), (None, 5.0), (7.0, 7.0)):
        store.touch_worker(worker, Measured(nps=told))
        assert [row.nps for row in store.workers()] == [kept]
