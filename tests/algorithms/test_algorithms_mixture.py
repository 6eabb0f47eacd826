"""What the mixture computes, against its formulas and against what follows from them."""

from dataclasses import replace
from math import log

import numpy as np
import pytest
from outcomes import generator, problem, told

from spsa.algorithms import create
from spsa.algorithms.rule import Outcome
from spsa.algorithms.state import Carry
from spsa.planning.simulated_run import Quadratic, SimulatedGames, SimulatedRun, final

ELO = [10 ** (-0.5 + q / 2) for q in range(7)]
BANK = [  # H, lambda, s and share of a hypothesis
    *((elo, forgetting, 1.0, 0.68 / 3) for elo in ELO for forgetting in (0.0, 0.4, 0.9)),
    *((elo, 0.0, 3.0, 0.17) for elo in ELO),
    *((elo, 0.0, 0.0, 0.15) for elo in ELO),
]
PRIOR = [share * np.exp(-(np.log(elo / 7) ** 2) / 4.5) for elo, _, _, share in BANK]
OWN = [(10 ** (-1 + q / 2), gain) for gain in (2.0, 14.4) for q in range(10)]  # H_q, G
COMMON = [(10 ** (-1 + c / 2), gain) for gain in (2.0, 14.4) for c in range(9)]  # H_c, G
EVEN, GOOD = (1.0, 0.0, 4.0, 0.0, 0.0), (0.0, 0.0, 4.0, 0.0, 1.0)  # w^2 is 0.8 a pair in both


def rule(chosen):
    return create("mixture", {}, chosen)


def played(centre, difference, counts):
    return Outcome(
        k=1, centre=centre, difference=difference, pentanomial=np.array(counts), a_k=1.0, c_k=1.0
    )


def weights(state):
    """p by its formulas, a filter at a time."""
    chi, e = state.surprise[:, 0], state.evidence[:, 0]
    phi = max(1.0, min(chi) / (state.results[0] + 2))
    by_fit = [q ** (1 / phi**0.5) * np.exp(-c / (4 * phi)) for q, c in zip(PRIOR, chi, strict=True)]
    by_evidence = [q * np.exp(one) for q, one in zip(PRIOR, e, strict=True)]
    p = []
    for j, (_, _, s, _) in enumerate(BANK):
        alike = [i for i, (_, _, other, _) in enumerate(BANK) if other == s]
        share = sum(by_evidence[i] for i in alike) / sum(by_evidence)
        p.append(share * by_fit[j] / sum(by_fit[i] for i in alike))
    return np.array(p)


def share(common, own):
    """r(q | c), not normalised."""
    return float(common[1] == own[1]) * np.exp(-((log(own[0] / common[0]) / 1.4) ** 2) / 2)


def own_weights(state):
    """w by its formulas, a hypothesis at a time."""
    r = np.array([[share(c, q) for q in OWN] for c in COMMON])
    r /= r.sum(axis=1, keepdims=True)
    likely = np.exp(state.own.evidence / 2)
    p = np.array([np.exp(-(log(elo / 7) ** 2) / 4.5) for elo, _ in COMMON])
    for i in range(likely.shape[1]):
        p = p * (r @ likely[:, i])
    w = (p @ r)[:, None] * likely
    return w / w.sum(axis=0)


def best(state):
    """The point of most expected Elo by its formulas."""
    p, w, n = weights(state), own_weights(state), state.theta.shape[0]
    h = p * [elo for elo, *_ in BANK]
    own_h = w * np.array([elo for elo, _ in OWN])[:, None]
    beta = 0.85 * state.pairs[0] / (state.pairs[0] + 750 * n)
    by_evidence = PRIOR * np.exp(state.evidence[:, 0])
    at_start = by_evidence[-7:].sum() / by_evidence.sum()
    own = (own_h * state.own.mean).sum(axis=0) / own_h.sum(axis=0)
    own = at_start * state.mean[-1] + (1 - at_start) * own
    sums = (1 - beta) * h.sum(), beta * own_h.sum(axis=0)
    return ((1 - beta) * h @ state.mean + sums[1] * own) / (sums[0] + sums[1])


