"""Elo of a score, as the models of tests need it."""

from math import tanh

from spsa.core.scoring import ELO_PER_SCORE


def score_of_elo(elo: float) -> float:
    """The expected score, 0..1, of a player who is `elo` stronger."""
    return (1 + tanh(elo / ELO_PER_SCORE)) / 2
