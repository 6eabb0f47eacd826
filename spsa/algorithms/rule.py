"""The interface of rules: `ask` gives a perturbation, `tell` takes its outcome.

All vectors are float64 arrays over the active parameters, in units of each one's step. Rules are
pure: they use no clock, no file, and only the random generator that they are given. All memory of a
rule is in its state.

Shapes are those of one run: (n,) for a vector, (1,) for a number. Rules work on the last axis only;
axes before it are independent runs of the same length. So simulations of thousands of runs use the
same rule as a real run.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from spsa.algorithms.state import Carry
from spsa.core.params import Vector as Vector
from spsa.core.scoring import ELO_PER_SCORE

PAIR_RESULTS = np.arange(-2.0, 3.0)
"""w of a pair, wins minus losses of plus, by its half points."""

State = Any
"""The state of a rule: arrays that only the rule reads; see `spsa.algorithms.state`."""


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
        return total(self.pentanomial * PAIR_RESULTS)

    @property
    def squares(self) -> Vector:
        """The sum of w^2 over the pairs, shape (1,)."""
        return total(self.pentanomial * PAIR_RESULTS**2)

    @property
    def elo(self) -> Vector:
        """Elo of plus over minus, shape (1,); 0 without games, and finite at a score of 0 or 1."""
        pairs = np.maximum(self.pairs, 1.0)
        most = 1 - 1 / (4 * pairs)
        inner = np.minimum(np.maximum(self.result / (2 * pairs), -most), most)
        found: Vector = np.arctanh(inner) * ELO_PER_SCORE
        return found

    @property
    def inverse(self) -> Vector:
        """1 / difference, but at most about 1 / (2 c_k), and 0 where there is no difference.

        Otherwise a difference that bounds or constraints have shortened would magnify the noise.
        """
        return self.difference / np.maximum(self.difference**2, (2 * self.c_k) ** 2)


def tau2(squares: Vector, pairs: Vector) -> Vector:
    """The variance of w, shape (1,), from the sum of w^2 over `pairs`, shape (1,) each."""
    return (40.0 + squares) / (50.0 + pairs)


@dataclass(frozen=True, slots=True)
class Belief:
    """A rule's estimate of the optimum: mean and standard deviation, shape (n,) each.

    `deviation` is None where the games do not say how wrong the mean may be. `gained` is the Elo of
    the rule's theta over the start, as it believes; shape (1,). Nothing says how wrong that may be.
    `too_large` is how many times each step looks too large beside the others: 1 where the games
    hardly say it, None if the rule has no curvature of each parameter; shape (n,).
    """

    mean: Vector
    deviation: Vector | None
    gained: Vector
    too_large: Vector | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(ABC):
    """How the results of iterations move theta. k counts from 1.

    A rule is a frozen dataclass: its problem, and a field for each setting.
    `tell` gets every result once, in the order of k. `ask` may be called on an older state:
    iteration k is opened while results before it are still missing.
    """

    name: ClassVar[str]
    problem: Problem

    @abstractmethod
    def start(self) -> State:
        """The state before any result."""

    @abstractmethod
    def theta(self, state: State) -> Vector:
        """The best theta known, inside the bounds."""

    @abstractmethod
    def ask(self, state: State, k: int, rng: np.random.Generator) -> Perturbation:
        """The perturbation of iteration k; the same for equal generators and problems."""

    @abstractmethod
    def tell(self, state: State, outcome: Outcome) -> State:
        """The state after one more result."""

    @abstractmethod
    def carried(self, state: State, carry: Carry) -> State:
        """A state that this rule had on another problem, in the coordinates of this problem."""

    def counted_elo(self, outcome: Outcome) -> Vector:
        """The measured Elo, shape (1,), as far as the rule lets it count."""
        return outcome.elo

    @property
    def believes(self) -> bool:
        """Whether the rule has a `belief`."""
        return type(self).belief is not Rule.belief

    def belief(self, state: State) -> Belief:
        """The rule's estimate of the optimum."""
        raise NotImplementedError


def perturbed(centre: Vector, rng: np.random.Generator, a_k: float, c_k: float) -> Perturbation:
    """All parameters perturbed by c_k, with independent signs."""
    return Perturbation(centre=centre, offset=c_k * signs(rng, centre.shape), a_k=a_k, c_k=c_k)


def signs(rng: np.random.Generator, shape: tuple[int, ...]) -> Vector:
    """delta: independent fair +1 and -1."""
    return (2 * rng.integers(0, 2, size=shape) - 1).astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class WalkState:
    """The state of a rule that knows no more than theta, inside the bounds, shape (n,)."""

    theta: Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk(Rule):
    """All of `Rule` except `ask`, for rules that move theta towards the winner:

        theta += r_k W x

    An iteration may have been opened on an older theta; that does not change its step. W is
    wins - losses of plus. x is half the played difference, which is what was asked for unless
    bounds or rounding changed it.
    """

    def start(self) -> WalkState:
        return self.at(self.problem.start)

    def at(self, theta: Vector) -> WalkState:
        """The state at the point nearest to theta within the bounds."""
        return WalkState(self.problem.inside(theta))

    def theta(self, state: State) -> Vector:
        theta: Vector = state.theta
        return theta

    def tell(self, state: State, outcome: Outcome) -> WalkState:
        return self.at(state.theta + self.rate(outcome) * outcome.result * (outcome.difference / 2))

    def rate(self, outcome: Outcome) -> float | Vector:
        """r_k: the part of the perturbation that one win moves theta by."""
        return outcome.a_k

    def carried(self, state: State, carry: Carry) -> WalkState:
        return self.at(carry.positions(state.theta))
