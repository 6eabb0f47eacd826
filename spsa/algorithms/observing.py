"""Adds estimates of the best values to a rule: the average of theta, and what the games support.

What the games support is the belief of the rule. A rule without belief gets a witness: a `mixture`
that is told the same outcomes but chooses no points. As far as its model is true, it does not
matter who chose the points. The model has one curvature for all parameters. If curvatures differ
much, early games leave a bias: after a short run of a rule with large steps, theta itself is closer
to the optimum; after one of a rule with small steps, the witness is far closer.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from spsa.algorithms import (
    Belief,
    Outcome,
    Perturbation,
    Problem,
    Rule,
    RuleUpdate,
    State,
    Vector,
    create,
)
from spsa.algorithms.state import Carry, restored, saved

_ETA = 3


@dataclass(frozen=True, slots=True, eq=False)
class Average:
    """The average of `count` thetas; `mean` and `variance` have the shape of theta, (n,)."""

    count: float
    mean: Vector
    variance: Vector

    @classmethod
    def of_nothing(cls, like: Vector) -> Self:
        """The average of no thetas, with the shape of `like`."""
        return cls(0, np.zeros_like(like), np.zeros_like(like))

    def with_next(self, theta: Vector) -> Self:
        """The average with one more theta."""
        count = self.count + 1
        weight = (_ETA + 1) / (count + _ETA)
        change = theta - self.mean
        return type(self)(
            count,
            self.mean + weight * change,
            (1 - weight) * (self.variance + weight * change**2),
        )

    @property
    def deviation(self) -> Vector:
        """The standard deviation of theta."""
        deviation: Vector = np.sqrt(self.variance)
        return deviation


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """The state of a rule, the average of its theta, and the witness's state, if there is one."""

    rule: State
    average: Average
    witness: State


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """A rule with an average, and with a witness if it has no belief of its own.

    `ask` and `tell` are those of the rule.
    """

    rule: Rule
    witness: Rule | None
    problem: Problem

    @property
    def name(self) -> str:
        return self.rule.name

    def start(self) -> Observation:
        average = Average.of_nothing(self.problem.start)
        return Observation(self.rule.start(), average, self.witness and self.witness.start())

    def theta(self, state: Observation) -> Vector:
        return self.rule.theta(state.rule)

    def ask(self, state: Observation, k: int, rng: np.random.Generator) -> Perturbation:
        return self.rule.ask(state.rule, k, rng)

    def tell(self, state: Observation, outcome: Outcome) -> tuple[Observation, RuleUpdate]:
        after, update = self.rule.tell(state.rule, outcome)
        average = state.average.with_next(self.rule.theta(after))
        witness = self.witness and self.witness.tell(state.witness, outcome)[0]
        return Observation(after, average, witness), update

    def forked(self, state: Observation, carry: Carry) -> Observation:
        """What this rule knew on another problem, as the start of a run on this one.

        Its average has no theta yet.
        """
        return Observation(
            self.rule.carried(state.rule, carry),
            self.start().average,
            self.witness and self.witness.carried(state.witness, carry),
        )

    def supported(self, state: Observation) -> Belief | None:
        """The optimum that all games together suggest; None before the first outcome."""
        if state.average.count == 0:
            return None
        if self.witness is None:
            return self.rule.belief(state.rule)
        return self.witness.belief(state.witness)

    def dump(self, state: Observation) -> dict[str, Any]:
        """The state as JSON values, from which `load` restores it to the bit."""
        parts = {name: getattr(state, name) for name in Observation.__slots__}
        return {name: saved(part) for name, part in parts.items() if part is not None}

    def load(self, data: Mapping[str, Any]) -> Observation:
        """The state that `dump` wrote. Raises UnusableState for anything else."""
        start = self.start()

        def part(name: str) -> State:
            like = getattr(start, name)
            return like and restored(self.name, data.get(name), like)

        return Observation(*map(part, Observation.__slots__))


def observed(rule: Rule, problem: Problem) -> Observed:
    """The rule with its notes."""
    believes = rule.belief(rule.start()) is not None
    return Observed(rule, None if believes else create("mixture", {}, problem), problem)
