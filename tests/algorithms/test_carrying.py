"""What a rule knows, carried to another space: nothing is lost, and doubt widens it."""

from dataclasses import replace

import numpy as np
import pytest
from masters import GAMES, SPACE, parameter

from spsa.algorithms import algorithms
from spsa.algorithms.tuning import PlayedGames, tuning
from spsa.core.params import Space
from spsa.core.scoring import Tally


def rules(space, algorithm):
    return tuning(space, algorithm, {}, iterations=20, pairs=GAMES // 2, seed=3)


def moved(start, results=6):
    """Theta and state of a rule after some results."""
    theta, state = start.start()
    for k in range(1, results + 1):
        asked = start.propose(state, theta, k)
        tally = Tally.of_pair(2, k % 3) + Tally.of_pair(1, 1)
        games = PlayedGames(k=k, a_k=asked.a_k, c_k=asked.c_k, played=asked.played, tally=tally)
        update = start.update(state, theta, games)
        theta, state = dict(update.theta), update.state
    return theta, state


def with_margin(**over):
    first, *rest = SPACE.parameters
    return Space((replace(first, **over), *rest), SPACE.constraints)


@pytest.mark.parametrize("algorithm", algorithms())
def test_nothing_changes_in_an_equal_space_to_the_bit(algorithm):
    before = rules(SPACE, algorithm)
    theta, state = moved(before)
    assert before.on(SPACE).carried(before, state, theta) == (theta, state)


@pytest.mark.parametrize("algorithm", algorithms())
def test_a_step_that_is_changed_and_changed_back_changes_nothing(algorithm):
    before = rules(SPACE, algorithm)
    theta, state = moved(before)
    between = before.on(with_margin(step=16))
    there, its_state = between.carried(before, state, theta)
    assert there == theta
    for name, value in between.estimates(its_state).averaged.items():
        assert value == pytest.approx(before.estimates(state).averaged[name])
    assert before.on(SPACE).carried(between, its_state, there) == (theta, state)


@pytest.mark.parametrize("algorithm", algorithms())
def test_a_frozen_parameter_stays_and_a_thawed_one_starts_from_the_prior(algorithm):
    before = rules(SPACE, algorithm)
    theta, state = moved(before)
    frozen = before.on(with_margin(active=False, value=theta["margin"]))
    there, less = frozen.carried(before, state, theta)
    assert there == theta
    asked = frozen.propose(less, there, 7)
    assert asked.played.plus["margin"] == asked.played.minus["margin"]
    thawed = frozen.on(with_margin(value=theta["margin"]))
    back, more = thawed.carried(frozen, less, there)
    assert back == theta
    was, now = before.estimates(state), thawed.estimates(more)
    assert now.supported["margin"] == pytest.approx(theta["margin"])
    if now.supported_sd is not None:
        assert 0.5 < now.supported_sd["margin"] / before.space.step[0] < 2.0
        assert now.supported_sd["margin"] > was.supported_sd["margin"]
    assert now.supported["ratio"] == pytest.approx(was.supported["ratio"], abs=0.05)


@pytest.mark.parametrize("algorithm", algorithms())
def test_bounds_hold_theta_and_the_next_proposals(algorithm):
    before = rules(SPACE, algorithm)
    theta, state = moved(before)
    after = before.on(with_margin(minimum=80, value=80))
    there, its_state = after.carried(before, state, theta)
    assert there == {**theta, "margin": 80.0}
    asked = after.propose(its_state, there, 7)
    assert min(asked.played.plus["margin"], asked.played.minus["margin"]) >= 80


@pytest.mark.parametrize("algorithm", ["bspsa", "bspsas"])
def test_a_fork_has_theta_and_deviations_between_the_posterior_and_the_prior(algorithm):
    before = rules(SPACE, algorithm)
    theta, state = moved(before)
    values = Space(tuple(replace(p, value=theta[p.name]) for p in SPACE.parameters))
    prior = before.rule.rule.belief(before.rule.rule.start()).deviation
    widths = []
    for doubt in (1.0, 2.0, 1000.0):
        fork = rules(values, algorithm).forked(before, state, doubt)
        there, known = fork.start()
        assert there == pytest.approx(theta)
        loaded = fork.rule.load(known)
        assert fork.rule.theta(loaded) == pytest.approx(values.steps(theta))
        assert loaded.notes.average.count == 0
        widths.append(fork.rule.rule.belief(loaded.rule).deviation)
    posterior = before.rule.rule.belief(before.rule.load(state).rule).deviation
    assert (widths[0] <= widths[1]).all() and (widths[1] <= widths[2] + 1e-9).all()
    assert widths[2] == pytest.approx(prior, rel=0.05)
    assert widths[0] == pytest.approx(posterior)
    narrow, wide = 1 / posterior**2, 1 / prior**2
    assert 1 / widths[1] ** 2 == pytest.approx(wide + (narrow - wide) / 4)


def test_a_fork_may_have_other_parameters():
    before = rules(SPACE, "bspsa")
    _, state = moved(before)
    space = Space((parameter("new", value=7, step=2), *SPACE.parameters[:1]))
    fork = rules(space, "bspsa").forked(before, state, 1.0)
    joint = fork.rule.load(fork.start()[1]).rule
    old = before.rule.load(state).rule
    assert joint.covariance[1, 1] == pytest.approx(old.covariance[0, 0])
    assert joint.covariance[0, 1] == joint.covariance[1, 0] == 0
    assert np.array_equal(joint.covariance, joint.covariance.T)
    assert joint.mean[0] == 3.5
