"""Rules whose only state is theta: each result adds its step to the current theta.

An iteration may have been opened on an older theta; that does not change its step.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from spsa.algorithms.carrying import Carry
from spsa.algorithms.rule import Problem, State, Vector
from spsa.algorithms.state_json import restored, shapes


@dataclass(frozen=True, slots=True, eq=False)
class WalkState:
    """The state: theta inside the bounds, shape (n,)."""

    theta: Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """The common part of these rules: all of `Rule` except `name`, `ask` and `tell`."""

    problem: Problem
    name: str

    def start(self) -> WalkState:
        return self.at(self.problem.start)

    def at(self, theta: Vector) -> WalkState:
        """The state at the point nearest to theta within the bounds."""
        return WalkState(self.problem.inside(theta))

    def theta(self, state: State) -> Vector:
        return np.array(state.theta, dtype=np.float64)

    def carried(self, state: State, carry: Carry) -> WalkState:
        return self.at(carry.positions(state.theta))

    def belief(self, state: State) -> None:
        return None

    def dump(self, state: State) -> dict[str, Any]:
        return {"theta": state.theta.tolist()}

    def load(self, data: Mapping[str, Any]) -> WalkState:
        return WalkState(**restored(self.name, data, shapes(self.start())))
