"""tau^2, the variance of the result w of a game pair, by the games seen so far.

2 (1 - d) for a draw rate d and balanced openings, so 0.8 before the games say otherwise: that
counts for as much as 50 pairs would.
"""

from spsa.algorithms.rule import Vector

_PAIRS, _SQUARES = 50.0, 40.0


def tau2(squares: Vector, pairs: Vector) -> Vector:
    """The variance of w, shape (1,), from the sum of w^2 over so many pairs, shape (1,) each."""
    return (_SQUARES + squares) / (_PAIRS + pairs)
