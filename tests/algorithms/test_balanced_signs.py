"""Balanced signs: orthogonal over a block, fair in every place, and functions of seed and k."""

import numpy as np
import pytest

from spsa.algorithms.balanced_signs import balanced_signs, hadamard

ORDERS = {1: 1, 2: 2, 3: 4, 5: 8, 9: 12, 13: 16, 16: 16, 17: 20, 21: 24, 25: 32, 33: 40, 100: 104}


@pytest.mark.parametrize("columns", [*range(1, 70), 100, 250, 1000])
def test_the_rows_of_a_matrix_are_orthogonal(columns: int) -> None:
    matrix = hadamard(columns).astype(int)
    assert len(matrix) >= columns
    assert (np.abs(matrix) == 1).all()
    assert (matrix @ matrix.T == len(matrix) * np.eye(len(matrix))).all()


def test_blocks_are_as_short_as_the_known_matrices_allow() -> None:
    assert {n: len(hadamard(n)) for n in ORDERS} == ORDERS


@pytest.mark.parametrize("n", [1, 4, 7, 12, 20])
def test_any_two_parameters_agree_as_often_as_they_differ_in_every_block(n: int) -> None:
    length = len(hadamard(n))
    for block in range(3):
        ks = range(1 + block * length, 1 + (block + 1) * length)
        delta = np.array([balanced_signs(5, k, (n,)) for k in ks])
        assert (delta.T @ delta == length * np.eye(n)).all()


def test_independent_runs_in_one_array_have_signs_of_their_own() -> None:
    delta = np.array([balanced_signs(5, k, (50, 8)) for k in range(1, 9)])
    assert all((one.T @ one == 8 * np.eye(8)).all() for one in np.moveaxis(delta, 1, 0))
    assert len({one.tobytes() for one in np.moveaxis(delta, 1, 0)}) == 50


def test_signs_are_a_function_of_the_seed_and_the_iteration() -> None:
    first = balanced_signs(5, 3, (16,))
    assert (balanced_signs(5, 3, (16,)) == first).all()
    assert (balanced_signs(6, 3, (16,)) != first).any()
    assert (balanced_signs(5, 19, (16,)) != first).any()  # the same row of the next block


def test_every_sign_is_fair_and_pairs_of_iterations_are_no_pattern() -> None:
    delta = np.array([balanced_signs(seed, 1, (5,)) for seed in range(2000)])
    assert np.abs(delta.mean(axis=0)).max() < 4 / 2000**0.5
    both = np.array([balanced_signs(seed, 2, (5,)) for seed in range(2000)]) * delta
    assert np.abs(both.mean(axis=0)).max() < 4 / 2000**0.5
