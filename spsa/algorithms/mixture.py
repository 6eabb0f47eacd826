"""The default: a bank of Bayesian filters that differ in what they assume, weighted by predictions.

`bspsas` (Ivec & Vojnovic 2022) has to be told sigma: how fast Elo is lost with distance. Here every
hypothesis about it has its own filter. All filters see all games; the weight of each depends on how
well it predicted them (multiple-model estimation: Magill 1965, "Optimal adaptive estimation of
sampled stochastic processes"). A hypothesis j is

- H_j: one step from the best values costs all n parameters together H_j Elo, each h_j = H_j / n;
- lambda_j: old games count less, because curvatures differ or the best values move;
- s_j, of the paper's prior: the best values are about one step from the start; or three, where a
  step costs at least 10 Elo; or they are the start, so that a tuned engine is left alone.

With everything in steps, W = wins - losses over B pairs played between y + x and y - x, and w of
one pair of variance tau^2, the result K says

    A_j    = 2 x h_j ln 10 / 200                   2 x / sigma_j^2 of the paper's (6)
    nu_j   = W - B sum A_j (mu_j - y)              what it did not predict
    S_j    = B tau^2 + B^2 sum A_j^2 v_j
    chi_j += nu_j^2 / (B tau^2)
    e_j   -= nu_j^2 / (2 S_j) + ln(S_j / (B tau^2)) / 2
    mu_j  += B A_j v_j nu_j / S_j
    v_j   -= (1 - lambda_j) (B A_j v_j)^2 / S_j

    phi    = max(1, min_j chi_j / (K + 2))
    p(s)   = sum q_j exp(e_j) of the filters with this s, normalised; q_j is the prior
    p_j    = p(s_j) q_j^(1 / sqrt(phi)) exp(-chi_j / (4 phi)), normalised among them
    best   = sum p_j h_j mu_j / sum p_j h_j

The evidence e_j decides how far the best values are: a filter that knew little beforehand is not
blamed for what it did not predict. So a few strong results refute that the start is best. It does
not choose H_j, because filters in a short and steep run are first wrong and then right.

phi is how much further results miss the best filter's predictions than chance explains: the loss is
no parabola, or no common one. It keeps the bank from being too sure of one filter (overdispersion:
McCullagh & Nelder 1989, "Generalized Linear Models", 4.5). For the same reason chi_j counts half.

`best` has the most Elo expected under p: a hypothesis by which a step costs much has more to say.
theta follows it, by at most one step a result and parameter. A W more than four deviations from the
prediction of the bank counts as one of four.

The innovation uses the y that was played, so late results are right, too.

The perturbation follows what is not known yet: x = c_k delta, delta_i = +-1 as in
`spsa.algorithms.balanced_signs`, because a filter has no correlations between parameters, and

    c_k    = min(2 deviations of the moving filters, sqrt(_KNOWN phi / (h K B)))

within _NARROWEST and _WIDEST steps. h is what a step costs as the evidence has it: the geometric
mean of h_j under q_j exp(e_j). A wide perturbation says more as long as the loss is a parabola at
that distance. Beyond a cliff, or where one side is steeper, it misleads; so c_k falls where h K B,
what the games could tell, is large, and later if the filters contradict the results.

`belief` has no deviation, because the games hardly show how much curvatures differ
(benches/papers/RESULTS.md). Its Elo gained is the mean of h_j (|start - mu_j|^2 - |theta - mu_j|^2)
under q_j exp(e_j): p is careful, and so believes in flat losses.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from math import log

import numpy as np
import numpy.typing as npt

from spsa.algorithms.balanced_signs import balanced_signs
from spsa.algorithms.filter_bank import HYPOTHESES, Bank, weighted_mean
from spsa.algorithms.rule import (
    Belief,
    Outcome,
    Perturbation,
    Problem,
    RuleEntry,
    RuleUpdate,
    State,
    Vector,
    along,
    reported,
    total,
)
from spsa.algorithms.state import Carry

_NARROWEST, _WIDEST = 0.8, 1.8  # c_k, in steps
_REACH = 2.0  # c_k in deviations of the moving filters
_KNOWN = 16_000.0  # h K B, Elo times pairs, from which on c_k is at most 1 step if phi is 1
_LONGEST = 1.0  # steps by which one result moves a parameter
_OUTLIER = 4.0  # deviations
MAX_MISFIT = 2.0  # phi above which what the filters are sure of is not to be relied on


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
            surprise=np.zeros((*shape[:-1], 1)),
            evidence=np.zeros((*shape[:-1], 1)),
            theta=self.problem.inside(self.problem.start),
            squares=none,
            pairs=none,
            results=none,
            last=none,
        )

    def theta(self, state: State) -> Vector:
        return self.problem.inside(state.theta)

    def belief(self, state: State) -> Belief:
        path = np.stack([self.problem.start + 0.0 * state.theta, state.theta], axis=-2)
        return Belief(state.theta, None, state.gained(path)[..., 1:])

    def ask(self, state: State, k: int, rng: np.random.Generator) -> Perturbation:
        centre = self.theta(state)
        c_k = self.width(state)
        last = int(state.last.max())
        delta = balanced_signs(self.problem.seed, k, last, centre.shape, rng)
        return Perturbation(centre=centre, offset=c_k * delta, a_k=1.0, c_k=c_k)

    def width(self, bank: Bank) -> Vector:
        """c_k of the next perturbation, shape (1,)."""
        moving = bank.weight(of=HYPOTHESES.deviation)
        apart = bank.mean - bank.theta[..., None, :]
        squares = total(bank.variance) + along(apart, apart)
        square = (moving * squares).sum(axis=-2) - total(weighted_mean(moving, apart) ** 2)
        mean_square = np.maximum(square, 0.0) / apart.shape[-1]
        h = bank.steepness / apart.shape[-1]
        told = h * np.maximum(bank.results, 1.0) * self.problem.pairs
        most = np.minimum(_REACH**2 * mean_square, _KNOWN * bank.misfit[..., 0] / told)
        width: Vector = np.clip(np.sqrt(most), _NARROWEST, _WIDEST)
        return width

    def tell(self, state: State, outcome: Outcome) -> tuple[Bank, RuleUpdate]:
        after = self._learned(state, outcome)
        return after, reported(outcome)

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
            surprise=bank.surprise + innovation**2 / noise,
            evidence=bank.evidence - (innovation**2 / certain + np.log(certain / noise)) / 2,
            theta=bank.theta,
            squares=bank.squares + outcome.squares,
            pairs=bank.pairs + outcome.pairs,
            results=bank.results + (outcome.pairs > 0.0),
            last=np.where(outcome.pairs > 0.0, outcome.k, bank.last),
        )
        return self._moved(learned, outcome.pairs > 0.0)

    def _moved(self, bank: Bank, played: npt.NDArray[np.bool_]) -> Bank:
        """Theta follows the best point by at most `_LONGEST`, if there were games."""
        way = np.where(played, np.clip(bank.best - bank.theta, -_LONGEST, _LONGEST), 0.0)
        return replace(bank, theta=self.problem.inside(bank.theta + way))

    def carried(self, state: State, carry: Carry) -> Bank:
        """The filters in another space; doubt changes their weights, but does not move the best.

        With a doubt, the filters that hold the start for the best hold the present theta for it.
        The distances s_j are from there, so the evidence about those from the old start is gone.
        """
        prior = self.start()
        bank = Bank(
            mean=carry.positions(state.mean),
            variance=carry.variances(state.variance, prior.variance),
            surprise=carry.evidence(state.surprise),
            evidence=carry.evidence(state.evidence),
            theta=self.problem.inside(carry.positions(state.theta)),
            squares=state.squares,
            pairs=state.pairs,
            results=carry.evidence(state.results),
            last=state.last,
        )
        if carry.doubt == 1.0:
            return bank
        # under the power prior the means of the filters come closer, too
        moving = HYPOTHESES.deviation > 0.0
        known = replace(carry, doubt=1.0).variances(state.variance, prior.variance)
        best = carry.positions(state.best)[..., None, :]
        less = bank.variance / (np.where(moving, known, 1.0) * carry.doubt**2)
        near = best + less * (bank.mean - best)
        bank = replace(
            bank,
            mean=np.where(moving, near, bank.theta[..., None, :]),
            evidence=np.zeros_like(bank.evidence),
        )
        return replace(bank, mean=bank.mean + (best - bank.best[..., None, :]))


def _bounded(result: Vector, weight: Vector, predicted: Vector, certain: Vector) -> Vector:
    """W, at most `_OUTLIER` deviations from what the bank predicted; shape (1, 1)."""
    mean = (weight * predicted).sum(axis=-2, keepdims=True)
    square = (weight * (certain + (predicted - mean) ** 2)).sum(axis=-2, keepdims=True)
    most = _OUTLIER * np.sqrt(square)
    bounded: Vector = np.clip(result, mean - most, mean + most)
    return bounded


ENTRY = RuleEntry(name="mixture", settings=(), build=Mixture)
