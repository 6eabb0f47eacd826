"""What a rule knows, carried to another space: nothing is lost, and doubt widens it."""

from dataclasses import replace

import numpy as np
import pytest
from builders import parameter
from masters import GAMES, SPACE

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
        assert loaded.average.count == 0
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
