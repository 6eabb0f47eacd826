"""The filters of `mixture`: what each assumes, and the probability that this is right.

`spsa.algorithms.mixture` has the formulas. The symbols here are those of its docstring: chi, e, phi
and p; J is the number of filters, Q that of hypotheses about a parameter, n that of parameters.
"""

from dataclasses import dataclass
from functools import cached_property
from math import log
from typing import Self

import numpy as np

from spsa.algorithms.rule import Outcome, Vector, along, tau2, total
from spsa.algorithms.state import Carry
from spsa.core.scoring import ELO_PER_SCORE

OUTLIER = 3.0  # deviations from the prediction, beyond which a result does not count

_GRID = 10.0 ** np.arange(-0.5, 2.75, 0.5)  # H: Elo lost one step away in every parameter
_MEDIAN_ELO, _SPREAD = 7.0, 1.5  # log-normal prior of H
_FORGETTING = (0.0, 0.4, 0.9)  # lambda
_NEAR, _FAR = 1.0, 3.0  # s_1 of the paper, in steps; 0 where the start is the best
_NEAR_SHARE, _FAR_SHARE, _SETTLED_SHARE = 0.68, 0.17, 0.15  # prior probabilities

_HYPOTHESES = (
    *((elo, lam, _NEAR, _NEAR_SHARE / len(_FORGETTING)) for elo in _GRID for lam in _FORGETTING),
    *((elo, 0.0, _FAR, _FAR_SHARE) for elo in _GRID),
    *((elo, 0.0, 0.0, _SETTLED_SHARE) for elo in _GRID),
)
ELO, FORGETTING, DEVIATION, _SHARE = np.array(_HYPOTHESES).T[..., None]
"""H_j, lambda_j and s_j of the filters, shape (J, 1) each."""
_LOG_PRIOR = np.log(_SHARE) - 0.5 * (np.log(ELO / _MEDIAN_ELO) / _SPREAD) ** 2
_TINY = np.finfo(np.float64).tiny
_NEAR_ONES = len(_GRID) * len(_FORGETTING)
_SETTLED_ONES = len(ELO) - len(_GRID)
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
    own: "OwnCurvatures"

    @classmethod
    def untold(cls, start: Vector, theta: Vector) -> Self:
        """The bank before any game."""
        mean = np.repeat(start[..., None, :], len(ELO), axis=-2)
        none = np.zeros((*start.shape[:-1], 1))
        return cls(
            mean=mean,
            variance=np.broadcast_to(DEVIATION**2, mean.shape),
            surprise=np.zeros((*mean.shape[:-1], 1)),
            evidence=np.zeros((*mean.shape[:-1], 1)),
            theta=theta,
            squares=none,
            pairs=none,
            results=none,
            last=none,
            own=OwnCurvatures.untold(start),
        )

    @property
    def trust(self) -> Vector:
        """beta, shape (1,)."""
        trust: Vector = _MOST * self.pairs / (self.pairs + _TRUSTED * self.theta.shape[-1])
        return trust

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

    @property
    def missed(self) -> Vector:
        """M, shape (1,); not by what chance explains, twice over."""
        more = np.maximum(self.misfit[..., 0] - 2.0, 0.0) * self.results
        missed: Vector = ELO_PER_SCORE * np.sqrt(
            more * self.tau2 / (4.0 * np.maximum(self.pairs, 1.0))
        )
        return missed

    def weight(self) -> Vector:
        """The probabilities of the hypotheses, p_j; shape (J, 1)."""
        phi = self.misfit
        fit: Vector = _LOG_PRIOR / np.sqrt(phi) - 0.25 / phi * self.surprise
        weight = np.empty_like(fit)
        between = self._between()
        for i, kind in enumerate(_KINDS):
            weight[..., kind, :] = between[..., i, None, :] * _softmax(fit[..., kind, :])
        return weight

    @property
    def likely(self) -> Vector:
        """The probabilities of the hypotheses by the evidence alone, shape (J, 1)."""
        return _softmax(_LOG_PRIOR + self.evidence)

    @property
    def steepness(self) -> Vector:
        """H_i, what the games say that a step of each parameter costs, times n; shape (n,)."""
        common = (self.likely * np.log(ELO)).sum(axis=-2)
        steepness: Vector = np.exp(common + self.trust * (self.own.log_elo - common))
        return steepness

    @property
    def too_large(self) -> Vector:
        """f_i, shape (n,); 1 if it is less than `_SHOWN`, or pairs are few for each parameter."""
        known = self.own.log_elo
        apart = (known - np.median(known, axis=-1, keepdims=True)) / 2
        shown = (np.abs(apart) >= log(_SHOWN)) & (self.trust >= _MOST / 2)
        factor: Vector = np.exp(np.where(shown, apart, 0.0))
        return factor

    def _between(self) -> Vector:
        """p(s), shape (3, 1)."""
        log = _LOG_PRIOR + self.evidence
        likely = np.exp(log - log.max(axis=-2, keepdims=True))
        sums = [likely[..., kind, :].sum(axis=-2, keepdims=True) for kind in _KINDS]
        return _normalised(np.concatenate(sums, axis=-2))

    @property
    def best(self) -> Vector:
        """The point of most expected Elo, shape (n,); exact where all filters agree."""
        steep = self.weight() * ELO
        elo = steep.sum(axis=-2)
        common = _weighted_mean(steep / elo[..., None, :], self.mean)
        settled, at_start = self.mean[..., -1, :], self._between()[..., -1, :]
        values, own_elo = self.own.best
        own = settled + (1.0 - at_start) * (values - settled)
        share = self.trust * own_elo / (self.trust * own_elo + (1.0 - self.trust) * elo)
        best: Vector = common + share * (own - common)
        return best

    def gained(self, path: Vector) -> Vector:
        """Elo of each point of a path over its first; shape (points,) for a path (points, n)."""
        away = path - path[..., :1, :]
        apart = self.mean - path[..., :1, :]
        nearer = 2.0 * apart @ np.swapaxes(away, -1, -2) - along(away, away)[..., None, :, 0]
        gained: Vector = (self.likely * ELO * nearer).sum(axis=-2) / path.shape[-1]
        return gained


