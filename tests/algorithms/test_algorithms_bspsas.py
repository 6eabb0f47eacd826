from dataclasses import replace

import numpy as np
import pytest
from elo import score_of_elo
from outcomes import START, N, generator, outcome, problem, tallies, walked

from spsa.algorithms import Bspsas, Prior, Vector, create, sigma_of
from spsa.planning.simulated_run import Quadratic, SimulatedGames, SimulatedRun, final

PAIR_WON = (0, 0, 0, 1, 0)  # w = 1
SIGMA = np.array([5.0, 7.0, 9.0, 4.0, 12.0])
DISTANCE = np.array([1.0, 0.5, 2.0, 3.0, 0.25])
PRIOR = Prior(sigma=SIGMA, distance=DISTANCE, tau=0.6, c_end=1.5)


def told(prior: Prior = PRIOR, start: Vector = START) -> Bspsas:
    return Bspsas(problem=problem(start), prior=prior)


def test_one_parameter_moves_as_by_4_and_5() -> None:
    rule = told(Prior(sigma=7.0, distance=1.5, tau=0.6, c_end=1.2), np.array([2.0]))
    asked = rule.ask(rule.start(), 200, generator())
    state, _ = rule.tell(rule.start(), outcome(asked, PAIR_WON, k=200))
    s2, c, sigma, tau = 1.5**2, asked.offset[0], 7.0, 0.6
    below = 4 * c**2 * s2 + tau**2 * sigma**4
    assert abs(c) == 1.2
    assert rule.theta(state) == pytest.approx([2 + 2 * c * s2 * sigma**2 / below])
    assert state.variance == pytest.approx([s2 * tau**2 * sigma**4 / below])


def test_the_perturbation_decays_to_c_end_as_by_17() -> None:
    rule = told()
    for k, wanted in ((200, 1.5), (50, 1.5 * 4**0.101), (1, 1.5 * 200**0.101)):
        asked = rule.ask(rule.start(), k, generator())
        assert np.abs(asked.offset) == pytest.approx(wanted)
        assert asked.c_k == pytest.approx(wanted)


def test_many_parameters_move_as_by_9_without_its_sum_and_10() -> None:
    rule, s2, theta = told(), DISTANCE**2, START
    state, rng = rule.start(), generator()
    for k, w in enumerate((2, -1, 0, 1), start=1):
        asked = rule.ask(state, k, rng)
        pair = np.eye(5)[w + 2]
        state, _ = rule.tell(state, outcome(asked, pair, k=k))
        below = 4 * asked.offset**2 * s2 + 0.6**2 * SIGMA**4
        theta = theta + 2 * asked.offset * s2 * SIGMA**2 / below * w
        s2 = s2 * 0.6**2 * SIGMA**4 / below
        assert rule.theta(state) == pytest.approx(theta)
        assert rule.belief(state).deviation == pytest.approx(np.sqrt(s2))


def test_pairs_played_together_say_what_they_say_one_by_one() -> None:
    """Of (10) exactly, of (9) but for the moves in between, which the innovation makes up for."""
    rule = told(Prior(sigma=7.0, distance=1.5, tau=0.6), np.array([2.0]))
    asked = rule.ask(rule.start(), 1, generator())
    together, _ = rule.tell(rule.start(), outcome(asked, (1, 2, 3, 4, 5)))
    state = rule.start()
    for pair in np.repeat(np.eye(5), [1, 2, 3, 4, 5], axis=0):
        state, _ = rule.tell(state, outcome(asked, pair))
    assert state.variance == pytest.approx(together.variance)
    assert state.mean == pytest.approx(together.mean)


def test_with_one_iteration_open_the_result_is_the_innovation() -> None:
    rule = told()
    asked = rule.ask(rule.start(), 1, generator())
    seen = rule.seen(rule.start(), outcome(asked, (3, 9, 20, 11, 7)))
    assert seen.innovation.tolist() == [10]


def test_a_late_result_says_only_what_was_not_foreseen() -> None:
    """Played about an older theta, it is compared with what the mean of now foretells there."""
    rule = told()
    first, second = (rule.ask(rule.start(), k, generator(k)) for k in (1, 2))
    state, _ = rule.tell(rule.start(), outcome(first, (0, 0, 20, 20, 10), k=1))
    slope = 50 * 2 * second.offset / SIGMA**2
    foreseen = np.sum(slope * (state.mean - START))
    seen = rule.seen(state, outcome(second, (0, 0, 20, 20, 10), k=2))
    assert abs(foreseen) > 0.1
    assert seen.innovation == pytest.approx([40 - foreseen])