def test_the_prior_has_every_kind_of_hypothesis_for_every_elo_of_a_step():
    start = rule(problem()).start()
    assert start.weight()[:, 0] == pytest.approx(np.array(PRIOR) / sum(PRIOR))
    assert start.variance[:, 0].tolist() == [s**2 for _, _, s, _ in BANK]


def test_one_update_by_hand():
    start, x = np.array([1.0, -2.0]), np.array([0.5, -1.5])
    of = rule(problem(start, reach=9.0))
    before, y = of.start(), start + 0.1
    after = told(of, played(y, 2 * x, (1, 2, 3, 5, 4)))
    W, B, squares, tau2 = 9.0, 15.0, 27.0, (40 + 0.0) / 50
    assert len(before.mean) == len(BANK)
    for j, (elo, forgetting, s, _) in enumerate(BANK):
        A = [2 * x_i * elo / 2 * log(10) / 200 for x_i in x]
        nu = W - B * sum(A_i * (mu - y_i) for A_i, mu, y_i in zip(A, start, y, strict=True))
        S = B * tau2 + B**2 * sum(A_i**2 * s**2 for A_i in A)
        assert after.mean[j] == pytest.approx(
            [mu + B * A_i * s**2 * nu / S for mu, A_i in zip(start, A, strict=True)]
        )
        assert after.variance[j] == pytest.approx(
            [s**2 - (1 - forgetting) * (B * A_i * s**2) ** 2 / S for A_i in A]
        )
        assert float(after.surprise[j, 0]) == pytest.approx(nu**2 / (B * tau2))
        evidence = -(nu**2) / (2 * S) - log(S / (B * tau2)) / 2
        assert float(after.evidence[j, 0]) == pytest.approx(evidence)
    assert np.stack([after.squares, after.pairs, after.results]).tolist() == [[squares], [B], [1.0]]
    assert after.weight()[:, 0] == pytest.approx(weights(after))
    old = replace(after, pairs=np.array([3000.0]), squares=after.tau2 * 3050 - 40)  # l is a half
    again = played(y, x, (1, 2, 3, 5, 4))
    now, late = (of.tell(state, again).surprise for state in (after, old))
    assert late == pytest.approx(1.5 * now - after.surprise)


def test_one_update_of_the_own_curvatures_by_hand():
    """The second of two results, when the hypotheses about a parameter differ."""
    start, x = np.array([1.0, -2.0]), np.array([0.5, -1.5])
    of, y = rule(problem(start, reach=9.0)), start + 0.1
    before = told(of, played(y, 2 * x, (1, 2, 3, 5, 4)))
    after = of.tell(before, played(y, 2 * x, (1, 4, 4, 4, 2)))
    W, B, tau2, w = 2.0, 15.0, (40 + 27) / (50 + 15), own_weights(before)
    z = np.array([[2 * x_i * B * elo * log(10) / 400 for x_i in x] for elo, _ in OWN])
    mu, v = before.own.mean, before.own.variance
    part = z * (mu - y)
    m = (w * part).sum(axis=0)
    V = (w * (z**2 * v + part**2)).sum(axis=0) - m**2
    nu = W - m.sum() + m - part
    S = B * tau2 + V.sum() - V + z**2 * v
    assert after.own.mean == pytest.approx(mu + z * v * nu / S)
    assert after.own.variance == pytest.approx(v - 0.4 * (z * v) ** 2 / S)
    evidence = -(nu**2) / (2 * S) - np.log(S / (B * tau2)) / 2
    assert after.own.evidence == pytest.approx(before.own.evidence + evidence)
    assert after.own.weight == pytest.approx(own_weights(after))
    fresh = of.start()
    assert fresh.own.variance[:, 0] == pytest.approx([gain / elo for elo, gain in OWN])
    assert fresh.own.weight == pytest.approx(own_weights(fresh))


