"""The locked set: problems on which a finished rule is judged, and none is chosen.

Other seeds and other families than those of the suite: each of them breaks an assumption of the
rules in a way of its own. RESULTS.md counts how often the set was opened. All quantities
are in steps; unless said, a problem has 16 parameters, loses 20 Elo at its start, and its optimum
is 0.3 to 2.5 steps away in every parameter.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import log, pi
from types import MappingProxyType

import numpy as np

from benches.papers.random_losses import (
    ROOM,
    DistanceToOptimum,
    RandomLosses,
    quadratic,
    tilted,
    turned,
    usual,
)
from spsa.algorithms import create
from spsa.algorithms.filter_bank import Bank
from spsa.algorithms.rule import Problem, Rule, State, total
from spsa.core import derived_seed
from spsa.core.params import Vector
from spsa.planning.simulated_run import Engine, Quadratic, SimulatedGames, SimulatedRun

SEED = 20_261_129
BUDGETS = (2_000, 30_000, 100_000, 400_000)  # games
PAIRS = 75  # of an iteration: the 150 games of a build
_DRAW_RATE = 0.6
_WRONG = 1.25  # times too large or too small, from which on a step is called so rightly
_PERIOD = 100_000 // (2 * PAIRS)  # iterations of a drift there and back

Shape = Callable[[Vector], Vector]
"""The loss of one parameter at signed distances from its optimum, relative to its curvature."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shaped:
    """Loses `curvature` times `shape` of the distance; the start is on the side of `side`."""

    optimum: Vector
    curvature: Vector
    side: Vector
    shape: Shape

    def elo(self, theta: Vector) -> Vector:
        return -total(self.curvature * self.shape((theta - self.optimum) * self.side))


