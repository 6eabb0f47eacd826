"""The Elo of an outcome: `spsa.core.scoring` for arrays of pentanomials."""

import numpy as np
import numpy.typing as npt

from spsa.algorithms.rule import Outcome, RuleUpdate, Vector
from spsa.core.scoring import ELO_PER_SCORE, PRIOR_VARIANCE, PRIOR_WEIGHT


def elo(outcome: Outcome) -> Vector:
    """Elo of plus over minus, shape (1,); 0 without games, and finite at a score of 0 or 1."""
    pairs = np.maximum(outcome.pairs, 1.0)
    most = 1 - 1 / (4 * pairs)
    inner = np.minimum(np.maximum(outcome.result / (2 * pairs), -most), most)
    found: Vector = np.arctanh(inner) * ELO_PER_SCORE
    return found


def null_error(outcome: Outcome) -> Vector:
    """The standard deviation of `elo` between equal players, shape (1,)."""
    pairs = np.maximum(outcome.pairs, 1.0)
    variance = (PRIOR_WEIGHT * PRIOR_VARIANCE + outcome.squares) / (PRIOR_WEIGHT + outcome.pairs)
    return ELO_PER_SCORE * np.sqrt(variance / pairs) / 2


def bounded_elo(outcome: Outcome, bound: float) -> tuple[Vector, npt.NDArray[np.bool_]]:
    """Elo limited to `bound` standard errors from 0, and whether that changed it; shape (1,) each.

    The error is that of equal players, because the error of a one-sided tally would be too small.
    """
    found = elo(outcome)
    limit = bound * null_error(outcome)
    return np.clip(found, -limit, limit), np.abs(found) > limit


def inverse(difference: Vector, wanted: float | Vector) -> Vector:
    """1 / difference, but at most about 1 / wanted, and 0 where there is no difference.

    Otherwise a difference that bounds or constraints have shortened would magnify the noise.
    """
    return difference / np.maximum(difference**2, wanted**2)


def reported(outcome: Outcome) -> RuleUpdate:
    """The update of a rule that uses results directly, not their Elo."""
    found = elo(outcome)
    return RuleUpdate(
        gradient=found * inverse(outcome.difference, 2 * outcome.c_k),
        elo=found,
        bounded=np.zeros_like(found, dtype=np.bool_),
    )


_PAIRS, _SQUARES = 50.0, 40.0


def tau2(squares: Vector, pairs: Vector) -> Vector:
    """The variance of w, shape (1,), from the sum of w^2 over `pairs`, shape (1,) each."""
    return (_SQUARES + squares) / (_PAIRS + pairs)
