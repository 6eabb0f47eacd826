"""The terms a game is played under, and what of them an engine says it would obey."""

from spsa.terms.game import (
    Adjudication,
    Book,
    DrawRule,
    ResignRule,
    Terms,
    TimeControl,
    TimeKind,
)
from spsa.terms.numbers import clamped, counted
from spsa.terms.options import Declarations

__all__ = [
    "Adjudication",
    "Book",
    "Declarations",
    "DrawRule",
    "ResignRule",
    "Terms",
    "TimeControl",
    "TimeKind",
    "clamped",
    "counted",
]
