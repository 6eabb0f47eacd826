"""Matches: their engines, book and folder, and their outcome."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benches.runner.contenders import FIRST, SECOND, Contender, Limit, Plan
from benches.runner.games import Games, read
from benches.runner.measuring import Used, run
from spsa.core.game_settings import Book
from spsa.openings.book import load


@dataclass(frozen=True, slots=True)
class Outcome:
    """One match by one runner."""

    used: Used
    games: Games
    pgn: Path

    @property
    def games_per_hour(self) -> float:
        return self.games.tally.games / self.used.wall * 3600

    @property
    def cpu(self) -> float:
        """Milliseconds of the runner's own CPU in 1,000 moves."""
        return self.used.cpu / self.games.plies * 1e6


@contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="bench-runner-") as name:
        yield Path(name)


def play(contender: Contender, plan: Plan, place: Path) -> Outcome:
    """Play the match; what it writes is in `place`."""
    place.mkdir()
    pgn = place / "games.pgn"
    used = run(contender.command(plan, pgn), place)
    return Outcome(used, read(pgn), pgn)


def plan(
    engines: tuple[Path, Path], place: Path, limit: Limit, pairs: int, concurrency: int
) -> Plan:
    """A match of these engines from the built-in book, both with little hash."""
    return Plan(
        engines=(_named(engines[0], place / FIRST), _named(engines[1], place / SECOND)),
        options=("Hash=4",),
        book=_book(place / "book.epd"),
        limit=limit,
        pairs=pairs,
        concurrency=concurrency,
        max_moves=200,
    )


def _named(engine: Path, link: Path) -> Path:
    if not link.exists():
        link.symlink_to(engine.resolve())
    return link


def _book(path: Path) -> Path:
    """The built-in openings as FEN lines, which every contender reads."""
    openings = load(Book()).openings
    path.write_text("".join(f"{opening.fen}\n" for opening in openings), encoding="utf-8")
    return path
