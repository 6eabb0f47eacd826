"""Real workers for an iteration of scripted engines: two batches of four games, all won by plus."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from asking import Store
from builders import NODES, Stage, published, stage
from console import Running, worker
from engines.faulty import LOSER, WINNER, engine, start_book

from spsa.core.game_settings import Book, GameSettings, TimeControl

NO_SWITCHES: Mapping[str, object] = {}
UNHURRIED = TimeControl(low=30.0, high=30.0)
"""Its engines move at once, however long they may think."""


def open_scripted(
    staged: Stage,
    folder: Path,
    plus: Mapping[str, object] = NO_SWITCHES,
    minus: Mapping[str, object] = NO_SWITCHES,
    settings: Mapping[str, Any] = NO_SWITCHES,
    **over: object,
) -> int:
    """Open an iteration of scripted engines with these switches, under these game settings."""
    usual = {"time_control": NODES, "book": Book(name=str(start_book(folder)))}
    return staged.open(
        plus=published(engine(folder, "plus", **{"moves": WINNER} | dict(plus))),
        minus=published(engine(folder, "minus", **{"moves": LOSER} | dict(minus))),
        plus_options={},
        minus_options={},
        game_settings=GameSettings(**usual | dict(settings)),
        **over,
    )


def opened(
    store: Store,
    folder: Path,
    time_control: TimeControl,
    plus: Mapping[str, object] = NO_SWITCHES,
    minus: Mapping[str, object] = NO_SWITCHES,
) -> Stage:
    """A run with such an iteration."""
    staged = stage(store)
    open_scripted(staged, folder, plus, minus, {"time_control": time_control})
    return staged


class OneIteration:
    """A database with an open iteration, and worker processes on it."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.folder = url, folder

    def open(self, time_control: TimeControl, **minus: object) -> None:
        with Store(self.url, durable=False) as store:
            opened(store, self.folder, time_control, minus=minus)

    def start(self, *words: object, **variables: str) -> Running:
        cache = self.folder / "cache"
        command = worker("--spsa", "-c", 1, "--engines-cache", cache, *words)
        return Running(command, DATABASE_URL=self.url, **variables)
