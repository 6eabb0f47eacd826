"""What a worker adds up of a batch, what it says of its end, and which games it plays for it."""

import time
from dataclasses import replace
from pathlib import Path

import pytest
from builders import stage
from engines.faulty import PATIENT

from spsa.core.scoring import Tally
from spsa.db import Store
from spsa.openings.book import OpeningBook
from spsa.openings.positions import Opening, drawn_time
from spsa.protocol import Failure
from spsa.uci.search_reply import SearchReply
from worker.batches.active_batch import ActiveBatch, job_of
from worker.batches.database_client import PendingReport
from worker.batches.engine_cache import Binaries
from worker.runner.count import GameTotals, Speeds
from worker.runner.game import Game, Pair, Pairing
from worker.runner.pool import JobDone, JobFailed, JobStopped
from worker.runner.position import Termination, drawn, won_by

BOOK = OpeningBook(openings=[Opening(fen=f"fen {n}") for n in range(50)], sha256="b" * 64)


def answer(nodes, seconds):
    return SearchReply("e2e4", 3, seconds, b"info depth 1 nodes %d score cp 3" % nodes)


def pair():
    """Plus wins as White and loses on time as Black; it thinks of 100 + 30 nodes, minus of 27."""
    first = Game(
        won_by(True, Termination.CHECKMATE),
        (answer(70, 0.5), answer(20, 0.25), answer(30, 0.5)),
        True,
    )
    second = Game(won_by(True, Termination.TIME), (answer(7, 0.25), answer(30, 0.5)), True)
    return Pair(Pairing(number=4, opening=Opening(fen="f"), time=0.1), first, second)


@pytest.fixture
def claim(sqlite_url):
    with Store(sqlite_url, durable=False) as store:
        on = stage(store)
        on.open()
        return on.claim("a")


def test_a_count_adds_up_all_of_its_pairs():
    count = GameTotals()
    for _ in range(2):
        count.add(pair())
    assert count.tally == Tally(2, 2, 0, (0, 0, 2, 0, 0))
    assert (count.plus_nodes, count.minus_nodes, count.moves) == (260, 54, 10)
    assert (count.plus_time_losses, count.minus_time_losses) == (2, 0)
    assert count.think_seconds == 4.0
    assert count.nps() == (260 + 54) / 4.0
    assert str(count) == "+2 -2 =0 [0 0 2 0 0]"
    assert GameTotals().nps() is None


def test_time_losses_of_both_engines_are_added_up():
    count, both = GameTotals(), pair()
    lost_by_minus = replace(both.first, ending=won_by(True, Termination.TIME))
    for _ in range(2):
        count.add(replace(both, first=lost_by_minus))
    assert (count.plus_time_losses, count.minus_time_losses) == (2, 2)


def test_a_void_game_is_counted_with_its_reason():
    count = GameTotals()
    for reason in ("crash", "hang", "crash"):
        count.add_void(reason)
    assert count.voids == {"crash": 2, "hang": 1}


def test_speeds_are_of_each_slot():
    speeds = Speeds()
    for slot in (1, 0, 1):
        speeds.add(slot, pair())
    speeds.add(
        2,
        Pair(
            pair().pairing,
            Game(drawn(Termination.DRAW), (), True),
            Game(drawn(Termination.DRAW), (), True),
        ),
    )
    assert speeds.nps() == {0: 157 / 2.0, 1: 2 * 157 / 4.0}
    assert list(speeds.nps()) == [0, 1]


def test_a_batch_knows_its_last_pair(claim):
    batch = ActiveBatch(claim, started=0.0)
    assert not batch.on_last_pair
    batch.count.add(pair())
    assert batch.on_last_pair
    assert str(batch) == "first it 1 batch 0"


def test_a_batch_that_was_played_is_reported_with_its_costs(claim, monkeypatch):
    batch = ActiveBatch(claim, started=100.0, slot=3)
    batch.count.add(pair())
    batch.count.add_void("crash")
    monkeypatch.setattr(time, "monotonic", lambda: 107.5)
    report = batch.report(JobDone(claim.claim_id))
    result = report.result
    assert (report.claim, report.failure) == (claim, None)
    assert (result.tally, result.voids) == (batch.count.tally, {"crash": 1})
    assert (result.plus_nodes, result.minus_nodes, result.moves) == (130, 27, 5)
    assert (result.plus_time_losses, result.minus_time_losses) == (1, 0)
    assert (result.seconds, result.think_seconds, result.slot) == (7.5, 2.0, 3)


@pytest.mark.parametrize("culprit", ["plus", "minus", ""])
def test_a_batch_that_failed_says_why_and_whose_fault_it_is(claim, culprit):
    batch = ActiveBatch(claim, started=0.0, culprit=culprit)
    for _ in range(3):
        batch.count.add_void("crash")
    report = batch.report(JobFailed(claim.claim_id, "x" * 3000))
    blamed = {"plus": claim.plus.sha256, "minus": claim.minus.sha256}.get(culprit)
    failure = Failure(reason="x" * 1999 + "…", void_games=3, sha256=blamed)
    assert (report.result, report.failure) == (None, failure)


def test_a_batch_that_was_stopped_says_nothing(claim):
    assert ActiveBatch(claim, started=0.0).report(JobStopped(claim.claim_id)) == PendingReport(
        claim=claim
    )


def test_a_job_follows_from_the_claim_alone(claim):
    job = job_of(claim, Binaries(plus=Path("/p"), minus=Path("/m")), BOOK, PATIENT)
    assert job.key == claim.claim_id
    assert (job.plus.name, job.plus.path, job.plus.options) == ("plus", "/p", {"Margin": "220"})
    assert (job.minus.name, job.minus.path, job.minus.options) == ("minus", "/m", {"Margin": "180"})
    first, last = claim.first_pair, claim.first_pair + claim.pairs
    assert [pairing.number for pairing in job.pairings] == list(range(first, last))
    for index, pairing in enumerate(job.pairings):
        assert pairing.opening == BOOK.opening(claim.run_seed, first + index)
        assert pairing.time == drawn_time(claim.game_settings.time_control, claim.seed, index)
    conditions = job.conditions
    assert conditions.time_control == claim.game_settings.time_control
    assert (conditions.adjudication, conditions.timeouts) == (
        claim.game_settings.adjudication,
        PATIENT,
    )
