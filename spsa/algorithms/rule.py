"""The interface of rules: `ask` gives a perturbation, `tell` takes its outcome.

All vectors are float64 arrays over the active parameters, in units of each one's step. Rules are
pure: they use no clock, no file, and only the random generator that they are given. All memory of a
rule is in its state.

Shapes are those of one run: (n,) for a vector, (1,) for a number. Rules work on the last axis only;
axes before it are independent runs of the same length. So simulations of thousands of runs use the
same rule as a real run.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from spsa.algorithms.carrying import Carry
from spsa.algorithms.settings import Setting

Vector = npt.NDArray[np.float64]

_RESULTS = np.arange(-2.0, 3.0)  # w of a pair, wins minus losses of plus, by its half points
_SQUARES = _RESULTS**2

State = Any
"""The state of a rule: a frozen value that only the rule reads."""


def total(vector: Vector) -> Vector:
    """The sum over the last axis, which is kept with length 1."""
    summed: Vector = np.add.reduce(vector, axis=-1, keepdims=True)
    return summed


def along(one: Vector, other: Vector) -> Vector:
    """The inner products of the last axes, which are kept with length 1; makes no product array."""
    found: Vector = np.einsum("...i,...i->...", one, other)[..., None]
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What is to be tuned, and the planned budget.

    `unit` is the smallest change of an engine's value; 0 for a continuous parameter.
    `iterations` results of `pairs` game pairs each are planned. Gains may depend on that, but a run
    may be shorter or longer. `seed` is for perturbations that depend on each other.
    """

    start: Vector
    lower: Vector
    upper: Vector
    unit: Vector
    iterations: int
    pairs: int
    seed: int = 0

    def inside(self, theta: Vector) -> Vector:
        """The point nearest to theta within the bounds."""
        return np.minimum(np.maximum(theta, self.lower), self.upper)


@dataclass(frozen=True, slots=True, kw_only=True)
class Perturbation:
    """Two points to play: plus at centre + offset, minus at centre - offset.

    `offset` is c_k * delta. a_k and c_k are the gains of iteration k and are stored with it; each
    rule defines what a_k scales. c_k has shape (1,) in a rule that derives it from results.
    """

    centre: Vector
    offset: Vector
    a_k: float
    c_k: float | Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of iteration k, with the points that were really played.

    `difference` is plus - minus and `centre` the point between them, after bounds, constraints and
    rounding. With a difference of 0 the games have no information about that parameter.
    `pentanomial`, shape (5,), counts the pairs in which plus scored i half points.
    """

    k: int
    centre: Vector
    difference: Vector
    pentanomial: Vector
    a_k: float
    c_k: float | Vector

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
    """What a result says: the gradient in Elo per step, and the measured Elo.

    Elo is that of plus over minus, shape (1,). `bounded`, shape (1,), is whether the rule limited
    the Elo of the games.
    """

    gradient: Vector
    elo: Vector
    bounded: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Belief:
    """A rule's estimate of the optimum: mean and standard deviation, shape (n,) each.

    `deviation` is None where the games do not say how wrong the mean may be. `gained` is the Elo of
    the rule's theta over the start, as it believes; shape (1,). Nothing says how wrong that may be.
    """

    mean: Vector
    deviation: Vector | None
    gained: Vector


class Rule(Protocol):
    """How the results of iterations move theta. k counts from 1.

    `tell` gets every result once, in the order of k. `ask` may be called on an older state:
    iteration k is opened while results before it are still missing.
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
        """The perturbation of iteration k; the same for equal generators and problems."""
        ...

    def tell(self, state: State, outcome: Outcome) -> tuple[State, RuleUpdate]:
        """The state after one more result, and its effect."""
        ...

    def carried(self, state: State, carry: Carry) -> State:
        """A state that this rule had on another problem, in the coordinates of this problem."""
        ...

    def belief(self, state: State) -> Belief | None:
        """The rule's estimate of the optimum; None for a rule without one."""
        ...

    def dump(self, state: State) -> dict[str, Any]:
        """The state as JSON values, from which `load` restores it to the bit."""
        ...

    def load(self, data: Mapping[str, Any]) -> State:
        """The state that `dump` wrote. Raises UnusableState if it does not fit the rule."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleEntry:
    """A rule in the registry.

    `build` gets a value for every setting, from `spsa.algorithms.settings.values`.
    `iterations_per_one_in_flight` is how many planned iterations a run needs for each one in
    flight: in shorter runs results come too late for the rule's steps and gain less.
    """

    name: str
    summary: str
    settings: tuple[Setting, ...]
    build: Callable[[Problem, Mapping[str, Any]], Rule]
    iterations_per_one_in_flight: int = 100  # `benches.papers compare --depth 1,8`: docs/methods.md


def signs(rng: np.random.Generator, shape: tuple[int, ...]) -> Vector:
    """delta: independent fair +1 and -1."""
    return (2 * rng.integers(0, 2, size=shape) - 1).astype(np.float64)


def unit(i: int, shape: tuple[int, ...]) -> Vector:
    """e_j, j = i mod n: one parameter after the other, by 1."""
    direction = np.zeros(shape)
    direction[..., i % shape[-1]] = 1.0
    return direction
