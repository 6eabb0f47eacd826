"""Runs a rule on a synthetic engine, in the same way as the master on a real one."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from spsa.algorithms import Outcome, Perturbation, Problem, RuleUpdate, Vector
from spsa.algorithms.rule import State
from spsa.core.params.perturbation import Grid, round_together, straddle
from spsa.lab.simulation.engine import Engine, SimulatedGames


class Tuner(Protocol):
    """The part of a `Rule` that a race needs."""

    def start(self) -> State: ...

    def theta(self, state: State) -> Vector: ...

    def ask(self, state: State, k: int, rng: np.random.Generator) -> Perturbation: ...

    def tell(self, state: State, outcome: Outcome) -> tuple[State, RuleUpdate]: ...


@dataclass(frozen=True, kw_only=True)  # no slots: a property is computed once
class Race:
    """A simulated run; `problem` has its length, bounds and units.

    `depth` iterations are open at a time: iteration k is opened on the results through k - depth,
    like the master does. `grows` limits the depth by the number of results.
    """

    problem: Problem
    engine: Engine
    games: SimulatedGames
    depth: int = 1
    grows: Callable[[int], int] | None = None

    def run(self, rule: Tuner, rng: np.random.Generator) -> Iterator[State]:
        """The rule's state after each of the planned results."""
        state, opened = rule.start(), deque[RaceResult]()
        last = self.problem.iterations
        for k in range(1, last + 1):
            while len(opened) < self._depth_after(k - 1) and k + len(opened) <= last:
                opened.append(self._realised(rule.ask(state, k + len(opened), rng), rng))
            state, _ = rule.tell(state, self._outcome(k, opened.popleft(), rng))
            yield state

    def _depth_after(self, results: int) -> int:
        return self.depth if self.grows is None else min(self.depth, self.grows(results))

    def _realised(self, asked: Perturbation, rng: np.random.Generator) -> "RaceResult":
        sides = np.stack([asked.centre + asked.offset, asked.centre - asked.offset])
        if self._continuous and self._inside(sides):
            return RaceResult(asked, sides)
        return RaceResult(asked, np.stack(self._playable(asked, rng)))

    @cached_property
    def _continuous(self) -> bool:
        return not self.problem.unit.any()

    def _inside(self, theta: Vector) -> bool:
        problem = self.problem
        return bool((theta >= problem.lower).all() and (theta <= problem.upper).all())

    def _playable(self, asked: Perturbation, rng: np.random.Generator) -> tuple[Vector, Vector]:
        """Plus and minus within the bounds, and in whole units if the problem has units."""
        problem = self.problem
        grid = Grid(problem.lower, problem.upper, problem.unit)
        plus, minus = straddle(grid, asked.centre, asked.offset)
        if self._continuous:
            return plus, minus
        plus, minus = round_together(grid, plus, minus, rng.random(asked.centre.shape))
        unit = np.where(problem.unit > 0.0, problem.unit, 1.0)
        return plus * unit, minus * unit

    def _outcome(self, k: int, played: "RaceResult", rng: np.random.Generator) -> Outcome:
        plus, minus = played.sides
        elo = self.engine.elo(played.sides)
        return Outcome(
            k=k,
            centre=(plus + minus) / 2,
            difference=plus - minus,
            pentanomial=self.games.play(elo[0] - elo[1], self.problem.pairs, rng),
            a_k=played.asked.a_k,
            c_k=played.asked.c_k,
        )


@dataclass(frozen=True, slots=True)
class RaceResult:
    """A perturbation, and the points played for it: plus and minus, shape (2, n), in steps."""

    asked: Perturbation
    sides: Vector


def final(race: Race, rule: Tuner, rng: np.random.Generator) -> State:
    """The rule's state after the last result."""
    return deque(race.run(rule, rng), maxlen=1).pop()
