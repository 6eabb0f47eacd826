"""A rule moves the theta of a synthetic engine, as the master would move a real one's."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from spsa.algorithms import Outcome, Perturbation, Problem, Rule, Vector
from spsa.algorithms.rule import State
from spsa.params.perturbation import Grid, round_together, straddle
from spsa.simulation.engine import Engine, Games


@dataclass(frozen=True, slots=True, kw_only=True)
class Race:
    """What is run: `problem` has the length of the run, the bounds and the units.

    `depth` iterations are open at a time: iteration k is asked for when the results through
    k - depth are in, exactly as the master does it.
    """

    problem: Problem
    engine: Engine
    games: Games
    depth: int = 1

    def run(self, rule: Rule, rng: np.random.Generator) -> Iterator[State]:
        """The rule's state after each of the planned results."""
        state, opened = rule.start(), deque[Played]()
        last = self.problem.iterations
        for k in range(1, last + 1):
            while len(opened) < self.depth and k + len(opened) <= last:
                opened.append(self._realised(rule.ask(state, k + len(opened), rng), rng))
            state, _ = rule.tell(state, self._outcome(k, opened.popleft(), rng))
            yield state

    def _realised(self, asked: Perturbation, rng: np.random.Generator) -> "Played":
        problem = self.problem
        grid = Grid(problem.lower, problem.upper, problem.unit)
        plus, minus = straddle(grid, asked.centre, asked.offset)
        if problem.unit.any():
            plus, minus = round_together(grid, plus, minus, rng.random(asked.centre.shape))
            unit = np.where(problem.unit > 0.0, problem.unit, 1.0)
            plus, minus = plus * unit, minus * unit
        return Played(asked, plus, minus)

    def _outcome(self, k: int, played: "Played", rng: np.random.Generator) -> Outcome:
        better = self.engine.elo(played.plus) - self.engine.elo(played.minus)
        return Outcome(
            k=k,
            centre=(played.plus + played.minus) / 2,
            difference=played.plus - played.minus,
            pentanomial=self.games.play(better, self.problem.pairs, rng),
            a_k=played.asked.a_k,
            c_k=played.asked.c_k,
        )


@dataclass(frozen=True, slots=True)
class Played:
    """What was asked for, and the two points that were played for it, in steps; shape (n,)."""

    asked: Perturbation
    plus: Vector
    minus: Vector


def final(race: Race, rule: Rule, rng: np.random.Generator) -> State:
    """The rule's state after the last result."""
    return deque(race.run(rule, rng), maxlen=1).pop()