@dataclass(frozen=True, slots=True, kw_only=True)
class Misjudged:
    """An engine whose steps are `factor` times what its parameters should have, shape (n,)."""

    engine: Engine
    factor: Vector

    def elo(self, theta: Vector) -> Vector:
        return self.engine.elo(theta * self.factor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """An engine that knows only multiples of `unit` steps."""

    engine: Engine
    unit: float

    def elo(self, theta: Vector) -> Vector:
        return self.engine.elo(np.rint(theta / self.unit) * self.unit)


@dataclass(slots=True, eq=False, kw_only=True)
class Drifting:
    """A quadratic loss whose optimum swings by half a step; time passes with every result."""

    engine: Quadratic
    phase: Vector
    results: int = 0

    def elo(self, theta: Vector) -> Vector:
        """Two points, shape (2, R, n), are a result; one is only a look at the present."""
        self.results += theta.ndim > self.phase.ndim
        return replace(self.engine, optimum=self.optimum).elo(theta)

    @property
    def optimum(self) -> Vector:
        """The present one."""
        angle = 2 * pi * self.results / _PERIOD
        now: Vector = np.sin(angle + self.phase) - np.sin(self.phase)
        return self.engine.optimum + 0.5 * now


def cliff(away: Vector) -> Vector:
    """Half a step past the optimum the loss becomes 16 times as steep."""
    loss: Vector = away**2 + 15 * np.maximum(-away - 0.5, 0.0) ** 2
    return loss


def asymmetric(away: Vector) -> Vector:
    """Past the optimum six times as steep; on the side of the start flat from 3 steps on."""
    loss: Vector = np.where(away < 0.0, 6.0, 1.0) * np.minimum(away, 3.0) ** 2
    return loss


def shoulder(away: Vector) -> Vector:
    """Flat between 0.7 and 1.5 steps."""
    far = np.abs(away)
    loss: Vector = np.where(far < 1.5, np.minimum(far, 0.7), far - 0.8) ** 2
    return loss


def plateau(away: Vector) -> Vector:
    """No parameter can lose more than it does about two steps away."""
    loss: Vector = -np.expm1(-(away**2))
    return loss


Family = Callable[[np.random.Generator, int, int, float], RandomLosses]
"""Draws problems: generator, number of problems, of parameters, and the Elo to gain."""

Factors = Callable[[np.random.Generator, tuple[int, ...]], Vector]
"""Draws how many times too large each step is."""


def _usual(rng: np.random.Generator, runs: int, n: int, elo: float) -> RandomLosses:
    return quadratic(rng, np.exp(rng.standard_normal((runs, n)) / 2), None, _all(runs, elo))


def _settled(rng: np.random.Generator, runs: int, n: int, elo: float) -> RandomLosses:
    """Starts at the optimum; `elo` is lost one step away in every parameter."""
    away = DistanceToOptimum(np.ones((runs, n)), np.ones((runs, n)))
    base = quadratic(rng, np.exp(rng.standard_normal((runs, n)) / 2), away, _all(runs, elo))
    return replace(base, start=base.optimum, lower=base.optimum - ROOM, upper=base.optimum + ROOM)


def _misjudged(
    factors: tuple[float, ...], rng: np.random.Generator, runs: int, n: int, elo: float
) -> RandomLosses:
    """Every step is wrong by one of the factors."""
    factor, true = rng.choice(factors, (runs, n)), usual(rng, runs, n)
    away = DistanceToOptimum(np.clip(true.distance / factor, -ROOM, ROOM), true.deviation / factor)
    return quadratic(rng, factor**2, away, _all(runs, elo))


def _shaped(shape: Shape, rng: np.random.Generator, runs: int, n: int, elo: float) -> RandomLosses:
    base = _usual(rng, runs, n, elo)
    engine = Shaped(
        optimum=base.optimum,
        curvature=_curvature(base),
        side=np.sign(base.start - base.optimum),
        shape=shape,
    )
    scale = -elo / engine.elo(base.start)
    return replace(base, engine=replace(engine, curvature=engine.curvature * scale))


def _dead(rng: np.random.Generator, runs: int, n: int, elo: float) -> RandomLosses:
    """Nine of ten parameters have no effect."""
    live = np.tile(np.arange(n) % 10 == 0, (runs, 1))
    return quadratic(rng, rng.permuted(live, axis=1) * 1.0, None, _all(runs, elo))


def _rotated(rng: np.random.Generator, runs: int, n: int, elo: float) -> RandomLosses:
    hessian = turned(rng, 1000 ** rng.uniform(0, 1, (runs, n)))
    return tilted(rng, hessian, None, _all(runs, elo))


def _integers(rng: np.random.Generator, runs: int, n: int, elo: float) -> RandomLosses:
    """Units of two steps, three of them to either bound."""
    units = rng.integers(1, 3, (runs, n)) * rng.choice(np.array([-1.0, 1.0]), (runs, n))
    away = DistanceToOptimum(2.0 * units, np.abs(2.0 * units))
    base = quadratic(rng, np.ones((runs, n)), away, _all(runs, elo))
    start, unit = np.zeros((runs, n)), np.full((runs, n), 2.0)
    inner = Quadratic(optimum=away.distance, curvature=_curvature(base))
    return replace(
        base,
        engine=Units(engine=inner, unit=2.0),
        start=start,
        optimum=away.distance,
        lower=start - 6.0,
        upper=start + 6.0,
        unit=unit,
    )


def _drifting(rng: np.random.Generator, runs: int, n: int, elo: float) -> RandomLosses:
    base = _usual(rng, runs, n, elo)
    inner = Quadratic(optimum=base.optimum, curvature=_curvature(base))
    return replace(base, engine=Drifting(engine=inner, phase=rng.uniform(0, 2 * pi, (runs, n))))


def _spread(
    of: Family, factors: Factors, rng: np.random.Generator, runs: int, n: int, elo: float
) -> RandomLosses:
    """Another family, every step of it wrong by a factor of its own."""
    base, factor = of(rng, runs, n, elo), factors(rng, (runs, n))
    start, optimum = base.start / factor, base.optimum / factor
    room = np.maximum(ROOM, np.abs(optimum - start) + 1.0)
    return replace(
        base,
        engine=Misjudged(engine=base.engine, factor=factor),
        start=start,
        optimum=optimum,
        lower=start - room,
        upper=start + room,
    )


def _log_uniform(most: float, rng: np.random.Generator, shape: tuple[int, ...]) -> Vector:
    """Factors of 1 / `most` to `most`."""
    return np.exp(rng.uniform(-log(most), log(most), shape))


def _log_normal(deviation: float, rng: np.random.Generator, shape: tuple[int, ...]) -> Vector:
    return np.exp(deviation * rng.standard_normal(shape))


def _twice(rng: np.random.Generator, shape: tuple[int, ...]) -> Vector:
    return rng.choice(np.array([0.5, 2.0]), shape)


def _all(runs: int, elo: float) -> Vector:
    return np.full((runs, 1), elo)


def _curvature(losses: RandomLosses) -> Vector:
    return np.diagonal(losses.hessian, axis1=-2, axis2=-1).copy()


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedGroup:
    """Some problems of one family; `runs` of them. `settled` ones have nothing to gain.

    `added` ones came after the set was opened: they are played only when they are named.
    """

    family: Family
    parameters: int = 16
    elo: float = 20.0
    runs: int = 40
    settled: bool = False
    added: bool = False


_BY_4 = partial(_log_uniform, 4.0)

GROUPS: Mapping[str, LockedGroup] = MappingProxyType(
    {
        "usual": LockedGroup(family=_usual),
        "2 Elo": LockedGroup(family=_usual, elo=2.0),
        "100 Elo": LockedGroup(family=_usual, elo=100.0),
        "100 parameters": LockedGroup(family=_usual, parameters=100, elo=30.0, runs=12),
        "steps x1/4": LockedGroup(family=partial(_misjudged, (0.25,))),
        "steps x4": LockedGroup(family=partial(_misjudged, (4.0,))),
        "steps x1/4 or x4": LockedGroup(family=partial(_misjudged, (0.25, 4.0))),
        "cliff": LockedGroup(family=partial(_shaped, cliff)),
        "asymmetric": LockedGroup(family=partial(_shaped, asymmetric)),
        "shoulder": LockedGroup(family=partial(_shaped, shoulder)),
        "plateau": LockedGroup(family=partial(_shaped, plateau)),
        "dead": LockedGroup(family=_dead, parameters=64, runs=16),
        "rotated": LockedGroup(family=_rotated),
        "integers": LockedGroup(family=_integers),
        "drifting": LockedGroup(family=_drifting),
        "spread": LockedGroup(family=partial(_spread, _usual, _BY_4)),
        "spread, 8 parameters": LockedGroup(family=partial(_spread, _usual, _BY_4), parameters=8),
        "spread, 64 parameters": LockedGroup(
            family=partial(_spread, _usual, _BY_4), parameters=64, runs=16
        ),
        "spread, 2 Elo": LockedGroup(family=partial(_spread, _usual, _BY_4), elo=2.0),
        "spread cliff": LockedGroup(family=partial(_spread, partial(_shaped, cliff), _BY_4)),
        "spread asymmetric": LockedGroup(
            family=partial(_spread, partial(_shaped, asymmetric), _BY_4)
        ),
        "spread plateau": LockedGroup(family=partial(_spread, partial(_shaped, plateau), _BY_4)),
        "spread shoulder": LockedGroup(family=partial(_spread, partial(_shaped, shoulder), _BY_4)),
        "steps x1/2 or x2": LockedGroup(family=partial(_spread, _usual, _twice)),
        "steps by 2, spread": LockedGroup(
            family=partial(_spread, _usual, partial(_log_uniform, 2.0))
        ),
        "settled": LockedGroup(family=_settled, settled=True, runs=100),
        "settled, 100 Elo a step": LockedGroup(family=_settled, elo=100.0, settled=True, runs=100),
        "spread, deviation 1.5": LockedGroup(
            family=partial(_spread, _usual, partial(_log_normal, 1.5)), added=True
        ),
    }
)

WIDE = "fishtest-wide"
RULES = ("mixture", "fishtest", WIDE, "spsa")


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupResult:
    """What a rule did in the runs of a group; shape (runs,) each.

    `gained` is in Elo over the start, `believed` what the rule takes it for (nan without a belief),
    `move` the longest way of one parameter by one result, in steps. `told` counts the steps that it
    calls too large or too small, and `told_right` those of them that are so by a quarter or more.
    `covered` is the part of the best values that the 95% intervals of its second bank hold.
    """

    gained: Vector
    believed: Vector
    move: Vector
    told: Vector
    told_right: Vector
    covered: Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """How runs are played; any other seed than the locked one is to choose rules by."""

    seed: int = SEED
    pairs: int = PAIRS
    draw_rate: float = _DRAW_RATE
    in_flight: int = 1


def group_result(
    group: str, rule: str, games: int, conditions: Conditions = Conditions()
) -> GroupResult:
    """A rule of `RULES` on a group of `GROUPS`; equal problems for all rules."""
    chosen, seed = GROUPS[group], conditions.seed
    iterations = max(1, round(games / (2 * conditions.pairs)))
    drawn = np.random.default_rng(derived_seed(seed, group))
    losses = chosen.family(drawn, chosen.runs, chosen.parameters, chosen.elo)
    problem = Problem(
        start=losses.start,
        lower=losses.lower,
        upper=losses.upper,
        unit=losses.unit,
        iterations=iterations,
        pairs=conditions.pairs,
        seed=derived_seed(seed, group, rule, games),
    )
    one = _rule(rule, problem)
    simulated_run = SimulatedRun(
        problem=problem,
        engine=losses.engine,
        games=SimulatedGames(conditions.draw_rate),
        in_flight=conditions.in_flight,
    )
    state, theta, move = one.start(), problem.inside(losses.start), np.zeros(chosen.runs)
    for state in simulated_run.run(
        one, np.random.default_rng(derived_seed(seed, group, rule, games))
    ):
        before, theta = theta, one.theta(state)
        move = np.maximum(move, np.abs(theta - before).max(axis=-1))
    gained = losses.engine.elo(theta) - losses.engine.elo(losses.start)
    belief = one.belief(state) if one.believes else None
    believed = belief.gained[:, 0] if belief else np.full(chosen.runs, np.nan)
    found = np.ones_like(theta) if belief is None or belief.too_large is None else belief.too_large
    told, true = found != 1.0, _true_factor(losses)
    right = told & (np.where(found > 1.0, true, 1.0 / true) >= _WRONG)
    return GroupResult(
        gained=gained[:, 0],
        believed=believed,
        move=move,
        told=told.sum(axis=-1),
        told_right=right.sum(axis=-1),
        covered=_covered(state, losses.optimum),
    )


def _covered(state: State, optimum: Vector) -> Vector:
    """Nan without a second bank."""
    if not isinstance(state, Bank):
        return np.full(len(optimum), np.nan)
    own, weight = state.own, state.own.weight
    mean = (weight * own.mean).sum(axis=-2)
    variance = (weight * (own.variance + (own.mean - mean[..., None, :]) ** 2)).sum(axis=-2)
    covered: Vector = (np.abs(optimum - mean) < 1.96 * np.sqrt(variance)).mean(axis=-1)
    return covered


def _true_factor(losses: RandomLosses) -> Vector:
    """How many times too large each step is beside the others, shape (R, n)."""
    inner = np.sqrt(np.maximum(_curvature(losses), np.finfo(np.float64).tiny))
    factor: Vector = inner * getattr(losses.engine, "factor", 1.0)
    return factor / np.median(factor, axis=-1, keepdims=True)


def _rule(name: str, problem: Problem) -> Rule:
    """`WIDE` perturbs as widely as `mixture` did before it chose its width by itself."""
    if name != WIDE:
        return create(name, {}, problem)
    width = (1e6 / (problem.pairs * problem.iterations)) ** 0.101
    return create("fishtest", {"c_end": width}, problem)