_TRUSTED, _MOST = 750.0, 0.85  # pairs a parameter, after which beta is half the most
_SHOWN = 2.5  # how many times a step looks too large or too small, before anybody is told
_HALF_DECADE = 0.5
_HALF_DECADES = 10.0 ** np.arange(-1.0, 3.75, _HALF_DECADE)  # H_q
_COMMON_ELO = 10.0 ** np.arange(-1.0, 3.25, _HALF_DECADE)  # H_c, about which those H_q lie
_TO_GAIN = (2.0, 14.4)  # G, Elo
_OWN_SPREAD, _OWN_FORGETTING = 1.4, 0.6  # of ln(H_q / H_c); lambda


_ALIKE = len(_TO_GAIN)
_OWN_ELO = np.tile(_HALF_DECADES, _ALIKE)[:, None]
_OWN_VARIANCE = np.concatenate([gain / _HALF_DECADES for gain in _TO_GAIN])[:, None]
"""H_q and G / H_q of the hypotheses about a parameter, shape (Q, 1) each."""
_APART = np.log(_HALF_DECADES / _COMMON_ELO[:, None]) / _OWN_SPREAD
_LIKELY = np.exp(-(_APART**2) / 2)
_OWN_SHARE = np.kron(np.eye(_ALIKE), _LIKELY / _LIKELY.sum(axis=-1, keepdims=True))
"""r(q | c), shape (C, Q)."""
_COMMON_PRIOR = np.tile(-0.5 * (np.log(_COMMON_ELO / _MEDIAN_ELO) / _SPREAD) ** 2, _ALIKE)[:, None]
"""ln q_c, shape (C, 1)."""


