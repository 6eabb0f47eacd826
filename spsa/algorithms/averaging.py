"""An average of theta over the iterations, with more weight on late ones, without their history.

Polynomial-decay averaging: Shamir & Zhang 2013, "Stochastic Gradient Descent for Non-smooth
Optimization". After t results, with eta = 3,

    w        = (eta + 1) / (t + eta)
    mean    += w (theta - mean)
    variance = (1 - w) (variance + w (theta - mean before)^2)

so that the result s of t weighs about s^3: the last half of a run has 94% of the weight, the last
tenth 34%, and the influence of the start falls as 1 / t^4. The variance is that of theta under the
same weights (West 1979); it is not the error of the average.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from spsa.algorithms.memory import packed, restored
from spsa.algorithms.rule import Belief, Vector

_ETA = 3


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
    def spread(self) -> Belief | None:
        """The average and the deviation of theta; None for fewer than two thetas."""
        return Belief(self.mean, np.sqrt(self.variance)) if self.count > 1 else None

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
