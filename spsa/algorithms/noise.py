"""tau^2, the variance of the result w of a game pair, estimated from the games so far.

For a draw rate d and balanced openings it is 2 (1 - d). The prior is 0.8, with the weight of 50
pairs.
"""

from spsa.algorithms.rule import Vector

_PAIRS, _SQUARES = 50.0, 40.0


def tau2(squares: Vector, pairs: Vector) -> Vector:
    """The variance of w, shape (1,), from the sum of w^2 over `pairs`, shape (1,) each."""
    return (_SQUARES + squares) / (_PAIRS + pairs)
