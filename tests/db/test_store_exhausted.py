"""A run pauses for a batch that two machines have failed, or all that there are."""

import pytest
from builders import LEASE, new_worker, result_of, stage

from spsa.lifecycle import BatchStatus, RunStatus
from spsa.protocol import Failure


class Fleet:
    """A run with one batch, or more, and machines by name."""

    def __init__(self, store, sql) -> None:
        self.store, self.sql, self.claims = store, sql, 0
        self.run, self.workers = stage(store), {}
        sql("DELETE FROM spsa_worker")

    def open(self, batches=1, **over):
        self.run.open(target_games=4 * batches, **over)

    def claim(self, name):
        """A batch for a machine, which registers if it is new."""
        if name not in self.workers:
            self.workers[name] = self.store.register_worker(new_worker(name, host=name))
        self.claims += 1
        return self.store.claim(f"claim {self.claims}", self.workers[name], LEASE)

    def fail(self, name):
        claim = self.claim(name)
        self.store.fail(claim, Failure(reason=f"{name} has no book"))
        return claim.seq

    def leave(self, name):
        """The machine claims a batch and is switched off."""
        self.sql.expire(self.claim(name).batch_id)

    def falls_silent(self, name):
        then = "2000-01-01 00:00:00.000"
        self.sql("UPDATE spsa_worker SET last_seen_at = :t WHERE host = :n", t=then, n=name)

    def tick(self):
        return self.store.tick(self.run.master, LEASE).run

    @property
    def failed(self):
        rows = self.store.batches(self.run.run.id)
        return [row.seq for row in rows if row.status is BatchStatus.FAILED]


@pytest.fixture
def fleet(store, sql):
    return Fleet(store, sql)


def test_attempts_of_one_machine_never_pause_a_run_that_another_one_plays(fleet):
    fleet.open(max_attempts=3)
    fleet.run.store.release(fleet.claim("other"))
    for _ in range(3):
        fleet.leave("one")
        assert fleet.tick().status is RunStatus.RUNNING
    assert fleet.claim("one") is None
    claim = fleet.claim("other")
    assert claim.attempt == 4
    fleet.store.report(claim, result_of(claim))
    assert (fleet.tick().status, fleet.failed) == (RunStatus.RUNNING, [])


def test_failures_of_one_machine_count_once_a_batch(fleet):
    """It tries again while it is alone; a second machine that comes later still gets the batch."""
    fleet.open(max_attempts=3)
    for _ in range(2):
        fleet.fail("one")
    assert fleet.tick().status is RunStatus.RUNNING
    assert fleet.claim("other") is not None
    assert fleet.tick().status is RunStatus.RUNNING


def test_a_machine_that_is_alone_pauses_the_run_when_its_attempts_are_used_up(fleet):
    fleet.open(max_attempts=3)
    for _ in range(3):
        assert fleet.tick().status is RunStatus.RUNNING
        fleet.fail("one")
    run = fleet.tick()
    assert (run.status, fleet.failed) == (RunStatus.PAUSED, [0])
    assert run.reason == "iteration 1 batch 0: one has no book (tried by 1 machine)"


def test_a_batch_that_a_lone_machine_leaves_every_time_pauses_the_run(fleet):
    fleet.open(max_attempts=2)
    for _ in range(2):
        assert fleet.tick().status is RunStatus.RUNNING
        fleet.leave("one")
    run = fleet.tick()
    assert run.status is RunStatus.PAUSED
    assert "every worker that claimed it disappeared without a report" in run.reason


def test_two_machines_that_are_all_there_are_pause_the_run(fleet):
    fleet.open(max_attempts=5)
    fleet.run.store.release(fleet.claim("other"))
    fleet.fail("one")
    assert fleet.tick().status is RunStatus.RUNNING
    fleet.fail("other")
    run = fleet.tick()
    assert (run.status, fleet.failed) == (RunStatus.PAUSED, [0])
    assert run.reason == "iteration 1 batch 0: other has no book (tried by 2 machines)"


def test_a_third_machine_is_asked_while_fewer_have_failed_than_may(fleet):
    fleet.open(max_attempts=3)
    for name in ("third", "other"):
        fleet.run.store.release(fleet.claim(name))
    fleet.fail("one")
    fleet.fail("other")
    assert fleet.tick().status is RunStatus.RUNNING
    fleet.fail("third")
    assert fleet.tick().status is RunStatus.PAUSED


def test_where_one_failure_is_allowed_another_machine_still_tries(fleet):
    fleet.open(max_attempts=1)
    fleet.run.store.release(fleet.claim("other"))
    fleet.fail("one")
    assert fleet.tick().status is RunStatus.RUNNING
    fleet.fail("other")
    assert fleet.tick().reason == "iteration 1 batch 0: other has no book (tried by 2 machines)"


def test_the_machine_that_is_left_decides(fleet):
    """One of two has failed and the other is switched off: the first may try again."""
    fleet.open(max_attempts=3)
    fleet.run.store.release(fleet.claim("other"))
    fleet.fail("one")
    assert fleet.claim("one") is None
    fleet.falls_silent("other")
    assert fleet.tick().status is RunStatus.RUNNING
    for _ in range(2):
        fleet.fail("one")
    assert fleet.tick().status is RunStatus.PAUSED


def test_a_batch_waits_while_no_machine_is_there(fleet):
    fleet.open(max_attempts=1)
    fleet.fail("one")
    fleet.falls_silent("one")
    assert (fleet.tick().status, fleet.failed) == (RunStatus.RUNNING, [])


def test_failures_of_other_batches_do_not_count(fleet):
    fleet.open(batches=2, max_attempts=2)
    seqs = [fleet.fail("one")]
    held = fleet.claim("other")
    seqs.append(fleet.fail("third"))
    fleet.store.release(held)
    assert seqs == [0, 1]
    assert (fleet.tick().status, fleet.failed) == (RunStatus.RUNNING, [])


def test_a_run_that_is_resumed_begins_to_count_again(fleet):
    fleet.open(max_attempts=1)
    fleet.fail("one")
    assert fleet.tick().status is RunStatus.PAUSED
    fleet.store.resume("first", "me")
    assert fleet.tick().status is RunStatus.RUNNING
    claim = fleet.claim("one")
    assert claim.attempt == 1
    assert fleet.store.report(claim, result_of(claim)) == "accepted"
