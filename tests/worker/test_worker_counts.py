"""What a worker adds up of a batch, what it says of its end, and which games it plays for it."""

import time
from pathlib import Path

import pytest
from builders import stage

from spsa.core.scoring import Tally
from spsa.db import Store
from spsa.errors import EngineFault
from spsa.openings.book import Opening, OpeningBook, drawn_time
from spsa.protocol import MAX_KEPT_VOIDS, BatchResult, KeptVoid
from spsa.uci.engine import SearchReply
from worker.batches.active_batch import ActiveBatch
from worker.batches.jobs import job_of
from worker.runner.game import NOTHING_PLAYED, Game, Pair, Pairing, VoidGame, counts, nps, with_pair
from worker.runner.pool import JobDone, JobFailed, JobStopped, PairVoid
from worker.runner.position import Termination, won_by

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


def test_the_sums_of_pairs():
    total = with_pair(with_pair(NOTHING_PLAYED, pair()), pair())
    assert total == BatchResult(
        tally=Tally(2, 2, 0, (0, 0, 2, 0, 0)),
        plus_nodes=260,
        minus_nodes=54,
        moves=10,
        plus_time_losses=2,
        think_seconds=4.0,
    )
    assert nps(total) == (260 + 54) / 4.0
    assert nps(NOTHING_PLAYED) is None
    assert counts(total.tally) == "+2 -2 =0 [0 0 2 0 0]"


def test_a_batch_knows_its_last_pair(claim):
    batch = ActiveBatch(claim, started=0.0)
    assert not batch.on_last_pair
    batch.result = with_pair(batch.result, pair())
    assert batch.on_last_pair
    assert str(batch) == "first it 1 batch 0"


def void(claim, culprit, reason="crash", white="plus"):
    fault = VoidGame(culprit, EngineFault(reason, "why"), "position startpos", white)
    return PairVoid(claim.claim_id, pair().pairing, fault, "its last words")


def test_a_batch_that_was_played_is_reported_with_its_costs_and_void_games(claim, monkeypatch):
    batch = ActiveBatch(claim, started=100.0, result=with_pair(NOTHING_PLAYED, pair()))
    for reason in ("crash", "hang", "crash", "crash"):
        batch.add_void(void(claim, "minus", reason))
    monkeypatch.setattr(time, "monotonic", lambda: 107.5)
    result = batch.end(JobDone(claim.claim_id))
    assert (result.plus_nodes, result.minus_nodes, result.moves) == (130, 27, 5)
    assert (result.seconds, result.think_seconds) == (7.5, 2.0)
    assert result.voids == {"crash": 3, "hang": 1}
    assert len(result.kept_voids) == MAX_KEPT_VOIDS
    assert result.kept_voids[1] == KeptVoid(
        pair=4,
        culprit="minus",
        white="plus",
        detail="minus: hang: why",
        position="position startpos",
        output="its last words",
    )


@pytest.mark.parametrize("culprit", ["plus", "minus", ""])
def test_a_batch_that_failed_says_why_and_whose_fault_it_is(claim, culprit):
    batch = ActiveBatch(claim, started=0.0)
    for _ in range(3):
        batch.add_void(void(claim, culprit))
    failure = batch.end(JobFailed(claim.claim_id, "x" * 3000))
    blamed = {"plus": claim.plus.sha256, "minus": claim.minus.sha256}.get(culprit)
    assert (failure.reason, failure.void_games) == ("x" * 1999 + "…", 3)
    assert (failure.sha256, len(failure.kept_voids)) == (blamed, 3)


def test_a_batch_that_was_stopped_says_nothing(claim):
    assert ActiveBatch(claim, started=0.0).end(JobStopped(claim.claim_id)) is None


def test_a_job_follows_from_the_claim_alone(claim):
    job = job_of(claim, (Path("/p"), Path("/m")), BOOK)
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
    assert conditions.adjudication == claim.game_settings.adjudication
