"""One curve through the validations of a run: the Elo of theta over the start or another engine.

Elo is a random walk of the results that theta holds, from 0 at the start:

    x(0) = 0,   x(k') = x(k) + N(0, q (k' - k)),   measured x(k_i) + N(0, s_i^2)

which is the local level model of Durbin & Koopman 2012, "Time Series Analysis by State Space
Methods", chapter 2, with the filter of (2.15) and the smoother of (2.37) and (2.43). So each point
of the curve is an estimate from all matches, and near ones count most. How fast Elo changes, q, is
not known; the curve is the mean over values of q, weighted by how well each predicted the matches.
Against another engine than the start nothing is known before the first match.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spsa.core.params import Vector

_UNKNOWN = 1000.0**2  # Elo squared, where nothing is known before
_CHANGES = 2.0 ** np.arange(0.0, 10.0)
"""How many Elo the walk changes by over the whole run, one standard deviation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrengthCurve:
    """Elo after each `k`, with one deviation; over the start, the first is the start itself."""

    ks: tuple[int, ...]
    elo: tuple[float, ...]
    deviation: tuple[float, ...]

    @property
    def errors(self) -> tuple[float, ...]:
        """Half of each 95% interval."""
        return tuple(1.96 * deviation for deviation in self.deviation)


def strength_curve(
    ks: Sequence[int], elo: Sequence[float], deviation: Sequence[float], *, over_start: bool = True
) -> StrengthCurve | None:
    """The curve through matches of theta after results `ks`, in any order; None without any.

    `deviation` is one standard deviation of each match's Elo. A match at k = 0 says nothing of
    Elo `over_start`.
    """
    order = [i for i in sorted(range(len(ks)), key=ks.__getitem__) if ks[i] or not over_start]
    if not order:
        return None
    start = [0] if over_start else []
    at = np.array([*(start or [ks[order[0]]]), *(ks[i] for i in order)], dtype=np.float64)
    measured = np.array([elo[i] for i in order])
    noise = np.array([deviation[i] for i in order]) ** 2
    known = 0.0 if over_start else _UNKNOWN
    mean, variance = _smoothed(at, measured, noise, _CHANGES**2 / max(1.0, at[-1]), known)
    return StrengthCurve(
        ks=(*start, *(ks[i] for i in order)),
        elo=(*map(float, start), *mean.tolist()),
        deviation=(*map(float, start), *np.sqrt(variance).tolist()),
    )


def _smoothed(
    at: Vector, measured: Vector, noise: Vector, q: Vector, spread_before: float
) -> tuple[Vector, Vector]:
    """Mean and variance at each match, shape (n,); `q` has shape (values,)."""
    n = len(measured)
    before, mean, variance = (np.zeros((n, len(q))) for _ in range(3))
    fit = level = np.zeros_like(q)
    spread = np.full_like(q, spread_before)
    for i in range(n):
        before[i] = spread + q * (at[i + 1] - at[i])
        surprise, expected = measured[i] - level, before[i] + noise[i]
        fit = fit - 0.5 * (np.log(expected) + surprise**2 / expected)
        level = mean[i] = level + before[i] / expected * surprise
        spread = variance[i] = before[i] * noise[i] / expected
    for i in range(n - 2, -1, -1):
        pull = variance[i] / before[i + 1]
        mean[i] += pull * (mean[i + 1] - mean[i])
        variance[i] += pull**2 * (variance[i + 1] - before[i + 1])
    weight = np.exp(fit - fit.max())
    weight /= weight.sum()
    centre = mean @ weight
    return centre, (variance + (mean - centre[:, None]) ** 2) @ weight