@dataclass(frozen=True, eq=False)  # no slots: three formulas need the weight
class OwnCurvatures:
    """The second bank, with a curvature for every parameter; shape (Q, n) each."""

    mean: Vector
    variance: Vector
    evidence: Vector

    @classmethod
    def untold(cls, start: Vector) -> Self:
        """The bank before any game."""
        mean = np.repeat(start[..., None, :], len(_OWN_ELO), axis=-2)
        return cls(mean, np.broadcast_to(_OWN_VARIANCE, mean.shape), np.zeros(mean.shape))

    @cached_property
    def weight(self) -> Vector:
        """The probabilities of the hypotheses about each parameter, shape (Q, n)."""
        half = self.evidence / 2
        likely = np.exp(half - half.max(axis=-2, keepdims=True))
        shared = np.maximum(np.einsum("cq,...qi->...ci", _OWN_SHARE, likely), _TINY)
        common = _softmax(_COMMON_PRIOR + total(np.log(shared)))
        prior = np.einsum("...c,cq->...q", common[..., 0], _OWN_SHARE)
        return _normalised(prior[..., None] * likely)

    @property
    def best(self) -> tuple[Vector, Vector]:
        """The values of most expected Elo, and the mean of H_q; shape (n,) each."""
        steep = self.weight * _OWN_ELO
        elo = steep.sum(axis=-2)
        return _weighted_mean(steep / elo[..., None, :], self.mean), elo

    @property
    def log_elo(self) -> Vector:
        """The mean of ln H_q, shape (n,)."""
        mean: Vector = (self.weight * np.log(_OWN_ELO)).sum(axis=-2)
        return mean

    def after(self, outcome: Outcome, noise: Vector) -> "OwnCurvatures":
        """The bank after a result; `noise` is B tau^2, shape (1,)."""
        played = (outcome.pairs * outcome.difference)[..., None, :]
        steep = played * (_OWN_ELO * (log(10) / (200 * played.shape[-1])))
        part = steep * (self.mean - outcome.centre[..., None, :])
        reach = steep * self.variance
        spread = steep * reach
        weight = self.weight
        mean = (weight * part).sum(axis=-2)
        variance = np.maximum((weight * (spread + part**2)).sum(axis=-2) - mean**2, 0.0)
        certain = noise + total(variance)
        most = OUTLIER * np.sqrt(certain)
        surprise = np.clip(outcome.result - total(mean), -most, most)
        innovation = (surprise + mean)[..., None, :] - part
        of_one = (certain - variance)[..., None, :] + spread
        likelihood = -(innovation**2 / of_one + np.log(of_one / noise[..., None, :])) / 2
        return OwnCurvatures(
            self.mean + reach * innovation / of_one,
            self.variance - (1.0 - _OWN_FORGETTING) * reach**2 / of_one,
            self.evidence + likelihood,
        )

    def carried(self, carry: Carry) -> "OwnCurvatures":
        """The bank in another space; in other steps, a curvature has another number."""
        shift = np.rint(2.0 * np.log10(carry.scale) / _HALF_DECADE).astype(np.intp)
        some = len(_HALF_DECADES)
        rows = np.clip(np.arange(some)[:, None] + shift, 0, some - 1)
        rows = np.concatenate([rows + i * some for i in range(len(_TO_GAIN))])
        known = np.where(carry.source >= 0, self.evidence[..., carry.source], 0.0)
        arrays = (carry.positions(self.mean), carry.variances(self.variance, _OWN_VARIANCE), known)
        column = np.arange(rows.shape[-1])
        return OwnCurvatures(*(one[..., rows, column] for one in arrays))


def _softmax(log: Vector) -> Vector:
    return _normalised(np.exp(log - log.max(axis=-2, keepdims=True)))


def _normalised(likely: Vector) -> Vector:
    weight: Vector = likely / likely.sum(axis=-2, keepdims=True)
    return weight


def _weighted_mean(weight: Vector, of: Vector) -> Vector:
    """The mean over the hypotheses, shape (n,); exact where all are equal."""
    first = of[..., :1, :]
    mean: Vector = first[..., 0, :] + (weight * (of - first)).sum(axis=-2)
    return mean
