"""A worker's calls to a real store whose responses get lost."""

import time
from unittest.mock import Mock

import pytest
from builders import LEASE, new_worker, result_of, stage, tally_of_seed
from cutting import CutStore

from spsa.core.scoring import Tally
from spsa.errors import DatabaseUnreachable, TooManyRequests
from spsa.protocol import BatchReport, ClaimRequest, HeldClaim, Measured
from worker.batches.database_client import Backoff, DatabaseClient

QUICK = Backoff(first=0.01, growth=1.0, cap=0.01, jitter=0.0)
WORKER = new_worker("machine-1")


class AskedTwice(CutStore):
    """Counts the calls that its worker makes."""

    def __init__(self, url):
        super().__init__(url)
        self.asked = []

    def ask(self, request, *machine):
        if not isinstance(request, ClaimRequest):
            self.asked.append(getattr(request, "lease_seconds", request.path))
        return super().ask(request, *machine)


@pytest.fixture
def store(sqlite_url):
    with AskedTwice(sqlite_url) as opened:
        yield opened


@pytest.fixture
def run(store):
    started = stage(store)
    started.open()
    store.asked.clear()
    return started


@pytest.fixture
def client(store, run):
    return DatabaseClient(store, WORKER, LEASE, QUICK)


def played(claim, **over):
    return BatchReport(held=HeldClaim.of(claim), result=result_of(claim, **over))


def batches(run):
    return [(b.status, b.attempt, b.tally) for b in run.store.batches(run.run.id)]


@pytest.fixture
def now(monkeypatch):
    """The monotonic clock, in a list."""
    clock = [time.monotonic() + 1]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    return clock


@pytest.mark.parametrize("cut", ["before", "after"])
def test_a_claim_and_a_report_whose_responses_are_lost_are_made_once(client, run, store, cut):
    client.work_left()
    client.renew([], Measured())
    store.cut_next(cut)
    with pytest.raises(DatabaseUnreachable):
        client.claim()
    client.enqueue(played(claim := client.claim()))
    store.cut_next(cut)
    with pytest.raises(DatabaseUnreachable):
        client.deliver()
    assert client.unreported == 1
    client.deliver()
    assert client.unreported == 0
    assert (client.claim().seq, client.claim()) == (1, None)
    counted = tally_of_seed(claim.seed, claim.pairs)
    assert batches(run) == [("done", 1, counted), ("leased", 1, Tally())]
    (iteration,) = run.store.iterations(run.run.id)
    assert iteration.games_played == 4


def test_a_claim_id_that_was_used_up_is_given_up(client, run, store, monkeypatch):
    """Its response was lost, and another process that knew the id played its batch."""
    store.cut_next(None)
    monkeypatch.setattr(client, "_claim_id", "used up")
    worker = store.register_worker(WORKER)
    claim = store.claim("used up", worker, LEASE)
    store.report(claim, result_of(claim))
    assert client.claim() is None
    assert client.claim().seq == 1


def test_a_worker_whose_row_was_lost_registers_again(client, run, store, sql):
    first = client.claim()
    store.release(first)
    sql("UPDATE spsa_batch SET worker_id = NULL")
    sql("DELETE FROM spsa_worker")
    assert client.claim().seq == 0
    assert store.asked == ["register", "release", "register"]


def test_leases_are_renewed_every_quarter_of_their_length(client, run, store, now):
    claim = client.claim()
    store.asked.clear()
    assert client.due_at < now[0]
    assert client.renew([claim.claim_id, "not mine"], Measured(nps=1e6)) == {"not mine"}
    assert store.asked == ["touch", LEASE]
    assert client.due_at == now[0] + LEASE / 4
    now[0] += LEASE / 4 - 0.1
    assert client.renew([claim.claim_id, "not mine"], Measured(nps=1e6)) == frozenset()
    assert store.asked == ["touch", LEASE]
    now[0] += 0.1
    client.renew([claim.claim_id], Measured(nps=1e6))
    assert store.asked == ["touch", LEASE] * 2
    assert [row.nps for row in store.workers()] == [1e6]


@pytest.mark.parametrize(
    ("over", "left"),
    [
        ({}, True),
        ({"only_runs": ("first",)}, True),
        ({"only_runs": ("another",)}, False),
        ({"not_runs": ("another",)}, True),
        ({"not_runs": ("first",)}, False),
    ],
)
def test_work_is_left_where_a_run_goes_on_that_it_takes(over, left, run, store, caplog):
    client = DatabaseClient(store, new_worker("w", **over), LEASE, QUICK)
    client.renew([], Measured())
    assert client.work_left() is left
    assert ("this worker leaves out the run first" in caplog.text) is not left
    assert "no master" not in caplog.text
    run.store.release_master_lease(run.master)
    DatabaseClient(store, new_worker("w", **over), LEASE, QUICK).renew([], Measured())
    assert ("no master moves first: `spsa-master run`" in caplog.text) is left
    run.store.stop("first", "me", "why")
    assert client.work_left() is False


def test_a_worker_that_is_idle_says_so_again_when_it_has_had_a_batch(client, run, now, caplog):
    for times in (1, 2):
        run.store.pause("first", "me", "why")
        for _ in range(2):
            client.renew([], Measured())
            now[0] += LEASE
        assert caplog.text.count("no run needs games") == times
        run.store.resume("first", "me")
        assert client.claim() is not None


def test_a_claim_that_is_refused_for_now_waits_as_long_as_the_server_says(
    client, store, now, monkeypatch
):
    client.renew([], Measured())
    with monkeypatch.context() as patch:
        patch.setattr(store, "ask", Mock(side_effect=TooManyRequests("too many batches", 60.0)))
        assert client.claim() is None
    now[0] += 59
    assert client.claim() is None
    now[0] += 2
    assert client.claim() is not None
