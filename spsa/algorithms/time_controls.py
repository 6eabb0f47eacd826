"""Several time controls: the one result that a rule is told, and what each of them says alone.

The results w of pairs have another variance tau_t^2 under each time control t; the iterations
before say which. A rule knows one variance. It is told the pentanomial

    n = s sum u_t n_t,      s = sum u_t B_t tau_t^2 / sum u_t^2 B_t tau_t^2

of the n_t with B_t pairs each. s is such that W has the variance that the rule expects of so many
pairs, whatever the weights u_t are. By default u_t = 1 / tau_t^2, by which the sum has the least
error; then n has as many pairs as were played.

What t says about the parameter i is the sum of W_t (plus_i - minus_i) over the iterations. The
perturbations of the other parameters add noise to it that more games do not make less. So its
deviation is the root of the sum of squares: the ratio of both has the tails of a normal number, or
lighter ones (Efron 1969, "Student's t-test under symmetry conditions").
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from spsa.algorithms.rule import PAIR_RESULTS, Vector, tau2, total


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TimeControlSums:
    """Sums over the results of T time controls and n parameters.

    `pairs` and `squares`, of w^2, have shape (T, 1); `pull` and its `pull_squares` (T, n).
    """

    pairs: Vector
    squares: Vector
    pull: Vector
    pull_squares: Vector

    @classmethod
    def nothing(cls, time_controls: int, parameters: int) -> Self:
        """Before the first result."""
        numbers, vectors = np.zeros((time_controls, 1)), np.zeros((time_controls, parameters))
        return cls(pairs=numbers, squares=numbers, pull=vectors, pull_squares=vectors)

    def weights(self, given: Sequence[float | None]) -> Vector:
        """u_t, shape (T, 1), up to a common factor."""
        by_variance = 1.0 / tau2(self.squares, self.pairs)
        return by_variance if None in given else np.array(given, dtype=np.float64)[:, None]

    def weights_of_pairs(self, given: Sequence[float | None]) -> tuple[float, ...]:
        """What a pair of each time control counts; 1 in the mean over pairs."""
        weights = self.weights(given)
        mean = (weights * self.pairs).sum() / self.pairs.sum() if self.pairs.any() else 1.0
        return tuple((weights / mean)[:, 0].tolist())

    def weighed(self, counts: Vector, given: Sequence[float | None]) -> Vector:
        """n, shape (5,), of the pentanomials of all time controls, (T, 5)."""
        weights = self.weights(given)
        noise = weights * total(counts) * tau2(self.squares, self.pairs)
        scale = noise.sum() / (weights * noise).sum() if counts.any() else 1.0
        weighed: Vector = (scale * weights * counts).sum(axis=0)
        return weighed

    def after(self, counts: Vector, difference: Vector) -> Self:
        """With one more result, played with this `difference` of plus and minus, shape (n,)."""
        pull = total(counts * PAIR_RESULTS) * difference
        return type(self)(
            pairs=self.pairs + total(counts),
            squares=self.squares + total(counts * PAIR_RESULTS**2),
            pull=self.pull + pull,
            pull_squares=self.pull_squares + pull**2,
        )

    @property
    def deviations(self) -> Vector:
        """How many standard deviations each pull is from 0, shape (T, n)."""
        spread = np.sqrt(self.pull_squares)
        deviations: Vector = self.pull / np.where(spread > 0.0, spread, 1.0)
        return deviations
