"""Gains that decay: (17) of Ivec & Vojnovic 2022, as Spall 1998 recommends them.

    a_k = a / (A + k)^alpha,   c_k = c / k^gamma

Spall, "Implementation of the Simultaneous Perturbation Algorithm for Stochastic Optimization",
III.B, recommends alpha = 0.602, gamma = 0.101, and for A a tenth of the planned iterations.
"""

from dataclasses import dataclass

from spsa.algorithms.settings import SMALL, Setting

A = Setting(
    name="A",
    meaning="iterations by which the decay of a_k is delayed; a tenth of all unless given",
    default=None,
    most=1e12,
)
ALPHA = Setting(name="alpha", meaning="exponent of the decay of a_k", default=0.602, most=1.0)
GAMMA = Setting(name="gamma", meaning="exponent of the decay of c_k", default=0.101, most=0.5)
C_END = Setting(
    name="c_end",
    meaning="perturbation of the last planned iteration, in steps",
    default=1.0,
    least=SMALL,
)

_DELAY = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Gains:
    """The two sequences of (17); k counts from 1, c_k is in steps."""

    a: float
    c: float
    A: float
    alpha: float
    gamma: float

    def a_k(self, k: float) -> float:
        return float(self.a / (self.A + k) ** self.alpha)

    def c_k(self, k: float) -> float:
        return float(self.c / k**self.gamma)


def delay(iterations: int) -> float:
    """The default of A."""
    return _DELAY * iterations


def decayed(end: float, gamma: float, iterations: int, k: int) -> float:
    """c_k of the sequence that ends with `end` at the last planned iteration."""
    return float(end * (iterations / k) ** gamma)
