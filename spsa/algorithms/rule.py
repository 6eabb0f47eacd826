"""What a rule is told, what it asks for, and what it answers: ask and tell.

All vectors are float64 arrays over the active parameters, in units of each one's step. Rules are
pure: no clock, no file, and no random number but from the generator they are handed. Everything a
rule remembers is in its state.

Shapes are written for one run: (n,) for a vector, (1,) for a number of an outcome. Rules work on
the last axis alone, so that any axes before it are independent runs of the same length: what a
simulation plays by the thousand is the very rule that moves a real run.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]

_RESULTS = np.arange(-2.0, 3.0)  # w of a pair, wins minus losses of plus, by its half points
_SQUARES = _RESULTS**2

State = Any
"""A rule's memory: its own frozen value, opaque to everybody else."""


def total(vector: Vector) -> Vector:
    """The sum over the last axis, which is kept with length 1."""
    summed: Vector = np.add.reduce(vector, axis=-1, keepdims=True)
    return summed


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What is to be tuned, and the budget that is planned for it.

    `unit` is the smallest change that an engine can see, 0 where a parameter is continuous. The
    plan is `iterations` results of `pairs` game pairs each; gains may depend on it, but a run may
    stop before or go on after it.
    """

    start: Vector
    lower: Vector
    upper: Vector
    unit: Vector
    iterations: int
    pairs: int

    def inside(self, theta: Vector) -> Vector:
        """The point within the bounds that is nearest to theta."""
        return np.minimum(np.maximum(theta, self.lower), self.upper)


@dataclass(frozen=True, slots=True, kw_only=True)
class Perturbation:
    """Two points to be played: plus at centre + offset, minus at centre - offset.

    `offset` is c_k * delta. a_k and c_k are the gains of iteration k, kept with the iteration; what
    a_k scales is the rule's own affair.
    """

    centre: Vector
    offset: Vector
    a_k: float
    c_k: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of iteration k, with what was really played.

    `difference` is plus - minus and `centre` the point between them, as the engines had them:
    after bounds, constraints and rounding. A difference of 0 says that the games tell nothing
    about that parameter. `pentanomial`, shape (5,), counts the pairs in which plus scored i half
    points.
    """

    k: int
    centre: Vector
    difference: Vector
    pentanomial: Vector
    a_k: float
    c_k: float

    @property
    def pairs(self) -> Vector:
        """B, the number of game pairs, shape (1,)."""
        return total(self.pentanomial)

    @property
    def result(self) -> Vector:
        """W, wins minus losses of plus, shape (1,)."""
        return total(self.pentanomial * _RESULTS)

    @property
    def squares(self) -> Vector:
        """The sum of w^2 over the pairs, shape (1,)."""
        return total(self.pentanomial * _SQUARES)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleUpdate:
    """What a result did: theta after it, the gradient in Elo per step, and the Elo it came from.

    Elo is of plus over minus, shape (1,). `bounded`, shape (1,), says that the games' own Elo was
    larger in size than the rule believed it.
    """

    theta: Vector
    gradient: Vector
    elo: Vector
    bounded: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Belief:
    """Where a rule believes the optimum to be: a mean and a standard deviation, shape (n,) each."""

    mean: Vector
    deviation: Vector


class Rule(Protocol):
    """A method that moves theta. k counts from 1.

    Results are told in order of k, once each, but what they were played with may have been asked
    for on an older state: iteration k is asked while results before it are still out.
    """

    @property
    def name(self) -> str: ...

    def start(self) -> State:
        """The state before any result."""
        ...

    def theta(self, state: State) -> Vector:
        """The best theta known, inside the bounds."""
        ...

    def ask(self, state: State, k: int, rng: np.random.Generator) -> Perturbation:
        """What iteration k should play. Equal generators give equal perturbations."""
        ...

    def tell(self, state: State, outcome: Outcome) -> tuple[State, RuleUpdate]:
        """The state after one more result, and what changed."""
        ...

    def belief(self, state: State) -> Belief | None:
        """What the rule holds for true of the optimum; None for a rule that holds nothing."""
        ...

    def dump(self, state: State) -> dict[str, Any]:
        """The state as JSON values; `load` gives it back to the last bit."""
        ...

    def load(self, data: Mapping[str, Any]) -> State:
        """The state that `dump` wrote. Raises UnusableState where the rule cannot go on from it."""
        ...
