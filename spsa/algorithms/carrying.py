"""Carries what a rule knows to another space: other bounds, steps and active parameters.

A doubt D of at least 1 widens it: the games behind it count as a power prior (Ibrahim & Chen 2000,
"Power prior distributions for regression models") with the exponent 1 / D^2, so that

    1 / v' = 1 / v0 + (1 / v - 1 / v0) / D^2

where v0 is the variance before any game. D = 1 keeps v, and a large D leaves v0. A parameter that
the old space did not tune has v0.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]

MAX_DOUBT = 1000.0
DEFAULT_DOUBT = 20.0
"""The doubt of a prior: `retune` in benches/papers/RESULTS.md."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Carry:
    """How the coordinates of a space follow from those of another one; shape (n,) each.

    `source` is the index in the old space, -1 for a coordinate that it did not have. `scale` is the
    old step over the new one. `value` is where a coordinate without a source starts, in new steps.
    """

    source: npt.NDArray[np.intp]
    scale: Vector
    value: Vector
    doubt: float = 1.0

    def positions(self, old: Vector) -> Vector:
        """Points of the old space, shape (..., m), in the new one, shape (..., n)."""
        found: Vector = np.where(self._is_known, old[..., self.source] * self.scale, self.value)
        return found

    def variances(self, old: Vector, prior: Vector) -> Vector:
        """Variances, widened; `prior`, shape (..., n), is v0."""
        kept = old[..., self.source] * self.scale**2
        if self.doubt != 1.0:
            kept = _doubted(kept, prior, self.doubt**2)
        found: Vector = np.where(self._is_known, kept, prior)
        return found

    def covariance(self, old: Vector, prior: Vector) -> Vector:
        """A covariance matrix, widened, its correlations kept; `prior` is the diagonal of v0."""
        scaled = old[np.ix_(self.source, self.source)] * np.outer(self.scale, self.scale)
        variance = np.diagonal(old)
        widened = np.sqrt(self.variances(variance, prior) / (variance[self.source] * self.scale**2))
        known = np.outer(self._is_known, self._is_known)
        found: Vector = np.where(known, scaled * np.outer(widened, widened), np.diag(prior))
        return found

    def evidence(self, old: Vector) -> Vector:
        """Sums of what each result said, such as log likelihoods, under the same power prior."""
        return old / self.doubt**2

    @property
    def _is_known(self) -> npt.NDArray[np.bool_]:
        return self.source >= 0


def _doubted(known: Vector, prior: Vector, square: float) -> Vector:
    """v' of the power prior, also where v = v0 = 0; `square` is D^2."""
    below = known * (square - 1.0) + prior
    found: Vector = known * prior * square / np.where(below > 0.0, below, 1.0)
    return found
