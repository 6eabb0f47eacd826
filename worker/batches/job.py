"""A claimed batch as a job for the pool, and the counts that are reported of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from spsa.db.store import BatchResult, Claim, Engine
from worker.runner.count import Count
from worker.runner.game import Conditions, Pairing
from worker.runner.openings import OpeningBook, drawn_time
from worker.runner.pool import Job
from worker.uci.engine import EngineSpec, UciTimeouts


@dataclass(frozen=True, slots=True, kw_only=True)
class Binaries:
    """Verified executables of this box."""

    plus: Path
    minus: Path


def job_of(claim: Claim, binaries: Binaries, book: OpeningBook, timeouts: UciTimeouts) -> Job:
    """What a slot has to play; it follows from the claim alone, on any box."""
    terms = claim.terms
    return Job(
        key=claim.claim_id,
        plus=_spec("plus", binaries.plus, terms.engine_options, claim.plus),
        minus=_spec("minus", binaries.minus, terms.engine_options, claim.minus),
        pairings=tuple(_pairing(claim, index, book) for index in range(claim.pairs)),
        conditions=Conditions(
            time_control=terms.time_control, adjudication=terms.adjudication, timeouts=timeouts
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


def result_of(count: Count, seconds: float, slot: int | None) -> BatchResult:
    """What is reported of a batch that took `seconds` in a slot."""
    return BatchResult(
        tally=count.tally,
        voids=dict(count.voids),
        plus_nodes=count.plus_nodes,
        minus_nodes=count.minus_nodes,
        moves=count.moves,
        plus_time_losses=count.plus_time_losses,
        minus_time_losses=count.minus_time_losses,
        seconds=seconds,
        think_seconds=count.think_seconds,
        slot=slot,
    )
