"""What came of the proof: Elo against the untouched engine, and how much of the loss came back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import hypot, inf, sqrt
from statistics import mean, stdev
from typing import Self

from benches.proof.playing import Against, Between
from spsa.core.params import Space
from spsa.core.scoring import Estimate, Tally, elo
from spsa.report.matches import ThetaChoice

T_QUANTILES = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""Of Student's t at 97.5%, for 1 to 9 degrees of freedom; the last is a little wide for more."""


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
    """What one theta of a run came to; `away` are steps from the untouched engine."""

    rule: str
    which: ThetaChoice
    seed: int
    games: int  # of the tune
    seconds: float  # from the run's start to its last result
    match: Tally
    away: Mapping[str, float]

    @property
    def engine(self) -> str:
        """Who tuned it, and which of the thetas it is if not the last one."""
        return self.rule if self.which is ThetaChoice.FINAL else f"{self.rule}, {self.which}"

    @classmethod
    def of(cls, against: Against) -> Self:
        run = against.run
        assert against.which is not None, "the start is no verdict"
        ended = run.finished_at or run.created_at
        return cls(
            rule=run.algorithm,
            which=against.which,
            seed=run.seed,
            games=run.applied * int(run.settings["games_per_iteration"]),
            seconds=(ended - run.created_at).total_seconds(),
            match=against.match.tally,
            away=_away(against),
        )


@dataclass(frozen=True, slots=True)
class Proof:
    """All runs against their common start."""

    start: Tally
    start_away: Mapping[str, float]
    own: Mapping[str, float]
    verdicts: tuple[Verdict, ...]
    between: tuple[Between, ...] = ()

    @classmethod
    def of(
        cls, start: Against, runs: tuple[Against, ...], between: tuple[Between, ...] = ()
    ) -> Self:
        verdicts = tuple(Verdict.of(run) for run in runs)
        return cls(start.match.tally, _away(start), start.own, verdicts, between)

    def pooled(self) -> Mapping[str, Tally]:
        """The matches of all seeds together, by engine."""
        pooled: dict[str, Tally] = {}
        for verdict in self.verdicts:
            pooled[verdict.engine] = pooled.get(verdict.engine, Tally()) + verdict.match
        return pooled

    def differences(self) -> Mapping[tuple[str, str], Estimate]:
        """Elo of an engine minus that of an earlier one, in the mean of the seeds that have both.

        The error comes from how these seeds differ (Student's t), so it covers other seeds, too.
        """
        found: dict[str, dict[int, float]] = {}
        for verdict in self.verdicts:
            found.setdefault(verdict.engine, {})[verdict.seed] = elo(verdict.match).value
        return {
            (later, earlier): _mean([found[later][seed] - found[earlier][seed] for seed in both])
            for earlier, later in combinations(found, 2)
            if len(both := sorted(found[earlier].keys() & found[later].keys())) > 1
        }


def _mean(values: Sequence[float]) -> Estimate:
    quantile = T_QUANTILES[min(len(values) - 1, len(T_QUANTILES)) - 1]
    return Estimate(mean(values), quantile * stdev(values) / sqrt(len(values)))


def _away(against: Against) -> dict[str, float]:
    theta, own = against.theta, against.own
    space = Space.from_json(against.run.space)
    return {p.name: (theta[p.name] - own[p.name]) / p.step for p in space.active}
