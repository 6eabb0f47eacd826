"""Directions of perturbations."""

import numpy as np

from spsa.algorithms.rule import Vector


def signs(rng: np.random.Generator, shape: tuple[int, ...]) -> Vector:
    """delta: independent fair +1 and -1."""
    return (2 * rng.integers(0, 2, size=shape) - 1).astype(np.float64)


def unit(i: int, shape: tuple[int, ...]) -> Vector:
    """e_j, j = i mod n: one parameter after the other, by 1."""
    direction = np.zeros(shape)
    direction[..., i % shape[-1]] = 1.0
    return direction
