"""Rules that remember theta alone: each result adds its step to the theta of now.

What a result was played with may have been asked for on an older theta; it makes no difference to
the step.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from spsa.algorithms.memory import restored, shapes
from spsa.algorithms.rule import Problem, State, Vector


@dataclass(frozen=True, slots=True, eq=False)
class WalkState:
    """The state: theta inside the bounds, shape (n,)."""

    theta: Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """What such rules have in common: all of `Rule` but `name`, `ask` and `tell`."""

    problem: Problem
    name: str

    def start(self) -> WalkState:
        return self.at(self.problem.start)

    def at(self, theta: Vector) -> WalkState:
        """The state at theta, or at the nearest point within the bounds."""
        return WalkState(self.problem.inside(theta))

    def theta(self, state: State) -> Vector:
        return np.array(state.theta, dtype=np.float64)

    def belief(self, state: State) -> None:
        return None

    def dump(self, state: State) -> dict[str, Any]:
        return {"theta": state.theta.tolist()}

    def load(self, data: Mapping[str, Any]) -> WalkState:
        return WalkState(**restored(self.name, data, shapes(self.start())))