def test_theta_has_the_most_expected_elo():
    of = rule(problem(np.array([0.0, 1.0])))
    results = [(0, 2, 9, 6, 3), (1, 3, 8, 5, 3), (0, 4, 7, 7, 2)]
    state = told(of, *(played(np.array([0.2, 1.0]), np.array([2.0, -1.0]), r) for r in results))
    assert state.best == pytest.approx(best(state))
    assert of.theta(state) == pytest.approx(best(state))
    assert np.abs(state.own.best[0] - best(state)).min() > 0.01
    old = replace(state, results=np.array([1e4]))  # all sums are far from 0 then
    own = replace(old.own, evidence=old.own.evidence - 4e3)
    late = replace(old, surprise=old.surprise + 8e3, evidence=old.evidence - 2e3, own=own)
    assert late.best == pytest.approx(old.best)


def test_the_belief_is_the_gain_of_engines_drawn_by_their_evidence_without_a_deviation():
    start, rng = np.array([0.0, 1.0]), np.random.default_rng(1)
    of = rule(problem(start))
    state = told(of, *(played(start + 0.1, np.array([2.0, -1.0]), GOOD) for _ in range(4)))
    belief = of.belief(state)
    assert belief.mean == pytest.approx(of.theta(state))
    assert belief.deviation is None
    likely = PRIOR * np.exp(state.evidence[:, 0])
    which = rng.choice(len(BANK), size=100_000, p=likely / likely.sum())
    best = state.mean[which] + np.sqrt(state.variance[which]) * rng.normal(size=(100_000, 2))
    h = np.array([elo / 2 for elo, *_ in BANK])[which]
    gain = h * ((start - best) ** 2 - (belief.mean - best) ** 2).sum(axis=1)
    assert belief.gained == pytest.approx(gain.mean(), abs=4 * gain.std() / 100_000**0.5)


def test_one_result_moves_no_parameter_by_more_than_a_step_and_less_where_it_surprises():
    """However much it says; the filters keep what they learned, and theta follows."""
    of = rule(problem(np.zeros(1), reach=20.0, pairs=500))
    state = of.start()
    for _ in range(20):
        before = of.theta(state)
        state = of.tell(state, played(before, np.array([3.0]), (0, 0, 0, 0, 500)))
        assert np.abs(of.theta(state) - before).max() <= caution(state) + 1e-12
    assert of.theta(state)[0] > 3.0


def test_an_outlier_counts_as_three_deviations():
    """A machine that loses all games of one side moves theta no more than a mediocre day."""
    of, two = rule(problem(np.zeros(4))), np.full(4, 2.0)
    calm = told(of, *(played(np.zeros(4), two, EVEN) for _ in range(200)))
    for bank, enough in ((lambda state: state, 200), (lambda state: state.own, 160)):
        much, same, less = (
            bank(of.tell(calm, played(np.zeros(4), two, (lost, 0, 400 - lost, 0, 0)))).mean
            for lost in (400, enough, 120)
        )
        assert much == pytest.approx(same)
        assert np.abs(same - less).max() > 0.01


def widths(state, pairs):
    """c_i by its formulas, a filter at a time."""
    n, results = state.theta.shape[0], max(1, state.results[0])
    likely = PRIOR * np.exp(state.evidence[:, 0])
    common = (likely * np.log([elo for elo, *_ in BANK])).sum() / likely.sum()
    own = (own_weights(state) * np.log([[elo] for elo, _ in OWN])).sum(axis=0)
    beta = 0.85 * state.pairs[0] / (state.pairs[0] + 750 * n)
    h = np.exp(common + beta * (own - common)) / n
    widest = 1.75 * min(1.0, 1500 / max(1.0, state.pairs[0])) ** 0.05
    return np.clip(np.sqrt(14_000 / (h * results * pairs)), 0.35, max(widest * caution(state), 0.8))


