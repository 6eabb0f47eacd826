"""What a worker adds up of a batch, and which games it plays for it."""

from pathlib import Path

import pytest
from asking import Store
from builders import stage

from spsa.core.scoring import Tally
from spsa.errors import EngineFault
from spsa.openings.book import Opening, OpeningBook, drawn_time
from spsa.protocol import MAX_KEPT_VOIDS, BatchResult, KeptVoid
from spsa.uci.engine import SearchReply
from worker.batches.jobs import JobMaker
from worker.runner.game import NOTHING_PLAYED, Game, Pair, Pairing, VoidGame, counts, nps, with_pair
from worker.runner.loop import ActiveJob
from worker.runner.pool import PairVoid
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


def test_void_games_are_counted_and_the_first_few_kept():
    batch = ActiveJob(None, since=0.0)
    for reason in ("crash", "hang", "crash", "crash"):
        fault = VoidGame("minus", EngineFault(reason, "why"), "position startpos", "plus")
        batch.add_void(PairVoid("key", pair().pairing, fault, "its last words"))
    assert batch.result.voids == {"crash": 3, "hang": 1}
    assert len(batch.result.kept_voids) == MAX_KEPT_VOIDS
    assert batch.result.kept_voids[1] == KeptVoid(
        pair=4,
        culprit="minus",
        white="plus",
        detail="minus: hang: why",
        position="position startpos",
        output="its last words",
    )


def test_a_job_follows_from_the_claim_alone(claim, monkeypatch):
    monkeypatch.setattr(JobMaker, "path", lambda _, engine: f"/{engine.sha256}")
    monkeypatch.setattr(JobMaker, "_book", lambda *_: BOOK)
    job = JobMaker(Path("/none"), lambda _: None).job(claim)
    assert job.key == claim.claim_id
    assert (job.plus.name, job.plus.path, job.plus.options) == (
        "plus",
        f"/{claim.plus.sha256}",
        {"Margin": "220"},
    )
    assert (job.minus.name, job.minus.path, job.minus.options) == (
        "minus",
        f"/{claim.minus.sha256}",
        {"Margin": "180"},
    )
    first, last = claim.first_pair, claim.first_pair + claim.pairs
    assert [pairing.number for pairing in job.pairings] == list(range(first, last))
    for index, pairing in enumerate(job.pairings):
        assert pairing.opening == BOOK.opening(claim.run_seed, first + index)
        assert pairing.time == drawn_time(claim.game_settings.time_control, claim.seed, index)
    assert job.conditions.time_control == claim.game_settings.time_control
    assert str(job.label) == "first it 1 batch 0"
