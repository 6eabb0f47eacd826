"""The suite: random problems on which rules are compared, in two halves.

All problems follow from the seed. A rule is chosen on the half `choose` and judged on the half
`judge`. The halves share no problem, so no rule is judged on problems for which it was chosen.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from types import MappingProxyType

import numpy as np

from benches.papers.families import FAMILIES
from benches.papers.random_losses import RandomLosses
from spsa.algorithms.rule import Problem
from spsa.core import derived_seed
from spsa.core.params import Vector
from spsa.planning.simulated_run import Engine, SimulatedGames, SimulatedRun

STEEP = "steep"  # short runs: 24 or 30 iterations of 60 games
_STEEP_PARAMETERS, _STEEP_PAIRS, _STEEP_BUDGETS = 8, 30, (720, 900)
_DRAW_RATES = (0.3, 0.9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Numbers of parameters, budgets in game pairs, and how many problems of each.

    Heats with more than `most_results` results are left out, because they take too long.
    """

    parameters: tuple[int, ...]
    budgets: tuple[int, ...]
    problems: int
    most_results: int


SIZES: Mapping[str, Size] = MappingProxyType(
    {
        "short": Size(
            parameters=(4, 16, 64),
            budgets=(5_000, 20_000, 75_000, 200_000),
            problems=4,
            most_results=5_000,
        ),
        "full": Size(
            parameters=(1, 2, 4, 8, 16, 32, 64, 128),
            budgets=(5_000, 20_000, 75_000, 200_000),
            problems=4,
            most_results=200_000,
        ),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemGroup:
    """Problems that run together: the same number of parameters, of iterations and of pairs.

    There are `problems` of each of the `families`, one family after the other on the first axis.
    `budget` is in game pairs, of which an iteration plays `pairs`.
    """

    families: tuple[str, ...]
    problems: int
    parameters: int
    budget: int
    pairs: int

    @property
    def iterations(self) -> int:
        return max(1, round(self.budget / self.pairs))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemSet:
    """The problems of a group: what rules know of them, and what only an oracle knows."""

    problem: Problem
    losses: RandomLosses
    draw_rate: Vector

    def simulated_run(self, in_flight: int) -> SimulatedRun:
        games = SimulatedGames(self.draw_rate)
        return SimulatedRun(
            problem=self.problem, engine=self.losses.engine, games=games, in_flight=in_flight
        )

    def recovered(self, theta: Vector) -> Vector:
        """The part of the Elo to gain that theta has gained since the start, shape (R,)."""
        losses = self.losses
        gained = losses.engine.elo(theta) - losses.engine.elo(losses.start)
        part: Vector = (gained / losses.elo_to_gain)[:, 0]
        return part


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """One half of the problems of a seed."""

    seed: int
    half: str
    size: Size
    families: tuple[str, ...] = tuple(FAMILIES)

    def groups(self, pairs: int) -> Iterator[ProblemGroup]:
        """The groups with iterations of `pairs` game pairs, or fewer in the short runs."""
        usual = tuple(name for name in self.families if name != STEEP)
        for n, budget in product(self.size.parameters, self.size.budgets):
            group = self._group(usual, n, budget, pairs)
            if usual and group.iterations <= self.size.most_results:
                yield group
        if STEEP in self.families:
            for budget in _STEEP_BUDGETS:
                yield self._group((STEEP,), _STEEP_PARAMETERS, budget, min(pairs, _STEEP_PAIRS))

    def problems(self, group: ProblemGroup) -> ProblemSet:
        """The problems of a group; they do not depend on how its budget is cut into iterations."""
        losses = together([self._drawn(group, family) for family in group.families])
        return ProblemSet(
            problem=Problem(
                start=losses.start,
                lower=losses.lower,
                upper=losses.upper,
                unit=losses.unit,
                iterations=group.iterations,
                pairs=group.pairs,
                seed=derived_seed(self.seed, self.half, group.parameters, group.budget),
            ),
            losses=losses,
            draw_rate=self._draw_rates(group),
        )

    def games(self, group: ProblemGroup) -> np.random.Generator:
        """The random generator for the games of a group, the same for every rule."""
        return self._rng("games", group.parameters, group.budget, group.pairs)

    def _group(self, families: tuple[str, ...], n: int, budget: int, pairs: int) -> ProblemGroup:
        return ProblemGroup(
            families=families, problems=self.size.problems, parameters=n, budget=budget, pairs=pairs
        )

    def _drawn(self, group: ProblemGroup, family: str) -> RandomLosses:
        rng = self._rng(family, group.parameters, group.budget)
        return FAMILIES[family](rng, group.problems, group.parameters)

    def _draw_rates(self, group: ProblemGroup) -> Vector:
        shape = (group.problems, 1)
        places = [("draw rates", name, group.parameters, group.budget) for name in group.families]
        return np.concatenate([self._rng(*p).uniform(*_DRAW_RATES, shape) for p in places])

    def _rng(self, *place: object) -> np.random.Generator:
        return np.random.default_rng(derived_seed(self.seed, self.half, *place))


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Several engines, each for an equal part of the replicas on the axis before the last."""

    engines: Sequence[Engine]

    def elo(self, theta: Vector) -> Vector:
        parts = np.split(theta, len(self.engines), axis=-2)
        each = [engine.elo(part) for engine, part in zip(self.engines, parts, strict=True)]
        return np.concatenate(each, axis=-2)


def together(several: Sequence[RandomLosses]) -> RandomLosses:
    """One loss from several, which have equal numbers of problems and parameters."""
    if len(several) == 1:
        return several[0]
    return RandomLosses(
        engine=SideBySide([losses.engine for losses in several]),
        start=np.concatenate([losses.start for losses in several]),
        lower=np.concatenate([losses.lower for losses in several]),
        upper=np.concatenate([losses.upper for losses in several]),
        unit=np.concatenate([losses.unit for losses in several]),
        optimum=np.concatenate([losses.optimum for losses in several]),
        deviation=np.concatenate([losses.deviation for losses in several]),
        hessian=np.concatenate([losses.hessian for losses in several]),
        elo_to_gain=np.concatenate([losses.elo_to_gain for losses in several]),
    )
