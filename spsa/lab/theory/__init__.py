"""The theory of SPSA with constant gains: the final precision, and the games it takes."""

from spsa.lab.theory.design import (
    FORGOTTEN,
    Approach,
    GainDesign,
    Goal,
    Landscape,
    cautious,
    direct,
    fastest,
    guessed_loss,
    time_needed,
)
from spsa.lab.theory.process import (
    ConstantGainProcess,
    Modes,
    at_once,
    in_turn,
    modes,
    noise_of_game,
)
from spsa.lab.theory.squares import SumOfSquares

__all__ = [
    "FORGOTTEN",
    "Approach",
    "ConstantGainProcess",
    "GainDesign",
    "Goal",
    "Landscape",
    "Modes",
    "SumOfSquares",
    "at_once",
    "cautious",
    "direct",
    "fastest",
    "guessed_loss",
    "in_turn",
    "modes",
    "noise_of_game",
    "time_needed",
]
