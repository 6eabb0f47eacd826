"""Synthetic engines, the games they would play, and a rule that moves theta by these games.

The first axis of every array runs over replicas: independent runs that are simulated together.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from spsa.algorithms.rule import Outcome, Perturbation, Problem, State
from spsa.core.params import Grid, Vector, round_together, straddle
from spsa.core.scoring import ELO_PER_SCORE

_TALLIES = np.eye(5)  # the pentanomial of one pair, by its half points


class Engine(Protocol):
    """An engine with a known strength."""

    def elo(self, theta: Vector) -> Vector:
        """Elo of the engine at theta, shape (1,): 0 at its best, negative elsewhere."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Quadratic:
    """Loses `curvature` Elo per parameter and squared step from its `optimum`; shape (n,)."""

    optimum: Vector
    curvature: Vector

    def elo(self, theta: Vector) -> Vector:
        away = theta - self.optimum
        loss: Vector = np.einsum("...i,...i,...i->...", self.curvature, away, away)[..., None]
        return -loss


@dataclass(frozen=True, slots=True)
class SimulatedGames:
    """Pairs of independent games with a fixed draw rate d: p - d/2 won, d drawn, 1 - p - d/2 lost.

    This is the model of Ivec & Vojnovic 2022. If one side is so much stronger that a probability
    would be negative, all games that are not won are drawn. `bias`, 0..1, is how much an unbalanced
    opening adds to the score p of the better side.
    """

    draw_rate: Vector | float
    bias: float = 0.0

    def play(self, elo: Vector, pairs: int, rng: np.random.Generator) -> Vector:
        """The pentanomial, shape (5,), of `pairs` pairs in which plus is `elo`, shape (1,), up."""
        score = (1 + np.tanh(elo / ELO_PER_SCORE)) / 2
        if pairs == 1:
            return self._of_one(score, rng)
        chances = _of_pair(self._of_game(score + self.bias), self._of_game(score - self.bias))
        return rng.multinomial(pairs, chances).astype(np.float64)

    def _of_one(self, score: Vector, rng: np.random.Generator) -> Vector:
        """The same distribution for a single pair, several times faster: a draw for each game."""
        if self.bias:
            score = np.clip(score + np.array([self.bias, -self.bias]), 0.0, 1.0)
        half_drawn = np.minimum(self.draw_rate / 2, np.minimum(score, 1 - score))
        drawn = rng.random((*score.shape[:-1], 2))
        points = np.add(drawn < score - half_drawn, drawn < score + half_drawn, dtype=np.intp)
        return _TALLIES.take(points[..., 0] + points[..., 1], axis=0)

    def _of_game(self, score: Vector) -> Vector:
        """Chances of loss, draw and win, shape (3,)."""
        score = np.clip(score, 0.0, 1.0)
        drawn = np.minimum(self.draw_rate, 2 * np.minimum(score, 1 - score))
        return np.concatenate([1 - score - drawn / 2, drawn, score - drawn / 2], axis=-1)


def _of_pair(one: Vector, other: Vector) -> Vector:
    """Chances of 0 to 4 half points in two independent games, shape (5,)."""
    chances = np.zeros((*one.shape[:-1], 5))
    for i in range(3):
        chances[..., i : i + 3] += one[..., i, None] * other
    return chances


class SimulatedRule(Protocol):
    """The part of a `Rule` that a simulated run needs."""

    def start(self) -> State: ...

    def theta(self, state: State) -> Vector: ...

    def ask(self, state: State, k: int, rng: np.random.Generator) -> Perturbation: ...

    def tell(self, state: State, outcome: Outcome) -> State: ...


@dataclass(frozen=True, kw_only=True)  # no slots: a property is computed once
class SimulatedRun:
    """A simulated run; `problem` has its length, bounds and units.

    `in_flight` iterations are open: iteration k is opened on the results through k - in_flight,
    like the master does. `grows` limits them by the number of results.
    """

    problem: Problem
    engine: Engine
    games: SimulatedGames
    in_flight: int = 1
    grows: Callable[[int], int] | None = None

    def run(
        self, rule: SimulatedRule, rng: np.random.Generator, start: State | None = None
    ) -> Iterator[State]:
        """The rule's state after each of the planned results; `start` is not the rule's own."""
        state = rule.start() if start is None else start
        opened = deque[PlayedPerturbation]()
        last = self.problem.iterations
        for k in range(1, last + 1):
            while len(opened) < self._in_flight_after(k - 1) and k + len(opened) <= last:
                opened.append(self._realised(rule.ask(state, k + len(opened), rng), rng))
            state = rule.tell(state, self._outcome(k, opened.popleft(), rng))
            yield state

    def _in_flight_after(self, results: int) -> int:
        return self.in_flight if self.grows is None else min(self.in_flight, self.grows(results))

    def _realised(self, asked: Perturbation, rng: np.random.Generator) -> "PlayedPerturbation":
        sides = np.stack([asked.centre + asked.offset, asked.centre - asked.offset])
        if self._continuous and self._inside(sides):
            return PlayedPerturbation(asked, sides)
        return PlayedPerturbation(asked, np.stack(self._playable(asked, rng)))

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

    def _outcome(self, k: int, played: "PlayedPerturbation", rng: np.random.Generator) -> Outcome:
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
class PlayedPerturbation:
    """A perturbation, and the points played for it: plus and minus, shape (2, n), in steps."""

    asked: Perturbation
    sides: Vector


def final(simulated_run: SimulatedRun, rule: SimulatedRule, rng: np.random.Generator) -> State:
    """The rule's state after the last result."""
    return deque(simulated_run.run(rule, rng), maxlen=1).pop()