def caution(state):
    """r by its formulas."""
    phi = max(1.0, state.surprise.min() / (state.results[0] + 2))
    missed = max(0.0, phi - 2) * state.tau2[0] * state.results[0] / max(4 * state.pairs[0], 1)
    return min(1.0, 60 / max(missed**0.5 * 800 / log(10), 1e-9))


def test_the_offset_is_narrower_where_the_games_could_tell_much():
    of = rule(problem(np.zeros(3), pairs=200))
    state, seen, cost = of.start(), [], np.array([20.0, 20.0, 1.0])
    for k in range(1, 200):
        asked = of.ask(state, k, generator(k))
        seen.append(np.abs(asked.offset))
        assert seen[-1] == pytest.approx(widths(state, 200))
        assert asked.c_k == pytest.approx([seen[-1].min()])
        better = 4 * float((cost * asked.offset * (0.8 - asked.centre)).sum())
        won = round(200 * (1 + np.tanh(better / 347.4)) / 2)
        state = of.tell(state, played(asked.centre, 2 * asked.offset, (200 - won, 0, 0, 0, won)))
    assert seen[0].tolist() == [1.75] * 3
    assert seen[-1].max() < 1.3
    assert np.ptp(seen[-1]) > 0.05


def test_a_tuned_engine_is_left_alone():
    """300 runs at once from the optimum: what noise costs them, of 20 Elo that a step costs."""
    start = np.zeros((300, 10))
    at_best = problem(start, iterations=100, pairs=75)
    engine = Quadratic(optimum=start, curvature=np.full(10, 2.0))
    of = rule(at_best)
    simulated_run = SimulatedRun(problem=at_best, engine=engine, games=SimulatedGames(0.6))
    lost = -engine.elo(of.theta(final(simulated_run, of, np.random.default_rng(3))))
    assert lost.mean() < 0.05
    assert np.quantile(lost, 0.99) < 0.8


def test_a_step_looks_as_much_too_large_as_the_root_of_what_it_costs_beside_the_others():
    of = rule(problem(np.zeros(5)))
    evidence = np.zeros((len(OWN), 5))
    for i, elo in enumerate((0.1, 1.0, 1.0, 2.0, 1000.0)):
        evidence[[abs(np.log(one / elo)) > 0.4 for one, _ in OWN], i] = -200.0
    start = of.start()
    state = replace(start, own=replace(start.own, evidence=evidence), pairs=np.array([3750.0]))
    cost = np.exp(state.own.log_elo)
    far = np.sqrt(cost / np.median(cost))
    assert of.belief(state).too_large == pytest.approx([far[0], 1, 1, 1, far[4]])
    assert far[0] < 0.4 < 20.0 < far[4]
    assert (of.belief(replace(state, pairs=np.array([3749.0]))).too_large == 1.0).all()


def test_in_other_steps_a_parameter_keeps_its_curvature():
    """One step is ten times as long; a new parameter begins with the prior."""
    of, start = rule(problem(np.zeros(2), reach=50.0)), np.zeros(2)
    state = told(of, *(played(start, np.array([2.0, 1.0]), GOOD) for _ in range(9)))
    other = Carry(source=np.array([1, -1]), scale=np.array([0.1, 1.0]), value=np.zeros(2))
    after, fresh = of.carried(state, other), of.start()
    for first in (0, 10):  # a step costs a hundred times as much, four half decades
        there, before = slice(first + 4, first + 10), slice(first, first + 6)
        assert after.own.mean[there, 0] == pytest.approx(0.1 * state.own.mean[before, 1])
        assert after.own.variance[there, 0] == pytest.approx(0.01 * state.own.variance[before, 1])
        assert after.own.evidence[there, 0].tolist() == state.own.evidence[before, 1].tolist()
    assert after.own.variance[:, 1] == pytest.approx(fresh.own.variance[:, 1])
    assert not after.own.evidence[:, 1].any()
