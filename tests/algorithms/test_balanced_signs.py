"""Balanced signs: orthogonal over a block, fair, repeated in time, functions of seed and k."""

import numpy as np
import pytest

from spsa.algorithms.balanced_signs import balanced_signs, hadamard

OWN = [k for k in range(1, 2000) if k % 4 != 2]  # iterations that repeat none


def delta(k, shape, *, last=None, seed=5):
    """With one iteration in flight, unless `last` is given."""
    rng = np.random.default_rng(k)
    return balanced_signs(seed, k, k - 1 if last is None else last, shape, rng)


@pytest.mark.parametrize("columns", [*range(1, 70), 100, 250, 1000])
def test_the_rows_of_a_matrix_are_orthogonal(columns):
    matrix = hadamard(columns).astype(int)
    assert len(matrix) >= columns
    assert (np.abs(matrix) == 1).all()
    assert (matrix @ matrix.T == len(matrix) * np.eye(len(matrix))).all()


@pytest.mark.parametrize("n", [1, 4, 7, 12, 20])
def test_any_two_parameters_agree_as_often_as_they_differ_in_every_block(n):
    length = len(hadamard(n))
    for block in range(3):
        ks = OWN[block * length : (block + 1) * length]
        signs = np.array([delta(k, (n,)) for k in ks])
        assert (signs.T @ signs == length * np.eye(n)).all()


def test_independent_runs_in_one_array_have_signs_of_their_own():
    signs = np.array([delta(k, (50, 8)) for k in OWN[:8]])
    assert all((one.T @ one == 8 * np.eye(8)).all() for one in np.moveaxis(signs, 1, 0))
    assert len({one.tobytes() for one in np.moveaxis(signs, 1, 0)}) == 50


@pytest.mark.parametrize("in_flight", [1, 2, 3, 4, 5, 8])
def test_the_second_of_four_repeats_what_the_last_result_was_for(in_flight):
    for k in range(in_flight + 2, 40):
        if k % 4 == 2:
            last = k - in_flight
            own = last - (last % 4 == 2)
            assert (delta(k, (16,), last=last) == delta(own, (16,))).all()


@pytest.mark.parametrize("last", [0, 2, 5, 100])
def test_without_a_result_of_this_run_to_repeat_signs_are_independent(last):
    """Iteration 2 of a run whose first result is missing, or that goes on from another run."""
    signs = balanced_signs(5, 2, last, (16,), np.random.default_rng(9))
    assert (signs == 2 * np.random.default_rng(9).integers(0, 2, size=16) - 1).all()


def test_signs_are_a_function_of_the_seed_and_the_iteration():
    first = delta(3, (16,))
    assert (delta(3, (16,)) == first).all()
    assert (delta(3, (16,), seed=6) != first).any()
    assert (delta(OWN[1 + 16], (16,)) != first).any()  # the same place of the next block
