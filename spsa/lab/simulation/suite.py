"""The suite: random problems on which rules are compared, in two halves.

All problems follow from the seed. A rule is chosen on the half `choose` and judged on the half
`judge`. The halves share no problem, so no rule is judged on problems for which it was chosen.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from types import MappingProxyType

import numpy as np

from spsa.algorithms import Problem, Vector
from spsa.core.seeds import derived_seed
from spsa.lab.simulation.families import FAMILIES
from spsa.lab.simulation.race import Engine, Race, SimulatedGames
from spsa.lab.simulation.terrain import Terrain

HALVES = ("choose", "judge")

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
class Heat:
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
class Field:
    """The problems of a heat: what rules know of them, and what only an oracle knows."""

    problem: Problem
    terrain: Terrain
    draw_rate: Vector

    def race(self, depth: int) -> Race:
        games = SimulatedGames(self.draw_rate)
        return Race(problem=self.problem, engine=self.terrain.engine, games=games, depth=depth)

    def recovered(self, theta: Vector) -> Vector:
        """The part of the Elo to gain that theta has gained since the start, shape (R,)."""
        terrain = self.terrain
        gained = terrain.engine.elo(theta) - terrain.engine.elo(terrain.start)
        part: Vector = (gained / terrain.elo_to_gain)[:, 0]
        return part


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """One half of the problems of a seed."""

    seed: int
    half: str
    size: Size
    families: tuple[str, ...] = tuple(FAMILIES)

    def heats(self, pairs: int) -> Iterator[Heat]:
        """The heats with iterations of `pairs` game pairs, or fewer in the short runs."""
        usual = tuple(name for name in self.families if name != STEEP)
        for n, budget in product(self.size.parameters, self.size.budgets):
            heat = self._heat(usual, n, budget, pairs)
            if usual and heat.iterations <= self.size.most_results:
                yield heat
        if STEEP in self.families:
            for budget in _STEEP_BUDGETS:
                yield self._heat((STEEP,), _STEEP_PARAMETERS, budget, min(pairs, _STEEP_PAIRS))

    def field(self, heat: Heat) -> Field:
        """The problems of a heat; they do not depend on how its budget is cut into iterations."""
        terrain = together([self._drawn(heat, family) for family in heat.families])
        return Field(
            problem=Problem(
                start=terrain.start,
                lower=terrain.lower,
                upper=terrain.upper,
                unit=terrain.unit,
                iterations=heat.iterations,
                pairs=heat.pairs,
            ),
            terrain=terrain,
            draw_rate=self._draw_rates(heat),
        )

    def games(self, heat: Heat) -> np.random.Generator:
        """The random generator for the games of a heat, the same for every rule."""
        return self._rng("games", heat.parameters, heat.budget, heat.pairs)

    def _heat(self, families: tuple[str, ...], n: int, budget: int, pairs: int) -> Heat:
        return Heat(
            families=families,
            problems=self.size.problems,
            parameters=n,
            budget=budget,
            pairs=pairs,
        )

    def _drawn(self, heat: Heat, family: str) -> Terrain:
        rng = self._rng(family, heat.parameters, heat.budget)
        return FAMILIES[family](rng, heat.problems, heat.parameters)

    def _draw_rates(self, heat: Heat) -> Vector:
        shape = (heat.problems, 1)
        places = [("draw rates", name, heat.parameters, heat.budget) for name in heat.families]
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


def together(terrains: Sequence[Terrain]) -> Terrain:
    """One terrain from several, which have equal numbers of problems and parameters."""
    if len(terrains) == 1:
        return terrains[0]
    return Terrain(
        engine=SideBySide([terrain.engine for terrain in terrains]),
        start=np.concatenate([terrain.start for terrain in terrains]),
        lower=np.concatenate([terrain.lower for terrain in terrains]),
        upper=np.concatenate([terrain.upper for terrain in terrains]),
        unit=np.concatenate([terrain.unit for terrain in terrains]),
        optimum=np.concatenate([terrain.optimum for terrain in terrains]),
        deviation=np.concatenate([terrain.deviation for terrain in terrains]),
        hessian=np.concatenate([terrain.hessian for terrain in terrains]),
        elo_to_gain=np.concatenate([terrain.elo_to_gain for terrain in terrains]),
    )
