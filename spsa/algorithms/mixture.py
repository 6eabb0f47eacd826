"""The default: a bank of Bayesian filters with different curvatures, weighted by their predictions.

`bspsas` (Ivec & Vojnovic 2022) has to be told sigma: how fast Elo is lost with distance. Here every
hypothesis about it has its own filter. All filters see all games; the weight of each depends on how
well it predicted them (multiple-model estimation: Magill 1965, "Optimal adaptive estimation of
sampled stochastic processes"). Hypothesis j is that one step from the best value costs each of the
n parameters h_j = H_j / n Elo, because tunings have similar Elo in all, not in each parameter. The
prior is that the best value is about one step away, s_1 of the paper.

With everything in steps, W = wins - losses over B pairs played between y + x and y - x, and w of
one pair of variance tau^2:

    A_j   = 2 x h_j ln 10 / 200                    2 x / sigma_j^2 of the paper's (6)
    nu_j  = W - B sum A_j (mu_j - y)               what it did not predict
    S_j   = B tau^2 + B^2 sum A_j^2 v_j
    l_j  -= nu_j^2 / (2 B tau^2)
    mu_j += B A_j v_j nu_j / S_j
    v_j  -= (B A_j v_j)^2 / S_j
    theta = sum softmax(l)_j mu_j

The innovation uses the y that was played, so the update is right also for a result that comes late,
or was played with other values than `ask` gave.

The perturbation depends on the number p of pairs planned so far, not on how they are cut into
iterations nor on how many follow, so that a run may end or continue at any time:

    x = c_k delta,   delta_i = +-1,   c_k = (10^6 / p)^gamma

which is Fishtest's in a run of a million pairs. The larger c_k is, the more a result says, as long
as the loss is still a parabola at that distance; c_k was chosen on the suite of `simulate compare`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import log
from typing import Any

import numpy as np

from spsa.algorithms.carrying import Carry
from spsa.algorithms.evidence import reported, tau2
from spsa.algorithms.memory import packed, restored, shapes
from spsa.algorithms.rule import (
    Belief,
    Method,
    Outcome,
    Perturbation,
    Problem,
    RuleUpdate,
    State,
    Vector,
    signs,
    total,
)
from spsa.algorithms.settings import Setting

_SETTINGS = (
    Setting(name="gamma", meaning="exponent of the decay of c_k", default=0.101, most=0.5),
)

_ELO = 10.0 ** np.arange(-1.0, 2.75, 0.25)  # H: Elo lost one step away in every parameter
_MEDIAN_ELO, _SPREAD = 5.0, 1.5  # log-normal prior of H
_DEVIATION = 1.0  # s_1 of the paper, in steps
_ONE_STEP = 1e6  # pairs after which plus and minus are a step from theta


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Bank:
    """The state: J filters over n parameters, and the moments of w.

    `mean` and `variance` have shape (J, n), `log_weight` (J, 1), `squares` and `pairs` (1,).
    """

    mean: Vector
    variance: Vector
    log_weight: Vector
    squares: Vector
    pairs: Vector

    @property
    def tau2(self) -> Vector:
        """The variance of w of a pair, shape (1,)."""
        return tau2(self.squares, self.pairs)

    @property
    def weight(self) -> Vector:
        """The posterior probabilities of the hypotheses, shape (J, 1)."""
        likelihood = np.exp(self.log_weight - self.log_weight.max(axis=-2, keepdims=True))
        weight: Vector = likelihood / likelihood.sum(axis=-2, keepdims=True)
        return weight

    @property
    def centre(self) -> Vector:
        """The mean under these probabilities, shape (n,); exact where all filters agree."""
        first = self.mean[..., 0, :]
        apart = self.mean - first[..., None, :]
        centre: Vector = first + (self.weight * apart).sum(axis=-2)
        return centre


@dataclass(frozen=True, kw_only=True)  # no slots: the hypotheses are computed once
class Mixture:
    problem: Problem
    gamma: float
    name: str = "mixture"

    @cached_property
    def per_step(self) -> Vector:
        """A_j / (2 x), which is 1 / sigma_j^2: h_j ln 10 / 200; shape (J, 1)."""
        curvature: Vector = _ELO[:, None] / self.problem.start.shape[-1]
        return curvature * (log(10) / 200)

    def start(self) -> Bank:
        start = self.problem.start[..., None, :]
        shape = (*start.shape[:-2], len(_ELO), start.shape[-1])
        prior = -0.5 * (np.log(_ELO / _MEDIAN_ELO) / _SPREAD) ** 2
        none = np.zeros((*shape[:-2], 1))
        return Bank(
            mean=np.broadcast_to(start, shape),
            variance=np.full(shape, _DEVIATION**2),
            log_weight=np.broadcast_to(prior[:, None], (*shape[:-1], 1)),
            squares=none,
            pairs=none,
        )

    def theta(self, state: State) -> Vector:
        return self.problem.inside(state.centre)

    def belief(self, state: State) -> Belief:
        spread = state.variance + (state.mean - state.centre[..., None, :]) ** 2
        return Belief(self.theta(state), np.sqrt((state.weight * spread).sum(axis=-2)))

    def ask(self, state: State, k: int, rng: np.random.Generator) -> Perturbation:
        pairs = (k - 0.5) * self.problem.pairs
        c_k = float((_ONE_STEP / pairs) ** self.gamma)
        centre = self.theta(state)
        return Perturbation(centre=centre, offset=c_k * signs(rng, centre.shape), a_k=1.0, c_k=c_k)

    def tell(self, state: State, outcome: Outcome) -> tuple[Bank, RuleUpdate]:
        after = self._learned(state, outcome)
        return after, reported(self.theta(after), outcome)

    def _learned(self, bank: Bank, outcome: Outcome) -> Bank:
        centre, pairs = outcome.centre[..., None, :], outcome.pairs[..., None, :]
        noise = np.maximum(pairs, 1.0) * bank.tau2[..., None, :]  # avoids 0/0 without games
        signal = pairs * self.per_step * outcome.difference[..., None, :]
        innovation = outcome.result[..., None, :] - total(signal * (bank.mean - centre))
        reach = signal * bank.variance
        certain = noise + total(signal * reach)
        return Bank(
            mean=bank.mean + reach * (innovation / certain),
            variance=bank.variance - reach**2 / certain,
            log_weight=bank.log_weight - innovation**2 / (2 * noise),
            squares=bank.squares + outcome.squares,
            pairs=bank.pairs + outcome.pairs,
        )

    def on(self, problem: Problem) -> "Mixture":
        return replace(self, problem=problem)

    def carried(self, state: State, carry: Carry) -> Bank:
        """The filters in another space; doubt changes their weights, but does not move theta."""
        prior = self.start()
        bank = Bank(
            mean=carry.positions(state.mean),
            variance=carry.variances(state.variance, prior.variance),
            log_weight=carry.log_weights(state.log_weight, prior.log_weight),
            squares=state.squares,
            pairs=state.pairs,
        )
        if carry.doubt == 1.0:
            return bank
        apart = carry.positions(state.centre) - bank.centre
        return replace(bank, mean=bank.mean + apart[..., None, :])

    def dump(self, state: State) -> dict[str, Any]:
        return {name: packed(getattr(state, name)) for name in Bank.__slots__}

    def load(self, data: Mapping[str, Any]) -> Bank:
        return Bank(**restored(self.name, data, shapes(self.start())))


def _build(problem: Problem, given: Mapping[str, float | None]) -> Mixture:
    return Mixture(problem=problem, gamma=given["gamma"] or 0.0)


METHOD = Method(
    name="mixture",
    summary="a bank of Bayesian filters, weighted by how well each predicted the games",
    settings=_SETTINGS,
    build=_build,
)
