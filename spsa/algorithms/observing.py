"""Adds estimates of the best values to a rule: the average of theta, and what the games support.

What the games support is the belief of the rule. A rule without belief gets a witness: a `mixture`
that is told the same outcomes but chooses no points. As far as its model is true, it does not
matter who chose the points. The model has one curvature for all
parameters. If curvatures differ much, early games leave a bias: after a short run of a rule with
large steps, theta itself is closer to the optimum; after a short run of a rule with small steps,
the witness is far closer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from spsa.algorithms.carrying import Carry
from spsa.algorithms.registry import create
from spsa.algorithms.rule import (
    Belief,
    Outcome,
    Perturbation,
    Problem,
    Rule,
    RuleUpdate,
    State,
    Vector,
)
from spsa.algorithms.state_json import packed, restored
from spsa.errors import UnusableState

_ETA = 3


class Spread(NamedTuple):
    """Where theta was on average, and its standard deviation; shape (n,) each."""

    mean: Vector
    deviation: Vector


@dataclass(frozen=True, slots=True, eq=False)
class Average:
    """The average of `count` thetas; `mean` and `variance` have the shape of theta, (n,)."""

    count: int
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
    def spread(self) -> Spread | None:
        """The average and the deviation of theta; None for fewer than two thetas."""
        return Spread(self.mean, np.sqrt(self.variance)) if self.count > 1 else None

    def dump(self) -> dict[str, Any]:
        return {
            "count": self.count,
            "mean": packed(self.mean),
            "variance": packed(self.variance),
        }

    @classmethod
    def load(cls, data: Mapping[str, Any], like: Vector) -> Self:
        """The average that `dump` wrote. Raises UnusableState for anything else."""
        needed = {"count": (), "mean": like.shape, "variance": like.shape}
        saved = restored("the average", data, needed)
        return cls(int(saved["count"]), saved["mean"], saved["variance"])


WITNESS = "mixture"


@dataclass(frozen=True, slots=True, eq=False)
class Notes:
    """The average and the witness's state after the outcomes so far.

    `witness` is None if the rule has a belief of its own.
    """

    average: Average
    witness: State


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """The state of a rule with its notes."""

    rule: State
    notes: Notes


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """A rule with notes; `ask` and `tell` are those of the rule."""

    rule: Rule
    witness: Rule | None
    problem: Problem

    @property
    def name(self) -> str:
        return self.rule.name

    def start(self) -> Observation:
        return Observation(self.rule.start(), self._blank())

    def theta(self, state: Observation) -> Vector:
        return self.rule.theta(state.rule)

    def ask(self, state: Observation, k: int, rng: np.random.Generator) -> Perturbation:
        return self.rule.ask(state.rule, k, rng)

    def tell(self, state: Observation, outcome: Outcome) -> tuple[Observation, RuleUpdate]:
        after, update = self.rule.tell(state.rule, outcome)
        notes = Notes(
            average=state.notes.average.with_next(self.rule.theta(after)),
            witness=self.witness and self.witness.tell(state.notes.witness, outcome)[0],
        )
        return Observation(after, notes), update

    def forked(self, state: Observation, carry: Carry) -> Observation:
        """What this rule knew on another problem, as the start of a run on this one.

        Its average has no theta yet.
        """
        blank = self._blank()
        if self.witness is not None:
            witness = self.witness.carried(state.notes.witness, carry)
            blank = replace(blank, witness=witness)
        return Observation(self.rule.carried(state.rule, carry), blank)

    def averaged(self, state: Observation) -> Spread | None:
        """The mean and standard deviation of theta; None before the second outcome."""
        return state.notes.average.spread

    def supported(self, state: Observation) -> Belief | None:
        """The optimum that all games together suggest; None before the first outcome."""
        if state.notes.average.count == 0:
            return None
        if self.witness is None:
            return self.rule.belief(state.rule)
        return self.witness.belief(state.notes.witness)

    def dump(self, state: Observation) -> dict[str, Any]:
        """The state as JSON values."""
        return {
            "rule": self.rule.dump(state.rule),
            "notes": {
                "average": state.notes.average.dump(),
                "witness": self.witness and self.witness.dump(state.notes.witness),
            },
        }

    def load(self, data: Mapping[str, Any]) -> Observation:
        """The state from `dump`. Raises UnusableState for anything else."""
        rule, notes = self.rule.load(_part(data, "rule")), _part(data, "notes")
        average = Average.load(_part(notes, "average"), self.problem.start)
        witness = self.witness and self.witness.load(_part(notes, "witness"))
        return Observation(rule, Notes(average, witness))

    def _blank(self) -> Notes:
        average = Average.of_nothing(self.problem.start)
        return Notes(average, self.witness and self.witness.start())


def _part(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = data.get(name)
    if not isinstance(part, Mapping):
        raise UnusableState(f"the saved state has no {name}")
    return part


def observed(rule: Rule, problem: Problem) -> Observed:
    """The rule with notes, and with a witness if it has no belief of its own."""
    believes = rule.belief(rule.start()) is not None
    return Observed(rule, None if believes else create(WITNESS, {}, problem), problem)
