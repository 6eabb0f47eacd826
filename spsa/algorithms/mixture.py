"""The default: a bank of Bayesian filters that differ in what they assume, weighted by predictions.

`bspsas` (Ivec & Vojnovic 2022) has to be told sigma: how fast Elo is lost with distance. Here every
hypothesis about it has its own filter. All filters see all games; the weight of each depends on how
well it predicted them (multiple-model estimation: Magill 1965, "Optimal adaptive estimation of
sampled stochastic processes"). A hypothesis j is

- H_j: one step from the best values costs all n parameters together H_j Elo, each h_j = H_j / n;
- lambda_j: old games count less, because curvatures differ or the best values move;
- s_j, of the paper's prior: the best values are about one step from the start, or they are the
  start, so that an engine that is tuned already is left alone.

With everything in steps, W = wins - losses over B pairs played between y + x and y - x, and w of
one pair of variance tau^2:

    A_j   = 2 x h_j ln 10 / 200                    2 x / sigma_j^2 of the paper's (6)
    nu_j  = W - B sum A_j (mu_j - y)               what it did not predict
    S_j   = B tau^2 + B^2 sum A_j^2 v_j
    l_j  -= nu_j^2 / (2 B tau^2)
    mu_j += B A_j v_j nu_j / S_j
    v_j  -= (1 - lambda_j) (B A_j v_j)^2 / S_j
    best  = sum p_j h_j mu_j / sum p_j h_j,        p = softmax(l / 2)

`best` has the most Elo expected under p: a hypothesis by which a step costs much has more to say.
theta follows it, by at most one step a result and parameter. The root of the likelihood, l / 2,
keeps a bank of models that are all somewhat wrong from being too sure of one of them. A W more than
four deviations from the prediction of the bank counts as one of four.

The innovation uses the y that was played, so the update is right also for a result that comes late,
or was played with other values than `ask` gave.

The perturbation follows what is not known yet: x = c_k delta, delta_i = +-1, and c_k is two
deviations of the moving filters, at least 1 and at most _WIDEST steps. A wide one says more as
long as the loss is a parabola at that distance; near the optimum it is not needed, and beyond a
cliff it misleads.

The deviation of `belief` is that of the filters with s_j > 0 and softmax(l / 8) about theta: under
softmax(l / 2) the interval covers too little where the curvatures of the parameters differ. There
is none after theta has moved so far that the prior is refuted: then steps are too small for the
filters to judge.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import log
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spsa.algorithms.carrying import Carry
from spsa.algorithms.outcome_elo import reported, tau2
from spsa.algorithms.rule import (
    Belief,
    Method,
    Outcome,
    Perturbation,
    Problem,
    RuleUpdate,
    State,
    Vector,
    along,
    signs,
    total,
)
from spsa.algorithms.state_json import packed, restored, shapes
from spsa.errors import UnusableState

_ELO = 10.0 ** np.arange(-1.0, 2.75, 0.5)  # H: Elo lost one step away in every parameter
_MEDIAN_ELO, _SPREAD = 5.0, 1.5  # log-normal prior of H
_FORGETTING = (0.0, 0.4, 0.9)  # lambda
_DEVIATION = 1.0  # s_1 of the paper, in steps; 0 where the start is the best
_SETTLED = 1 / 3  # prior probability of that
_NARROWEST, _WIDEST = 1.0, 1.8  # c_k, in steps
_REACH = 2.0  # c_k in deviations of the moving filters
_LONGEST = 1.0  # steps by which one result moves a parameter
_OUTLIER = 4.0  # deviations
_THETA, _INTERVAL = 1 / 2, 1 / 8  # powers of the likelihood
_FAR = 2.5  # deviations of the prior by which theta may move before that is refuted

_VERSION = np.array([2.0])  # of the state
_OLDER = (
    "mixture cannot use the saved state: another version of this program wrote it, with other "
    "filters; finish the run with that version, or start a new one"
)


class Hypotheses(NamedTuple):
    """Shape (J, 1) each."""

    elo: Vector
    forgetting: Vector
    deviation: Vector
    log_prior: Vector


def _hypotheses() -> Hypotheses:
    kinds = [(lam, _DEVIATION, (1 - _SETTLED) / len(_FORGETTING)) for lam in _FORGETTING]
    kinds.append((0.0, 0.0, _SETTLED))
    rows = [(elo, *kind) for elo in _ELO for kind in kinds]
    elo, forgetting, deviation, share = np.array(rows).T[..., None]
    log_prior = np.log(share) - 0.5 * (np.log(elo / _MEDIAN_ELO) / _SPREAD) ** 2
    return Hypotheses(elo, forgetting, deviation, log_prior / _THETA)


HYPOTHESES = _hypotheses()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Bank:
    """The state: J filters over n parameters, theta, and the moments of w.

    `mean` and `variance` have shape (J, n), `log_weight` (J, 1), `theta` (n,), `squares` and
    `pairs` (1,).
    """

    mean: Vector
    variance: Vector
    log_weight: Vector
    theta: Vector
    squares: Vector
    pairs: Vector

    @property
    def tau2(self) -> Vector:
        """The variance of w of a pair, shape (1,)."""
        return tau2(self.squares, self.pairs)

    def weight(self, power: float = _THETA, of: Vector | float = 1.0) -> Vector:
        """The probabilities of the hypotheses times `of`, normalised; shape (J, 1)."""
        apart = self.log_weight - self.log_weight.max(axis=-2, keepdims=True)
        likelihood = of * np.exp(power * apart)
        weight: Vector = likelihood / likelihood.sum(axis=-2, keepdims=True)
        return weight

    @property
    def best(self) -> Vector:
        """The point of most expected Elo, shape (n,); exact where all filters agree."""
        first = self.mean[..., 0, :]
        apart = self.mean - first[..., None, :]
        best: Vector = first + _mean(self.weight(of=HYPOTHESES.elo), apart)
        return best

    def deviation(self, weight: Vector, about: Vector) -> Vector:
        """The root mean square distance of the best values from `about`, shape (n,)."""
        square = self.variance + (self.mean - about[..., None, :]) ** 2
        return np.sqrt(_mean(weight, square))


def _mean(weight: Vector, of: Vector) -> Vector:
    mean: Vector = np.einsum("...j,...ji->...i", weight[..., 0], of)
    return mean


@dataclass(frozen=True, kw_only=True)  # no slots: the hypotheses are computed once
class Mixture:
    problem: Problem
    name: str = "mixture"

    @cached_property
    def per_step(self) -> Vector:
        """A_j / (2 x), which is 1 / sigma_j^2: h_j ln 10 / 200; shape (J, 1)."""
        curvature: Vector = HYPOTHESES.elo / self.problem.start.shape[-1]
        return curvature * (log(10) / 200)

    def start(self) -> Bank:
        start = self.problem.start[..., None, :]
        shape = (*start.shape[:-2], len(HYPOTHESES.elo), start.shape[-1])
        none = np.zeros((*shape[:-2], 1))
        return Bank(
            mean=np.broadcast_to(start, shape),
            variance=np.broadcast_to(HYPOTHESES.deviation**2, shape),
            log_weight=np.broadcast_to(HYPOTHESES.log_prior, (*shape[:-1], 1)),
            theta=self.problem.inside(self.problem.start),
            squares=none,
            pairs=none,
        )

    def theta(self, state: State) -> Vector:
        return self.problem.inside(state.theta)

    def belief(self, state: State) -> Belief:
        theta = state.theta
        deviation = state.deviation(state.weight(_INTERVAL, of=HYPOTHESES.deviation), theta)
        moved = np.abs(theta - self.problem.start).max(axis=-1, keepdims=True)
        return Belief(theta, np.where(moved > _FAR * _DEVIATION, np.inf, deviation))

    def ask(self, state: State, k: int, rng: np.random.Generator) -> Perturbation:
        centre = self.theta(state)
        c_k = self.width(state)
        return Perturbation(centre=centre, offset=c_k * signs(rng, centre.shape), a_k=1.0, c_k=c_k)

    def width(self, bank: Bank) -> Vector:
        """c_k of the next perturbation, shape (1,)."""
        moving = bank.weight(of=HYPOTHESES.deviation)
        apart = bank.mean - bank.theta[..., None, :]
        squares = total(bank.variance) + along(apart, apart)
        square = (moving * squares).sum(axis=-2) - total(_mean(moving, apart) ** 2)
        mean_square = np.maximum(square, 0.0) / apart.shape[-1]
        width: Vector = np.clip(_REACH * np.sqrt(mean_square), _NARROWEST, _WIDEST)
        return width

    def tell(self, state: State, outcome: Outcome) -> tuple[Bank, RuleUpdate]:
        after = self._learned(state, outcome)
        return after, reported(self.theta(after), outcome)

    def _learned(self, bank: Bank, outcome: Outcome) -> Bank:
        centre, pairs = outcome.centre[..., None, :], outcome.pairs[..., None, :]
        noise = np.maximum(pairs, 1.0) * bank.tau2[..., None, :]  # avoids 0/0 without games
        played, steep = outcome.difference[..., None, :], pairs * self.per_step  # product: B A_j
        predicted = steep * along(played, bank.mean - centre)
        reach = played * bank.variance
        certain = noise + steep**2 * along(played, reach)
        result = _bounded(outcome.result[..., None, :], bank.weight(), predicted, certain)
        innovation = result - predicted
        learned = Bank(
            mean=bank.mean + reach * (steep * innovation / certain),
            variance=bank.variance - reach**2 * (steep**2 * (1 - HYPOTHESES.forgetting) / certain),
            log_weight=bank.log_weight - innovation**2 / (2 * noise),
            theta=bank.theta,
            squares=bank.squares + outcome.squares,
            pairs=bank.pairs + outcome.pairs,
        )
        return self._moved(learned, outcome.pairs > 0.0)

    def _moved(self, bank: Bank, played: npt.NDArray[np.bool_]) -> Bank:
        """Theta follows the best point by at most `_LONGEST`, if there were games."""
        way = np.where(played, np.clip(bank.best - bank.theta, -_LONGEST, _LONGEST), 0.0)
        return replace(bank, theta=self.problem.inside(bank.theta + way))

    def on(self, problem: Problem) -> "Mixture":
        return replace(self, problem=problem)

    def carried(self, state: State, carry: Carry) -> Bank:
        """The filters in another space; doubt changes their weights, but does not move the best.

        With a doubt, the filters that hold the start for the best hold the present theta for it.
        They get their prior part of their H again: the games judged the old start, not theta.
        """
        prior = self.start()
        bank = Bank(
            mean=carry.positions(state.mean),
            variance=carry.variances(state.variance, prior.variance),
            log_weight=carry.log_weights(state.log_weight, prior.log_weight),
            theta=self.problem.inside(carry.positions(state.theta)),
            squares=state.squares,
            pairs=state.pairs,
        )
        if carry.doubt == 1.0:
            return bank
        # under the power prior the means of the filters come closer, too
        moving = HYPOTHESES.deviation > 0.0
        known = replace(carry, doubt=1.0).variances(state.variance, prior.variance)
        best = carry.positions(state.best)[..., None, :]
        less = bank.variance / (np.where(moving, known, 1.0) * carry.doubt**2)
        near = best + less * (bank.mean - best)
        of_elo = bank.log_weight.reshape(*bank.log_weight.shape[:-2], len(_ELO), -1) * _THETA
        every = np.logaddexp.reduce(of_elo[..., :-1], axis=-1) + log(_SETTLED / (1 - _SETTLED))
        settled = np.repeat(every / _THETA, of_elo.shape[-1], axis=-1)[..., None]
        bank = replace(
            bank,
            mean=np.where(moving, near, bank.theta[..., None, :]),
            log_weight=np.where(moving, bank.log_weight, settled),
        )
        return replace(bank, mean=bank.mean + (best - bank.best[..., None, :]))

    def dump(self, state: State) -> dict[str, Any]:
        arrays = {name: packed(getattr(state, name)) for name in Bank.__slots__}
        return {"version": packed(_VERSION), **arrays}

    def load(self, data: Mapping[str, Any]) -> Bank:
        needed = {"version": _VERSION.shape, **shapes(self.start())}
        if {"version", "theta"}.isdisjoint(data) and "mean" in data:
            raise UnusableState(_OLDER)
        arrays = restored(self.name, data, needed)
        if arrays.pop("version") != _VERSION:
            raise UnusableState(_OLDER)
        return Bank(**arrays)


def _bounded(result: Vector, weight: Vector, predicted: Vector, certain: Vector) -> Vector:
    """W, at most `_OUTLIER` deviations from what the bank predicted; shape (1, 1)."""
    mean = (weight * predicted).sum(axis=-2, keepdims=True)
    square = (weight * (certain + (predicted - mean) ** 2)).sum(axis=-2, keepdims=True)
    most = _OUTLIER * np.sqrt(square)
    bounded: Vector = np.clip(result, mean - most, mean + most)
    return bounded


def _build(problem: Problem, given: Mapping[str, float | None]) -> Mixture:
    return Mixture(problem=problem)


METHOD = Method(
    name="mixture",
    summary="a bank of Bayesian filters, weighted by how well each predicted the games",
    settings=(),
    build=_build,
)
