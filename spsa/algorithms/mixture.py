"""The default: banks of Bayesian filters that differ in what they assume, weighted by predictions.

`bspsas` (Ivec & Vojnovic 2022) has to be told sigma: how fast Elo is lost with distance. Here every
hypothesis about it has its own filter. All filters see all games; the weight of each depends on how
well it predicted them (multiple-model estimation: Magill 1965, "Optimal adaptive estimation of
sampled stochastic processes"). A hypothesis j is

- H_j: one step from the best values costs all n parameters together H_j Elo, each h_j = H_j / n;
- lambda_j: old games count less, because curvatures differ or the best values move;
- s_j, of the paper's prior: the best values are about one step from the start, or three; or they
  are the start, so that a tuned engine is left alone.

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

The evidence e_j decides how far the best values are: a filter that knew little beforehand is not
blamed for what it did not predict. So a few strong results refute that the start is best. It does
not choose H_j, because filters in a short and steep run are first wrong and then right.

phi is how much further results miss the best filter's predictions than chance explains: the loss is
no parabola, or no common one. It keeps the bank from being too sure of one filter (overdispersion:
McCullagh & Nelder 1989, "Generalized Linear Models", 4.5). For the same reason chi_j counts half.
It is also why late results count more: what costs Elo is the curvature near theta, and early games
were played elsewhere. After P pairs, what a result adds to chi_j is

    a + l (a - b),   l = 1 - min(1, 1500 / P)

instead of a, if those before it added b in the mean. With l = 1 their weights rise linearly.

Steps come from rules of thumb, so each is misjudged by itself. A second bank sees the same games
and gives every parameter i filters of its own. A hypothesis q says that one step in all parameters
would cost H_q Elo if all cost what i does, and that G Elo are to be gained then: v_iq starts at
G / H_q. A hypothesis c says what parameters have in common: G, and H_c, about which the H_q lie, by
r(q | c), log-normal. The result K says of i

    z_q    = 2 x_i B H_q ln 10 / (200 n)            B A of this hypothesis
    m_i    = sum_q w_iq z_q (mu_iq - y_i)           what i adds to the prediction
    V_i    = sum_q w_iq (z_q^2 v_iq + z_q^2 (mu_iq - y_i)^2) - m_i^2
    nu_iq  = W - sum m + m_i - z_q (mu_iq - y_i)
    S_iq   = B tau^2 + sum V - V_i + z_q^2 v_iq
    e_iq  -= nu_iq^2 / (2 S_iq) + ln(S_iq / (B tau^2)) / 2
    mu_iq += z_q v_iq nu_iq / S_iq
    v_iq  -= .4 (z_q v_iq)^2 / S_iq

    p_c    = q_c prod_i sum_q r(q | c) exp(e_iq / 2), normalised
    w_iq   = exp(e_iq / 2) sum_c p_c r(q | c), normalised

`best` has the most Elo expected: a hypothesis by which a step costs much has more to say. The
second bank is trusted as pairs become many for each parameter. As far as the first one holds the
start for the best, so does the second.

    beta   = .85 P / (P + 750 n),  H = sum p_j H_j,  H_i = sum w_iq H_q
    own_i  = sum w_iq H_q mu_iq / H_i                P pairs so far
    best_i = ((1 - beta) sum p_j H_j mu_ij + beta H_i own_i) / ((1 - beta) H + beta H_i)

theta follows it, by at most r steps a result and parameter. In either bank a W more than three
deviations from the prediction counts as one of three. The innovations use the y that was played, so
late results are right, too.

    M      = sqrt(max(0, phi - 2) tau^2 / (4 B)) 800 / ln 10
    r      = min(1, _MISSED / M)

M is by how many Elo results miss the best filter's predictions; r < 1 where that is so much that
the perturbation is perhaps beyond a cliff, in a parameter whose step is misjudged.

The perturbation is x_i = c_i delta_i, delta_i = +-1 as in `spsa.algorithms.balanced_signs`, because
a filter has no correlations between parameters, and

    c_i    = sqrt(_KNOWN / (h_i K B))

within _NARROWEST and a widest c, in steps. h_i is what a step costs as the evidence has it: the
geometric mean of H_j / n under q_j exp(e_j), and with the weight beta that of H_q / n under w_iq. A
wide perturbation says more as long as the loss is a parabola at that distance. Beyond a cliff, or
where one side is steeper, it misleads; so c_i falls where h_i K B, what the games could tell, is
large. On a plateau it sees little of a slope that a narrow one sees; so the widest falls slowly,
too. It is r times as wide, but at least _CAREFUL. That costs little: where M is large, what the
other parameters do to W outweighs chance, and becomes less with c as well.

`belief` has no deviation, because the games hardly show how much curvatures differ
(benches/papers/RESULTS.md). Its Elo gained is the mean of h_j (|start - mu_j|^2 - |theta - mu_j|^2)
under q_j exp(e_j): p is careful, and so believes in flat losses. A step is f_i times too large
beside the others if f_i^2 = H_i over the median, H_i the geometric mean under w_iq; f_i is an
understatement, and only the largest are shown.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from math import log

import numpy as np

from spsa.algorithms.balanced_signs import balanced_signs
from spsa.algorithms.filter_bank import ELO, FORGETTING, OUTLIER, Bank
from spsa.algorithms.rule import Belief, Outcome, Perturbation, Rule, State, Vector, along, total
from spsa.algorithms.state import Carry

_NARROWEST, _CAREFUL, _WIDEST = 0.35, 0.8, 1.75  # c_i, in steps
_EARLY, _NARROWING = 1500.0, 0.05  # pairs after which l grows and the widest falls; its exponent
_KNOWN = 14_000.0  # h_i K B, Elo times pairs, from which on c_i is at most 1 step
_MISSED = 60.0  # Elo by which results miss the predictions, from which on r < 1
_PARTS = 60  # of the games to come, for the integration of the variances
MAX_MISFIT = 2.0  # phi above which what the filters are sure of is not to be relied on


@dataclass(frozen=True, kw_only=True)  # no slots: the hypotheses are computed once
class Mixture(Rule):
    name = "mixture"

    @cached_property
    def per_step(self) -> Vector:
        """A_j / (2 x), which is 1 / sigma_j^2: h_j ln 10 / 200; shape (J, 1)."""
        curvature: Vector = ELO / self.problem.start.shape[-1]
        return curvature * (log(10) / 200)

    def start(self) -> Bank:
        return Bank.untold(self.problem.start, self.problem.inside(self.problem.start))

    def theta(self, state: State) -> Vector:
        return self.problem.inside(state.theta)

    def belief(self, state: State) -> Belief:
        start = np.broadcast_to(self.problem.start, state.theta.shape)
        path = np.stack([start, state.theta], axis=-2)
        return Belief(state.theta, None, state.gained(path)[..., 1:], state.too_large)

    def ask(self, state: State, k: int, rng: np.random.Generator) -> Perturbation:
        centre = self.theta(state)
        widths = self.widths(state)
        last = int(state.last.max())
        delta = balanced_signs(self.problem.seed, k, last, centre.shape, rng)
        least = widths.min(axis=-1, keepdims=True)
        return Perturbation(centre=centre, offset=widths * delta, a_k=1.0, c_k=least)

    def widths(self, bank: Bank) -> Vector:
        """c_i of the next perturbation, shape (n,)."""
        h = bank.steepness / bank.theta.shape[-1]
        told = h * np.maximum(bank.results, 1.0) * self.problem.pairs
        widest = np.maximum(_WIDEST * _early(bank) ** _NARROWING * _caution(bank), _CAREFUL)
        widths: Vector = np.clip(np.sqrt(_KNOWN / told), _NARROWEST, widest)
        return widths

    def elo_of(self, bank: Bank, pairs: float) -> float:
        """Elo that so many more pairs are expected to gain.

        That is h_j times what the variances v_j lose. Of many iterations of B pairs each,

            dv/dp = -(1 - lambda_j) A_j^2 v^2 / (tau^2 + B sum A_j^2 v)
            A_j   = 2 c_i h_j ln 10 / 200

        which is integrated in small parts, each with the sum at its start and the present c. What
        the filters disagree about is left out.
        """
        squared = (2.0 * self.widths(bank) * self.per_step) ** 2
        kept, each, variance = 1.0 - FORGETTING, pairs / _PARTS, bank.variance
        for _ in range(_PARTS):
            known = bank.tau2 + self.problem.pairs * total(squared * variance)
            variance = variance / (1.0 + kept * each * squared / known * variance)
        lost = total(bank.variance) - total(variance)
        return float(np.sum(bank.weight() * (self.per_step * (200 / log(10)) * lost)))

    def tell(self, state: State, outcome: Outcome) -> Bank:
        bank: Bank = state
        centre, pairs = outcome.centre[..., None, :], outcome.pairs[..., None, :]
        noise = np.maximum(pairs, 1.0) * bank.tau2[..., None, :]  # avoids 0/0 without games
        played, steep = outcome.difference[..., None, :], pairs * self.per_step  # product: B A_j
        predicted = steep * along(played, bank.mean - centre)
        reach = played * bank.variance
        certain = noise + steep**2 * along(played, reach)
        result = _bounded(outcome.result[..., None, :], bank.weight(), predicted, certain)
        innovation = result - predicted
        late = (pairs > 0.0) * (1.0 - _early(bank)[..., None, :])
        forgotten = late / np.maximum(bank.results[..., None, :], 1.0)
        learned = Bank(
            mean=bank.mean + reach * (steep * innovation / certain),
            variance=bank.variance - reach**2 * (steep**2 * (1 - FORGETTING) / certain),
            surprise=bank.surprise * (1 - forgotten) + (1 + late) * innovation**2 / noise,
            evidence=bank.evidence - (innovation**2 / certain + np.log(certain / noise)) / 2,
            theta=bank.theta,
            squares=bank.squares + outcome.squares,
            pairs=bank.pairs + outcome.pairs,
            results=bank.results + (outcome.pairs > 0.0),
            last=np.where(outcome.pairs > 0.0, outcome.k, bank.last),
            own=bank.own.after(outcome, noise[..., 0]),
        )
        longest = _caution(learned)
        way = np.clip(learned.best - bank.theta, -longest, longest)
        theta = bank.theta + np.where(outcome.pairs > 0.0, way, 0.0)
        return replace(learned, theta=self.problem.inside(theta))

    def carried(self, state: State, carry: Carry) -> Bank:
        bank: Bank = state
        return replace(
            bank,
            mean=carry.positions(bank.mean),
            variance=carry.variances(bank.variance, self.start().variance),
            theta=self.problem.inside(carry.positions(bank.theta)),
            own=bank.own.carried(carry),
        )


def _early(bank: Bank) -> Vector:
    """1 - l, shape (1,)."""
    early: Vector = _EARLY / np.maximum(bank.pairs, _EARLY)
    return early


def _caution(bank: Bank) -> Vector:
    """r, shape (1,)."""
    caution: Vector = _MISSED / np.maximum(bank.missed, _MISSED)
    return caution


def _bounded(result: Vector, weight: Vector, predicted: Vector, certain: Vector) -> Vector:
    """W, at most `OUTLIER` deviations from what the bank predicted; shape (1, 1)."""
    mean = (weight * predicted).sum(axis=-2, keepdims=True)
    square = (weight * (certain + (predicted - mean) ** 2)).sum(axis=-2, keepdims=True)
    most = OUTLIER * np.sqrt(square)
    bounded: Vector = np.clip(result, mean - most, mean + most)
    return bounded
