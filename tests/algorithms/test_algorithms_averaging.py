"""The running average beside the sums that it stands for."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spsa.algorithms import Vector
from spsa.algorithms.observing import Average
from spsa.errors import UnusableState

unhurried = settings(deadline=None)  # the machine may be busy with games
walks = st.lists(st.lists(st.floats(-50, 50), min_size=2, max_size=2), min_size=1, max_size=30)


def averaged(thetas: Vector) -> Average:
    """The average over the first axis of thetas."""
    average = Average.of_nothing(thetas[0])
    for theta in thetas:
        average = average.with_next(theta)
    return average


def weights(count: int) -> Vector:
    """What each theta weighs in the end: s (s + 1) (s + 2), the discrete s^3."""
    s = np.arange(1.0, count + 1)
    rising: Vector = s * (s + 1) * (s + 2)
    return rising / rising.sum()


@unhurried
@given(walks)
def test_it_is_the_weighted_mean_and_deviation_of_all_thetas(walk: list[list[float]]) -> None:
    thetas = np.array(walk)
    found = averaged(thetas)
    share = weights(len(thetas))[:, None]
    mean = (share * thetas).sum(axis=0)
    variance = (share * (thetas - mean) ** 2).sum(axis=0)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.variance, variance, rtol=1e-6, atol=1e-6)


def test_the_last_half_has_nearly_all_of_the_weight() -> None:
    steps = np.repeat([0.0, 1.0], 500)[:, None]
    assert averaged(steps).mean == pytest.approx(1 - 0.5**4, abs=0.005)
    late = np.repeat([0.0, 1.0], [900, 100])[:, None]
    assert averaged(late).mean == pytest.approx(1 - 0.9**4, abs=0.005)


def test_fewer_than_two_thetas_have_no_spread() -> None:
    nothing = Average.of_nothing(np.zeros(2))
    assert nothing.spread is None
    assert nothing.with_next(np.ones(2)).spread is None
    spread = nothing.with_next(np.ones(2)).with_next(np.ones(2)).spread
    assert spread is not None
    assert (spread.mean.tolist(), spread.deviation.tolist()) == ([1, 1], [0, 0])


def test_replicas_are_independent() -> None:
    thetas = np.random.default_rng(3).normal(size=(20, 4, 3))
    together = averaged(thetas)
    for replica in range(4):
        alone = averaged(thetas[:, replica])
        assert together.mean[replica].tolist() == alone.mean.tolist()
        assert together.variance[replica].tolist() == alone.variance.tolist()


def test_it_survives_a_database_to_the_bit() -> None:
    thetas = np.random.default_rng(4).normal(size=(9, 3))
    average = averaged(thetas[:5])
    data = json.loads(json.dumps(average.dump()))
    again = Average.load(data, thetas[0])
    for theta in thetas[5:]:
        average, again = average.with_next(theta), again.with_next(theta)
    assert again.count == average.count == 9
    assert again.mean.tobytes() == average.mean.tobytes()
    assert again.variance.tobytes() == average.variance.tobytes()


@pytest.mark.parametrize("broken", [{}, {"count": "many"}, {"mean": [1.0]}, {"variance": None}])
def test_what_is_no_average_of_such_thetas_is_refused(broken: dict[str, object]) -> None:
    sound = averaged(np.ones((2, 3))).dump()
    with pytest.raises(UnusableState, match="average"):
        Average.load({**sound, **broken} if broken else {}, np.ones(3))
