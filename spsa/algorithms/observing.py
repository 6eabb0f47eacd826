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

    def carried(self, carry: Carry) -> Self:
        """The average in another space; a parameter that is new there has been where it starts."""
        variance = carry.variances(self.variance, np.zeros_like(carry.value))
        return type(self)(self.count, carry.positions(self.mean), variance)

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

    An older program kept no notes, so they may start later than the run. `witness` is None if the
    rule has a belief of its own.
    """

    average: Average
    witness: State


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """The state of a rule with its notes; None in the state of an older program."""

    rule: State
    notes: Notes | None


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
        before = state.notes or self._blank()
        notes = Notes(
            average=before.average.with_next(self.rule.theta(after)),
            witness=self.witness and self.witness.tell(before.witness, outcome)[0],
        )
        return Observation(after, notes), update

    def on(self, problem: Problem) -> "Observed":
        """The same rule and witness, with the gains that they have, on another problem."""
        return Observed(self.rule.on(problem), self.witness and self.witness.on(problem), problem)

    def carried(self, state: Observation, carry: Carry) -> Observation:
        """A state that this rule had on another problem, in the coordinates of this one."""
        rule, notes = self.rule.carried(state.rule, carry), state.notes
        if notes is None:
            return Observation(rule, None)
        witness = self.witness and self.witness.carried(notes.witness, carry)
        return Observation(rule, Notes(notes.average.carried(carry), witness))

    def forked(self, state: Observation, carry: Carry) -> Observation:
        """The same as the start of another run, whose average has no theta yet."""
        blank, notes = self._blank(), state.notes
        if self.witness is not None and notes is not None:
            blank = replace(blank, witness=self.witness.carried(notes.witness, carry))
        return Observation(self.rule.carried(state.rule, carry), blank)

    def averaged(self, state: Observation) -> Spread | None:
        """The mean and standard deviation of theta; None before the second outcome."""
        return None if state.notes is None else state.notes.average.spread

    def supported(self, state: Observation) -> Belief | None:
        """The optimum that all games together suggest; None before the first outcome."""
        notes = state.notes
        if notes is None or notes.average.count == 0:
            return None
        if self.witness is None:
            return self.rule.belief(state.rule)
        return self.witness.belief(notes.witness)

    def dump(self, state: Observation) -> dict[str, Any]:
        """The state as JSON values; without notes, that of the rule alone."""
        own, notes = self.rule.dump(state.rule), state.notes
        if notes is None:
            return own
        return {
            "rule": own,
            "notes": {
                "average": notes.average.dump(),
                "witness": self.witness and self.witness.dump(notes.witness),
            },
        }

    def load(self, data: Mapping[str, Any]) -> Observation:
        """The state from `dump`, or the rule's alone. Raises UnusableState for anything else."""
        if "notes" not in data:
            return Observation(self.rule.load(data), None)
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


def noted(data: Mapping[str, Any]) -> int | None:
    """How many outcomes are in the notes of a dumped state; None without valid notes."""
    try:
        return int(data["notes"]["average"]["count"])
    except (KeyError, TypeError, ValueError):
        return None


def without_notes(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """A dumped state without notes: the rule's alone."""
    return data["rule"] if "notes" in data else data
