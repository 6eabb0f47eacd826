"""The distribution of a weighted sum of squares of normals: the generalised chi-square.

    X = sum_j w_j z_j^2,   z_j ~ N(m_j, 1) independent,   b_j = w_j m_j^2

The distribution function follows from the Laplace transform,

    P(X <= x) = 1/(2 pi i) int e^(s x) M(s) / s ds
    M(s)      = E e^(-s X) = prod (1 + 2 w_j s)^(-1/2) exp(-b_j s / (1 + 2 w_j s))

along a parabola through the saddle point s_0 > 0 of the integrand, which opens to the left:

    s(y) = s_0 + i y - y^2 / (4 f)

There the integrand decays like a normal density or faster, and the trapezoidal rule converges
geometrically (Trefethen & Weideman 2014, "The exponentially convergent trapezoidal rule"). Imhof
integrates along the imaginary axis, where a single square decays only as y^(-3/2), and Ruben's
series needs many terms for very different weights. Compared with closed forms, the error is below
1e-12.
"""

from dataclasses import dataclass
from functools import cached_property
from math import exp, log, pi, sqrt

import numpy as np
import numpy.typing as npt

from benches.papers.constant_gains import root
from spsa.core.params import Vector

Complex = npt.NDArray[np.complex128]

# Steps of the trapezoidal rule for an error of e^-40: relative to the distance of the nearest
# singularity, the pole at 0, and to the deviation of the integrand around the vertex.
_FINE = 0.15
_FINE_NORMAL = 0.7
_FOLDS = 40.0  # values below e^-40 of the largest are ignored
_MAX_NODES = 20_000
_SAMPLES = 200


@dataclass(frozen=True, slots=True, eq=False)
class SumOfSquares:
    """X by its weights w_j >= 0 and its shifts b_j = w_j m_j^2 >= 0, shape (n,) each.

    A weight of 0 with a shift is a constant. The unit of X is that of both.
    """

    weight: Vector
    shift: Vector

    @classmethod
    def chi_square(cls, degrees: int) -> "SumOfSquares":
        """chi^2 with this number of degrees of freedom."""
        return cls(np.ones(degrees), np.zeros(degrees))

    @property
    def mean(self) -> float:
        return float(np.sum(self.weight + self.shift))

    @property
    def deviation(self) -> float:
        return sqrt(float(np.sum(2 * self.weight**2 + 4 * self.weight * self.shift)))

    def cdf(self, x: float) -> float:
        """P(X <= x)."""
        if self.deviation == 0.0:
            return float(x >= self.mean)
        varying, beyond = self.weight > 0.0, x - float(self.shift[self.weight == 0.0].sum())
        if beyond <= 0.0:
            return 0.0
        rest = SumOfSquares(self.weight[varying], self.shift[varying])
        return min(max(_Contour.through(rest, beyond).integral(), 0.0), 1.0)

    def quantile(self, probability: float) -> float:
        """The x that X does not exceed with this probability, 0 < probability < 1."""
        if not 0.0 < probability < 1.0:
            raise ValueError(f"the probability has to be between 0 and 1, not {probability!r}")
        if self.deviation == 0.0:
            return self.mean
        high = self.mean
        while self.cdf(high) < probability:
            high += self.deviation
        return root(lambda x: self.cdf(x) - probability, 0.0, high)

    def slope(self, s: float) -> float:
        """-d/ds log M, the mean of X under the density e^(-s x), for s >= 0."""
        damped = 1 + 2 * self.weight * s
        return float(np.sum(self.weight / damped + self.shift / damped**2))

    def bend(self, s: float) -> float:
        """d^2/ds^2 log M, the variance of X under the same density."""
        damped = 1 + 2 * self.weight * s
        return float(
            np.sum(2 * (self.weight / damped) ** 2 + 4 * self.weight * self.shift / damped**3)
        )

    def log_transform(self, s: Complex) -> Complex:
        """log M at each s, off the negative real axis."""
        damped = 1 + 2 * np.multiply.outer(s, self.weight)
        total: Complex = -(
            np.log(damped).sum(axis=-1) / 2
            + s * (self.shift / damped).sum(axis=-1)
        )  # fmt: skip
        return total


@dataclass(frozen=True, eq=False)  # no slots: the reach is computed once
class _Contour:
    """The parabola for one x: its vertex s_0 and its focal length f."""

    of: SumOfSquares
    x: float
    vertex: float
    focus: float

    @classmethod
    def through(cls, of: SumOfSquares, x: float) -> "_Contour":
        """The narrowest of several parabolas on which the integrand decreases everywhere.

        On the widest one, a straight line, every factor decreases.
        """
        vertex = exp(root(lambda t: x - of.slope(exp(t)) - exp(-t), log(1 / x), _above(of, x)))
        narrow = vertex + 1 / (4 * float(of.weight.max()))
        contour = cls(of, x, vertex, narrow)
        while not contour.falls and contour.nodes < _MAX_NODES:
            contour = cls(of, x, vertex, 2 * contour.focus)
        return contour

    @cached_property
    def reach(self) -> float:
        """The y beyond which the integrand is ignored."""
        y, top = sqrt(4 * self.focus * _FOLDS / self.x), self._size(0.0)
        while self._size(y) > top - _FOLDS and y < _MAX_NODES * self.step:
            y *= 1.25
        return y

    @property
    def step(self) -> float:
        bend = self.of.bend(self.vertex) + 1 / self.vertex**2
        return min(_FINE * self.vertex, _FINE_NORMAL / sqrt(bend))

    @property
    def nodes(self) -> int:
        return int(self.reach / self.step) + 1

    @property
    def falls(self) -> bool:
        y = np.geomspace(self.step, self.reach, _SAMPLES)
        return bool((np.diff(self.log_integrand(y).real) < 1e-9).all())

    def _size(self, y: float) -> float:
        return float(self.log_integrand(np.array([y])).real[0])

    def log_integrand(self, y: Vector) -> Complex:
        s = np.asarray(self.vertex + 1j * y - y**2 / (4 * self.focus), np.complex128)
        size: Complex = s * self.x + self.of.log_transform(s) - np.log(s)
        return size

    def integral(self) -> float:
        """P(X <= x). Both halves of the parabola are conjugates; ds = (1 + i y / (2 f)) i dy."""
        y = self.step * np.arange(self.nodes, dtype=np.float64)
        value = np.exp(self.log_integrand(y)) * (1 + 0.5j * y / self.focus)
        return self.step / pi * (float(value.real.sum()) - float(value[0].real) / 2)


def _above(of: SumOfSquares, x: float) -> float:
    """A t with exp(t) beyond the saddle point."""
    t = log(1 / x)
    while x - of.slope(exp(t)) - exp(-t) < 0.0:
        t += 1.0
    return t