def test_what_was_played_off_centre_counts_from_there() -> None:
    rule = told()
    asked = rule.ask(rule.start(), 1, generator())
    aside = START + np.array([0.0, 0.5, 0.0, -0.5, 0.0])
    seen = rule.seen(rule.start(), outcome(asked, PAIR_WON, centre=aside))
    slope = 2 * asked.offset / SIGMA**2
    assert seen.innovation == pytest.approx([1 - np.sum(slope * (START - aside))])


def test_shifting_all_values_by_10000_changes_nothing() -> None:
    """It would if (9) kept its sum over theta_j."""
    results = tallies(seed=3, count=30, pairs=2)
    here = told()
    moved = replace(
        here.problem,
        start=START + 10_000,
        lower=here.problem.lower + 10_000,
        upper=here.problem.upper + 10_000,
    )
    there = replace(here, problem=moved)
    steps = here.theta(walked(here, results)) - START
    assert np.abs(steps).max() > 0.05
    assert there.theta(walked(there, results)) - (START + 10_000) == pytest.approx(steps, abs=1e-8)


def test_tau_is_learned_from_the_games_unless_it_is_told() -> None:
    """As many decisive pairs as 50 of variance 0.8 and these together make it."""
    rule = create("bspsas", {}, problem())
    asked = rule.ask(rule.start(), 1, generator())
    state, _ = rule.tell(rule.start(), outcome(asked, (50, 0, 50, 0, 50)))
    noise = rule.seen(state, outcome(asked, PAIR_WON)).noise  # type: ignore[attr-defined]
    assert noise == pytest.approx([(40 + 400) / (50 + 150)])
    assert told().seen(told().start(), outcome(asked, (0, 0, 3, 1, 0))).noise == pytest.approx(
        4 * 0.36
    )


def test_the_belief_has_what_is_told_before_any_game() -> None:
    belief = told().belief(told().start())
    assert belief.mean.tolist() == START.tolist()
    assert belief.deviation.tolist() == DISTANCE.tolist()


def test_sigma_follows_from_the_elo_that_a_step_loses() -> None:
    """A pair's expected w by the model of the rule and by the loss agree near equality."""
    h, x, y = 0.3, 0.02, 0.05  # plus and minus at y +- x, the optimum at 0
    elo = -h * (y + x) ** 2 + h * (y - x) ** 2
    assert 2 * x / sigma_of(h) ** 2 * (0 - y) == pytest.approx(
        2 * (2 * score_of_elo(elo) - 1), rel=1e-3
    )


def test_sigma_may_be_told_instead_of_the_elo_of_a_step() -> None:
    both = [create("bspsas", given, problem()) for given in ({"sigma": 4}, {"elo_per_step": 2})]
    assert both[0].prior.sigma == 4  # type: ignore[attr-defined]
    assert both[1].prior.sigma == sigma_of(2)  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="give sigma or elo_per_step, not both"):
        create("bspsas", {"sigma": 4, "elo_per_step": 2}, problem())


def test_what_is_told_may_be_arrays_per_replica_and_parameter() -> None:
    h, s, tau = (np.array([[0.1], [0.4]]) * np.ones(N) for _ in range(3))
    start = np.zeros((2, N))
    both = told(Prior(sigma=sigma_of(h), distance=s, tau=tau[:, :1]), start)
    alone = [told(Prior(sigma=sigma_of(x), distance=x, tau=x), np.zeros(N)) for x in (0.1, 0.4)]
    asked = both.ask(both.start(), 1, generator())
    result = outcome(asked, np.tile([1, 2, 3, 4, 5], (2, 1)))
    state, _ = both.tell(both.start(), result)
    for r, one in enumerate(alone):
        own = replace(
            result,
            centre=np.zeros(N),
            difference=result.difference[r],
            pentanomial=result.pentanomial[r],
        )
        single, _ = one.tell(one.start(), own)
        assert single.mean == pytest.approx(state.mean[r])
        assert single.variance == pytest.approx(state.variance[r])


def test_with_the_truth_told_theta_comes_as_close_as_was_believed() -> None:
    """200 engines drawn from the prior: errors over believed deviations have variance 1."""
    rng, h, s = generator(11), 1.0, 0.8
    start = np.zeros((200, N))
    engine = Quadratic(optimum=rng.normal(0, s, start.shape), curvature=np.full(N, h))
    rule = told(Prior(sigma=sigma_of(h), distance=s), start)
    simulated_run = SimulatedRun(
        problem=rule.problem, engine=engine, games=SimulatedGames(draw_rate=0.6)
    )
    belief = rule.belief(final(simulated_run, rule, rng))
    z = (engine.optimum - belief.mean) / belief.deviation
    assert np.mean(belief.deviation) < 0.5 * s
    assert 0.9 < np.mean(z**2) < 1.3
