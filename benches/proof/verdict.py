"""What came of the proof: Elo against the untouched engine, and how much of the loss came back."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import hypot, inf
from typing import Self

from benches.proof.playing import Against
from spsa.params import Space
from spsa.scoring import Estimate, Tally, elo
from spsa.store import Run


def recovered(tuned: Tally, start: Tally) -> Estimate:
    """The part of the start's loss that came back: 1 is the untouched engine, and may be passed.

    1 - tuned / start with the error of a ratio to first order; infinite for a start without loss.
    """
    after, before = elo(tuned), elo(start)
    if not before.value:
        return Estimate(0.0, inf)
    ratio = after.value / before.value
    return Estimate(1 - ratio, hypot(after.error, ratio * before.error) / abs(before.value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What one run came to; `away` are steps from the untouched engine, by parameter."""

    name: str
    rule: str
    seed: int
    games: int  # of the tune
    seconds: float  # from the run's start to its last result
    match: Tally
    away: Mapping[str, float]

    @classmethod
    def of(cls, against: Against) -> Self:
        run = against.run
        ended = run.finished_at or run.created_at
        return cls(
            name=run.name,
            rule=run.algorithm,
            seed=run.seed,
            games=run.applied * int(run.settings["games_per_iteration"]),
            seconds=(ended - run.created_at).total_seconds(),
            match=against.match.tally,
            away=_away(run, run.theta, against.own),
        )


@dataclass(frozen=True, slots=True)
class Proof:
    """All runs against their common start."""

    start: Tally
    start_away: Mapping[str, float]
    own: Mapping[str, float]
    verdicts: tuple[Verdict, ...]

    @classmethod
    def of(cls, start: Against, runs: tuple[Against, ...]) -> Self:
        away = _away(start.run, start.run.start_theta, start.own)
        return cls(start.match.tally, away, start.own, tuple(Verdict.of(run) for run in runs))

    def pooled(self) -> Mapping[str, Tally]:
        """The matches of all seeds together, by rule."""
        pooled: dict[str, Tally] = {}
        for verdict in self.verdicts:
            pooled[verdict.rule] = pooled.get(verdict.rule, Tally()) + verdict.match
        return pooled


def _away(run: Run, theta: Mapping[str, float], own: Mapping[str, float]) -> dict[str, float]:
    return {
        p.name: (theta[p.name] - own[p.name]) / p.step for p in Space.from_json(run.space).active
    }
