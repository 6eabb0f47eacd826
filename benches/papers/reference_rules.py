"""Rules for comparison only: other optimisers, and an oracle.

None of them is in the registry. Their learning rates are the best of a small grid on the half
`choose` of the suite, the same for all problems.
"""

from dataclasses import dataclass

import numpy as np

from spsa.algorithms.bspsa import Bspsa
from spsa.algorithms.rule import Outcome, Perturbation, Problem, Rule, State, signs, total
from spsa.algorithms.settings import decayed
from spsa.core.params import Vector

_GAMMA = 0.101
_TINY = 1e-12  # instead of 0, below a root


@dataclass(frozen=True, slots=True, eq=False)
class Trail:
    """The state: theta of the next games, the estimate, two memories and a count.

    Vectors of shape (n,); each rule defines what `first` and `second` are.
    """

    theta: Vector
    estimate: Vector
    first: Vector
    second: Vector
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Descent:
    """A stochastic gradient method, without the step that a gradient causes.

    The gradient is W divided by the played difference: wins per step, not Elo.
    """

    problem: Problem
    rate: float
    c_end: float = 1.0

    def start(self) -> Trail:
        start, nothing = self.problem.start, np.zeros_like(self.problem.start)
        return Trail(start, start, nothing, nothing, 0)

    def theta(self, state: Trail) -> Vector:
        return self.problem.inside(state.estimate)

    def ask(self, state: Trail, k: int, rng: np.random.Generator) -> Perturbation:
        c_k = decayed(self.c_end, _GAMMA, self.problem.iterations, k)
        centre = self.problem.inside(state.theta)
        return Perturbation(centre=centre, offset=c_k * signs(rng, centre.shape), a_k=1.0, c_k=c_k)

    def tell(self, state: Trail, outcome: Outcome) -> Trail:
        return self.moved(state, gradient(outcome))

    def moved(self, state: Trail, ascent: Vector) -> Trail:
        raise NotImplementedError

    def cooled(self, state: Trail) -> float:
        """The rate, which falls linearly to 0 at the end of the plan."""
        return self.rate * max(0.0, 1 - state.count / self.problem.iterations)


@dataclass(frozen=True, slots=True, kw_only=True)
class Adam(Descent):
    """Kingma & Ba 2015, and the average over the second half of the run."""

    rate: float = 0.05
    first_decay: float = 0.9
    second_decay: float = 0.999

    def moved(self, state: Trail, ascent: Vector) -> Trail:
        t = state.count + 1
        first = self.first_decay * state.first + (1 - self.first_decay) * ascent
        second = self.second_decay * state.second + (1 - self.second_decay) * ascent**2
        size = np.sqrt(np.maximum(second / (1 - self.second_decay**t), _TINY))
        step = self.cooled(state) * (first / (1 - self.first_decay**t)) / size
        theta = self.problem.inside(state.theta + step)
        return Trail(theta, late_average(state, theta, self.problem), first, second, t)


@dataclass(frozen=True, slots=True, kw_only=True)
class DoG(Descent):
    """Ivgi, Hinder & Carmon 2023: the largest distance over the root of all squared gradients.

    The estimate is the average over the second half of the run.
    """

    rate: float = 1.0
    first_reach: float = 0.1

    def moved(self, state: Trail, ascent: Vector) -> Trail:
        """`first` is the largest distance from the start so far, `second` the sum of squares."""
        far = np.sqrt(total((state.theta - self.problem.start) ** 2))
        reach = np.maximum(np.maximum(state.first, far), self.first_reach)
        squares = state.second + total(ascent**2)
        step = self.rate * reach / np.sqrt(np.maximum(squares, _TINY))
        theta = self.problem.inside(state.theta + step * ascent)
        estimate = late_average(state, theta, self.problem)
        return Trail(theta, estimate, reach, squares, state.count + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleFree(Descent):
    """Defazio and others 2024: steps on z, games at a blend of z and its average, the estimate."""

    rate: float = 0.03
    blend: float = 0.9

    def moved(self, state: Trail, ascent: Vector) -> Trail:
        """`first` is z minus the start."""
        t = state.count + 1
        z = self.problem.inside(self.problem.start + state.first + self.rate * ascent)
        estimate = state.estimate + (z - state.estimate) / t
        theta = (1 - self.blend) * z + self.blend * estimate
        return Trail(theta, estimate, z - self.problem.start, state.second, t)


@dataclass(frozen=True, slots=True, eq=False)
class Averaged:
    """Another rule; the estimate is the average of its theta over the second half."""

    rule: Rule
    problem: Problem

    def start(self) -> tuple[State, Trail]:
        start, nothing = self.problem.start, np.zeros_like(self.problem.start)
        return self.rule.start(), Trail(start, start, nothing, nothing, 0)

    def theta(self, state: tuple[State, Trail]) -> Vector:
        return state[1].estimate

    def ask(self, state: tuple[State, Trail], k: int, rng: np.random.Generator) -> Perturbation:
        return self.rule.ask(state[0], k, rng)

    def tell(self, state: tuple[State, Trail], outcome: Outcome) -> tuple[State, Trail]:
        own, trail = state
        after = self.rule.tell(own, outcome)
        theta = self.rule.theta(after)
        estimate = late_average(trail, theta, self.problem)
        moved = Trail(theta, estimate, trail.first, trail.second, trail.count + 1)
        return after, moved


@dataclass(frozen=True, slots=True, kw_only=True)
class Kalman(Bspsa):
    """BSPSA with the true Hessian, in Elo per squared step: an upper limit.

    On quadratic losses with normal distances no rule can be better on average.
    """

    hessian: Vector
    name = "kalman"

    def seen(self, state: State, outcome: Outcome) -> tuple[Vector, Vector, Vector]:
        """(6) with x' H x in place of sum x_i^2 / sigma_i^2."""
        # sigma is that of 1 Elo at one step
        plain, noise, _ = Bspsa.seen(self, state, outcome)
        slope: Vector = np.matmul(self.hessian, plain[..., None])[..., 0]
        innovation = outcome.result - total(slope * (state.mean - outcome.centre))
        return slope, noise, innovation


def gradient(outcome: Outcome) -> Vector:
    """W per step; 0 where there was no difference."""
    slope: Vector = outcome.result / np.where(outcome.difference == 0.0, np.inf, outcome.difference)
    return slope


def late_average(state: Trail, theta: Vector, problem: Problem) -> Vector:
    """The average of theta since half the plan; theta itself before that."""
    late = state.count + 1 - problem.iterations // 2
    return theta if late <= 1 else state.estimate + (theta - state.estimate) / late
