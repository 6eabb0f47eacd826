"""The filters of `mixture`: what each assumes, and the probability that this is right.

`spsa.algorithms.mixture` has the formulas. The symbols here are those of its docstring: chi, e, phi
and p; J is the number of filters and n that of parameters.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from spsa.algorithms.rule import Vector, along, tau2

_ELO = 10.0 ** np.arange(-0.5, 2.75, 0.5)  # H: Elo lost one step away in every parameter
_FAR_ELO = _ELO[_ELO > 9.0]  # of a start that is far away
_MEDIAN_ELO, _SPREAD = 7.0, 1.5  # log-normal prior of H
_FORGETTING = (0.0, 0.4, 0.9)  # lambda
_NEAR, _FAR = 1.0, 3.0  # s_1 of the paper, in steps; 0 where the start is the best
_NEAR_SHARE, _FAR_SHARE, _SETTLED_SHARE = 0.68, 0.17, 0.15  # prior probabilities


class Hypotheses(NamedTuple):
    """Shape (J, 1) each."""

    elo: Vector
    forgetting: Vector
    deviation: Vector
    log_prior: Vector


def _hypotheses() -> Hypotheses:
    rows = [
        *((elo, lam, _NEAR, _NEAR_SHARE / len(_FORGETTING)) for elo in _ELO for lam in _FORGETTING),
        *((elo, 0.0, _FAR, _FAR_SHARE) for elo in _FAR_ELO),
        *((elo, 0.0, 0.0, _SETTLED_SHARE) for elo in _ELO),
    ]
    elo, forgetting, deviation, share = np.array(rows).T[..., None]
    log_prior = np.log(share) - 0.5 * (np.log(elo / _MEDIAN_ELO) / _SPREAD) ** 2
    return Hypotheses(elo, forgetting, deviation, log_prior)


HYPOTHESES = _hypotheses()
_NEAR_ONES = len(_ELO) * len(_FORGETTING)
_SETTLED_ONES = len(HYPOTHESES.elo) - len(_ELO)
_KINDS = (slice(_NEAR_ONES), slice(_NEAR_ONES, _SETTLED_ONES), slice(_SETTLED_ONES, None))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Bank:
    """The state: J filters over n parameters, theta, and the moments of w.

    `mean` and `variance` have shape (J, n); `surprise`, chi, and `evidence`, e, (J, 1); `theta`
    (n,); `squares`, `pairs`, `results` and `last`, the k of the last result, (1,).
    """

    mean: Vector
    variance: Vector
    surprise: Vector
    evidence: Vector
    theta: Vector
    squares: Vector
    pairs: Vector
    results: Vector
    last: Vector

    @property
    def tau2(self) -> Vector:
        """The variance of w of a pair, shape (1,)."""
        return tau2(self.squares, self.pairs)

    @property
    def misfit(self) -> Vector:
        """phi, shape (1, 1)."""
        least = self.surprise.min(axis=-2, keepdims=True)
        excess: Vector = np.maximum(least / (self.results[..., None] + 2.0), 1.0)
        return excess

    def weight(self, of: Vector | float = 1.0) -> Vector:
        """The probabilities of the hypotheses times `of`, normalised; shape (J, 1)."""
        phi = self.misfit
        fit = HYPOTHESES.log_prior / np.sqrt(phi) - 0.25 / phi * self.surprise
        weight = np.empty_like(fit)
        between = self._between()
        for i, kind in enumerate(_KINDS):
            weight[..., kind, :] = between[..., i, None, :] * _softmax(fit[..., kind, :])
        return _normalised(of * weight)

    @property
    def likely(self) -> Vector:
        """The probabilities of the hypotheses by the evidence alone, shape (J, 1)."""
        return _softmax(HYPOTHESES.log_prior + self.evidence)

    @property
    def steepness(self) -> Vector:
        """H, the geometric mean of H_j by the evidence, shape (1,)."""
        steepness: Vector = np.exp((self.likely * np.log(HYPOTHESES.elo)).sum(axis=-2))
        return steepness

    def _between(self) -> Vector:
        """p(s), shape (3, 1)."""
        log = HYPOTHESES.log_prior + self.evidence
        likely = np.exp(log - log.max(axis=-2, keepdims=True))
        sums = [likely[..., kind, :].sum(axis=-2, keepdims=True) for kind in _KINDS]
        return _normalised(np.concatenate(sums, axis=-2))

    @property
    def best(self) -> Vector:
        """The point of most expected Elo, shape (n,); exact where all filters agree."""
        first = self.mean[..., 0, :]
        apart = self.mean - first[..., None, :]
        best: Vector = first + weighted_mean(self.weight(of=HYPOTHESES.elo), apart)
        return best

    def gained(self, path: Vector) -> Vector:
        """Elo of each point of a path over its first; shape (points,) for a path (points, n)."""
        away = path - path[..., :1, :]
        apart = self.mean - path[..., :1, :]
        nearer = 2.0 * apart @ np.swapaxes(away, -1, -2) - along(away, away)[..., None, :, 0]
        gained: Vector = (self.likely * HYPOTHESES.elo * nearer).sum(axis=-2) / path.shape[-1]
        return gained


def _softmax(log: Vector) -> Vector:
    return _normalised(np.exp(log - log.max(axis=-2, keepdims=True)))


def _normalised(likely: Vector) -> Vector:
    weight: Vector = likely / likely.sum(axis=-2, keepdims=True)
    return weight


def weighted_mean(weight: Vector, of: Vector) -> Vector:
    mean: Vector = np.einsum("...j,...ji->...i", weight[..., 0], of)
    return mean
