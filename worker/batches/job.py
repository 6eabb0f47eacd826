"""From a claimed batch to a job for the pool."""

from collections.abc import Mapping
from pathlib import Path

from spsa.core.game_settings import Book
from spsa.db.store import Claim, Engine
from worker.batches.engine_cache import Binaries, EngineCache
from worker.runner.game import Conditions, Pairing
from worker.runner.openings import OpeningBook, drawn_time, load
from worker.runner.pool import Job
from worker.uci.engine import EngineSpec, UciTimeouts


class JobMaker:
    """Makes the jobs of one worker; each book is read once."""

    def __init__(self, engines: EngineCache, timeouts: UciTimeouts) -> None:
        self._engines = engines
        self._timeouts = timeouts
        self._books: dict[Book, OpeningBook] = {}

    def job(self, claim: Claim) -> Job:
        """TuningError where this machine lacks an engine or the book of the batch."""
        binaries = self._engines.binaries(claim)
        wanted = claim.terms.book
        if wanted not in self._books:
            self._books[wanted] = load(wanted)
        return job_of(claim, binaries, self._books[wanted], self._timeouts)


def job_of(claim: Claim, binaries: Binaries, book: OpeningBook, timeouts: UciTimeouts) -> Job:
    """What a slot plays; it follows from the claim alone, on every machine."""
    game_settings = claim.terms
    return Job(
        key=claim.claim_id,
        plus=_spec("plus", binaries.plus, game_settings.engine_options, claim.plus),
        minus=_spec("minus", binaries.minus, game_settings.engine_options, claim.minus),
        pairings=tuple(_pairing(claim, index, book) for index in range(claim.pairs)),
        conditions=Conditions(
            time_control=game_settings.time_control,
            adjudication=game_settings.adjudication,
            timeouts=timeouts,
        ),
    )


def _pairing(claim: Claim, index: int, book: OpeningBook) -> Pairing:
    number = claim.first_pair + index
    return Pairing(
        number=number,
        opening=book.opening(claim.run_seed, number),
        time=drawn_time(claim.terms.time_control, claim.seed, index),
    )


def _spec(side: str, path: Path, common: Mapping[str, str], engine: Engine) -> EngineSpec:
    return EngineSpec(name=side, path=str(path), options={**common, **engine.options})
