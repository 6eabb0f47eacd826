"""Tunes a new version of an engine from what a run of the old version learned.

A run tunes a random engine. Then the engine changes: its optimum drifts, or everything about it is
drawn anew. Runs of the new version differ in their start: the values before any tuning, the theta
of the run without its knowledge, or the theta with its knowledge.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import log
from types import MappingProxyType

import numpy as np

from benches.papers.random_losses import quadratic
from spsa.algorithms import create
from spsa.algorithms.rule import Problem, State
from spsa.algorithms.state import Carry
from spsa.core import derived_seed
from spsa.core.params import Vector
from spsa.planning.simulated_run import Engine, Quadratic, SimulatedGames, SimulatedRun, final

EVERYTHING = "everything"
CHANGES: Mapping[str, float | None] = MappingProxyType(
    {"nothing": 0.0, "0.3 steps": 0.3, "1 step": 1.0, EVERYTHING: None}
)
"""The standard deviation of the drift of every optimum, in steps; None: a new engine."""

FIRST_VALUES, THETA, KNOWLEDGE = "first values", "theta alone", "theta and knowledge"

_MIN_ELO, _MAX_ELO = 3.0, 60.0  # to gain on a new engine
_DRAW_RATE = 0.6
_RULE = "mixture"


@dataclass(frozen=True, slots=True, kw_only=True)
class Retuning:
    """`runs` simulated pairs of an earlier and a new run, drawn from `seed`.

    Iterations have `pairs` game pairs; `earlier` and `later` are the games of the two runs. The
    engine loses `elo` at its first values; its optimum is 0.3 to 2.5 steps away in each of the
    `parameters`.
    """

    change: str
    earlier: int
    later: int
    parameters: int = 16
    elo: float = 20.0
    pairs: int = 15
    runs: int = 200
    seed: int = 1

    def lost(self) -> dict[str, Vector]:
        """By start: the Elo below the optimum after each result, shape (results, runs)."""
        drawn = self._generator("engines")
        shape = np.exp(drawn.standard_normal((self.runs, self.parameters)) / 2)
        losses = quadratic(drawn, shape, None, np.full((self.runs, 1), self.elo))
        problem = Problem(
            start=losses.start,
            lower=losses.lower,
            upper=losses.upper,
            unit=losses.unit,
            iterations=self.earlier // (2 * self.pairs),
            pairs=self.pairs,
            seed=self.seed,
        )
        rule = create(_RULE, {}, problem)
        known = final(_run(problem, losses.engine), rule, self._generator("earlier"))
        theta = rule.theta(known)
        curvature = np.diagonal(losses.hessian, axis1=-2, axis2=-1)
        old = Quadratic(optimum=losses.optimum, curvature=curvature)
        now = self._changed(old, theta)
        return {
            name: self._curve(asked, start, now)
            for name, asked, start in self._starts(problem, theta, known)
        }

    def _changed(self, engine: Quadratic, theta: Vector) -> Quadratic:
        drift, drawn = CHANGES[self.change], self._generator("change", self.change)
        if drift is not None:
            moved = engine.optimum + drift * drawn.standard_normal(theta.shape)
            return replace(engine, optimum=moved)
        elo = np.exp(drawn.uniform(log(_MIN_ELO), log(_MAX_ELO), (self.runs, 1)))
        losses = quadratic(drawn, np.exp(drawn.standard_normal(theta.shape) / 2), None, elo)
        curvature = np.diagonal(losses.hessian, axis1=-2, axis2=-1)
        return Quadratic(optimum=theta + losses.optimum - losses.start, curvature=curvature)

    def _starts(
        self, before: Problem, theta: Vector, known: State
    ) -> Iterator[tuple[str, Problem, State | None]]:
        first = replace(before, iterations=self.later // (2 * self.pairs))
        if self.change != EVERYTHING:  # the first values belong to another engine
            yield FIRST_VALUES, first, None
        now = replace(first, start=theta)
        yield THETA, now, None
        n = self.parameters
        every = Carry(source=np.arange(n), scale=np.ones(n), value=np.zeros(n))
        yield KNOWLEDGE, now, create(_RULE, {}, now).carried(known, every)

    def _curve(self, problem: Problem, start: State | None, engine: Quadratic) -> Vector:
        """Every start has the same random numbers."""
        rule = create(_RULE, {}, problem)
        states = _run(problem, engine).run(rule, self._generator("later"), start)
        return np.array([-engine.elo(rule.theta(state))[:, 0] for state in states])

    def _generator(self, *names: str) -> np.random.Generator:
        return np.random.default_rng(derived_seed(self.seed, "retuning", *names))


def _run(problem: Problem, engine: Engine) -> SimulatedRun:
    return SimulatedRun(problem=problem, engine=engine, games=SimulatedGames(_DRAW_RATE))


def saving(lost: Vector, reference: Vector) -> float | None:
    """The part of the reference's games that a start does not need to be as strong as that is.

    Both are of `Retuning.lost`, by their means over the runs. None if all games are not enough.
    """
    enough = np.flatnonzero(lost.mean(axis=1) <= reference[-1].mean())
    return 1 - (int(enough[0]) + 1) / len(reference) if enough.size else None
