"""Game settings: time control, adjudication, book; and the options that engines declare."""

from spsa.core.game_settings.game import (
    Adjudication,
    Book,
    DrawRule,
    EngineFile,
    GameSettings,
    ResignRule,
    Scale,
    TablebaseRule,
    TimeControl,
    TimeKind,
)
from spsa.core.game_settings.numbers import clamped, counted
from spsa.core.game_settings.options import Declarations

__all__ = [
    "Adjudication",
    "Book",
    "Declarations",
    "DrawRule",
    "EngineFile",
    "GameSettings",
    "ResignRule",
    "Scale",
    "TablebaseRule",
    "TimeControl",
    "TimeKind",
    "clamped",
    "counted",
]
