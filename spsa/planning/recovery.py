"""Simulates a run on random engines, to predict what it recovers.

The optimum of a real engine is unknown before it is tuned. So many engines with the assumed Elo to
gain are drawn, and the rule with its settings tunes each of them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np

from spsa.algorithms import create
from spsa.algorithms.rule import Problem, Rule, State
from spsa.core.params import Vector
from spsa.planning.games_needed import in_flight_after
from spsa.planning.simulated_run import Quadratic, SimulatedGames, SimulatedRun


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineAssumptions:
    """The assumptions: the Elo to gain in all, and the distance of each optimum in steps.

    Curvatures differ by a factor of e^0.5 (one standard deviation) between parameters.
    """

    elo_to_gain: float
    draw_rate: float
    nearest: float = 0.4
    farthest: float = 2.5

    def engines(self, problem: Problem, replicas: int, rng: np.random.Generator) -> Quadratic:
        """Random engines for the problem's start; arrays of shape (replicas, n)."""
        shape = (replicas, problem.start.shape[-1])
        distance = rng.uniform(self.nearest, self.farthest, shape)
        optimum = _inside(problem, distance * (2 * rng.integers(0, 2, shape) - 1))
        curvature = np.exp(0.5 * rng.standard_normal(shape))
        lost = (curvature * (optimum - problem.start) ** 2).sum(axis=-1, keepdims=True)
        return Quadratic(optimum=optimum, curvature=curvature * (self.elo_to_gain / lost))


def _inside(problem: Problem, shift: Vector) -> Vector:
    """start + shift, or start - shift if that is outside the bounds, clipped if both are."""
    there, back = problem.start + shift, problem.start - shift
    outside = (there < problem.lower) | (there > problem.upper)
    return np.clip(np.where(outside, back, there), problem.lower, problem.upper)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDesign:
    """A possible run: its rule, and how its games are cut.

    If the number in flight `grows`, it does so with the number of results, as it does if it follows
    the fleet.
    """

    algorithm: str
    settings: Mapping[str, Any]
    problem: Problem
    in_flight: int
    grows: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """What a design recovers of the Elo to gain, one number for each simulated run; shape (R,).

    `first` and `last` are the steps of one parameter in the first and in the last iteration, in
    steps, root mean square over parameters and runs. `c_first` and `c_last` are half the distance
    between plus and minus in those iterations.
    """

    parts: Vector
    first: float
    last: float
    c_first: float
    c_last: float

    @property
    def mean(self) -> float:
        return float(self.parts.mean())

    @property
    def spread(self) -> float:
        """The standard deviation of single runs."""
        return float(self.parts.std(ddof=1))

    @property
    def error(self) -> float:
        """The standard error of `mean`."""
        return self.spread / sqrt(self.parts.size)

    def better_than(self, other: "Recovery") -> tuple[float, float]:
        """The mean difference of runs with the same engines, and its standard error."""
        difference = self.parts - other.parts
        return float(difference.mean()), float(difference.std(ddof=1)) / sqrt(difference.size)


def recovery(
    design: RunDesign, assumptions: EngineAssumptions, *, replicas: int, seed: int
) -> Recovery:
    """Simulate a design with random engines; equal seeds draw equal engines.

    Raises:
        ValueError: the rule refuses its settings.
    """
    drawn, played = (np.random.default_rng([seed, stream]) for stream in (0, 1))
    problem = _replicated(design.problem, replicas, seed)
    engine = assumptions.engines(design.problem, replicas, drawn)
    rule = create(design.algorithm, design.settings, problem)
    simulated_run = SimulatedRun(
        problem=problem,
        engine=engine,
        games=SimulatedGames(assumptions.draw_rate),
        in_flight=design.in_flight,
        grows=in_flight_after if design.grows else None,
    )
    first, last, end = _moves(rule, simulated_run.run(rule, played))
    lost, left = engine.elo(problem.start), engine.elo(rule.theta(end))
    asked = [rule.ask(s, k, played).c_k for s, k in ((rule.start(), 1), (end, problem.iterations))]
    return Recovery(
        parts=(1 - left / lost)[:, 0],
        first=first,
        last=last,
        c_first=float(np.mean(asked[0])),
        c_last=float(np.mean(asked[1])),
    )


def _replicated(problem: Problem, replicas: int, seed: int) -> Problem:
    start = np.broadcast_to(problem.start, (replicas, problem.start.shape[-1]))
    return replace(problem, start=start, seed=seed)


def _moves(rule: Rule, states: Iterator[State]) -> tuple[float, float, State]:
    """The size of the first and of the last step, and the final state."""
    end, sizes = rule.start(), []
    theta = rule.theta(end)
    for end in states:
        before, theta = theta, rule.theta(end)
        sizes.append(_size(theta - before))
    return sizes[0], sizes[-1], end


def _size(move: Vector) -> float:
    return float(np.sqrt(np.mean(move**2)))


MANY = 64
"""Parameters from which on fewer and larger iterations are simulated, and half as many runs."""

_MAX_ITERATIONS = 500  # simulated: smaller ones recover the same, and take longer


_GAINS = frozenset({"a", "c", "A", "played"})


def coarser(design: RunDesign) -> tuple[RunDesign, int]:
    """The design with the games of a long run in fewer iterations, and how many are one then.

    For a rule that adds up results the difference is small, and the simulation is much faster.
    """
    problem, settings, most = design.problem, dict(design.settings), _MAX_ITERATIONS
    if (n := problem.start.shape[-1]) > MANY:
        most = min(most, max(most // 2, 2 * n))  # two blocks of balanced signs
    merged = -(-problem.iterations // most)
    if design.algorithm == "fishtest":  # its gains depend on k / N, A / N and played / N alone
        settings |= {name: settings[name] / merged for name in ("A", "played") if name in settings}
    elif not _GAINS.isdisjoint(settings):
        merged = 1  # gains written for so many iterations fit no other number
    iterations, pairs = problem.iterations // merged, problem.pairs * merged
    problem = replace(problem, iterations=iterations, pairs=pairs)
    in_flight = max(1, round(design.in_flight / merged))
    return replace(design, settings=settings, problem=problem, in_flight=in_flight), merged
