"""Synthetic engines: their strength as a function of the parameters, and simulated games.

As in `spsa.algorithms.rule`, the last axis of a vector is that of the parameters, in steps; numbers
have a last axis of length 1, and axes before it are independent replicas. Replicas are broadcast,
so that both sides of a pair can be computed at once, on an axis in front.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from spsa.algorithms.rule import Vector
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
