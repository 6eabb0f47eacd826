"""Random directions."""

import numpy as np

from spsa.algorithms.rule import Vector


def signs(rng: np.random.Generator, shape: tuple[int, ...]) -> Vector:
    """delta: independent fair +1 and -1."""
    return (2 * rng.integers(0, 2, size=shape) - 1).astype(np.float64)
