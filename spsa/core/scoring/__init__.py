"""Tallies of game pairs, Elo with its error, and sequential tests.

All counts are from plus's side; `-tally` has those from the other side. No numpy, because a worker
starts without it.
"""

from spsa.core.scoring.elo import (
    ELO_PER_SCORE,
    NO_PAIRS,
    PRIOR_VARIANCE,
    PRIOR_WEIGHT,
    Estimate,
    Pentanomial,
    Tally,
    elo,
    elo_of_score,
    los,
    nelo,
    null_error,
    null_variance,
    pair_variance,
    score,
    score_of_elo,
    standard_error,
)
from spsa.core.scoring.sprt import Model, Sprt, sprt

__all__ = [
    "ELO_PER_SCORE",
    "NO_PAIRS",
    "PRIOR_VARIANCE",
    "PRIOR_WEIGHT",
    "Estimate",
    "Model",
    "Pentanomial",
    "Sprt",
    "Tally",
    "elo",
    "elo_of_score",
    "los",
    "nelo",
    "null_error",
    "null_variance",
    "pair_variance",
    "score",
    "score_of_elo",
    "sprt",
    "standard_error",
]
