"""`spsa-master book make`: openings for an engine, chosen by its own scores."""

import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from math import sqrt
from pathlib import Path
from typing import Any

import click

from spsa.builds.searches import Searcher, searcher
from spsa.cli.common import FileInFolder, config_option, settings
from spsa.cli.held_run import interruptible
from spsa.cli.trial import Player, short_match
from spsa.cli.validate import limit
from spsa.config import Config
from spsa.core.game_settings import Book, GameSettings, TimeControl
from spsa.core.game_settings.numbers import MAX_CENTIPAWNS, MAX_PLIES
from spsa.errors import NothingToDo
from spsa.files import write_whole
from spsa.live_display import Bar, counting, working
from spsa.master.book_making import (
    Candidates,
    GivenOpenings,
    RandomLines,
    ScoredOpening,
    Window,
    chosen,
)
from spsa.master.delivery_setup import temporary_delivery
from spsa.master.start import checked_space
from spsa.openings.book import load
from spsa.output import echo, echo_json
from spsa.report.text import plural

WINDOWS = {"balanced": (0, 30), "unbalanced": (50, 150)}

_CENTIPAWNS = click.IntRange(0, MAX_CENTIPAWNS)
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_SHORTER = 20  # the searches that make a line have so many nodes less


@dataclass(frozen=True, slots=True, kw_only=True)
class _Engine:
    """The engine that a book is for, and how its games are played."""

    player: Player
    game_settings: GameSettings

    def searcher(self) -> AbstractContextManager[Searcher]:
        command = [self.player.path, *self.game_settings.engine_arguments]
        return searcher(command, {**self.game_settings.common_options, **self.player.options})


def _epd(_context: click.Context, _option: click.Parameter, out: Path) -> Path:
    if out.suffix.lower() == ".pgn":
        raise click.BadParameter("a book is written as EPD, and a name in .pgn is read as PGN")
    return out


@click.group()
def book() -> None:
    """Make a book of openings for your engine."""


@book.command()
@click.argument("out", type=FileInFolder(), callback=_epd)
@config_option
@click.option(
    "--engine",
    type=_FILE,
    help="Score and play with this binary; default: config.toml's engine at its start values.",
)
@click.option(
    "--limit",
    "games_limit",
    callback=limit,
    metavar="TIMECONTROL",
    help="Of the games, as nodes=5000 or 10+0.1; default: [time_control]. --engine needs it.",
)
@click.option(
    "--kind",
    type=click.Choice(list(WINDOWS)),
    default="unbalanced",
    show_default=True,
    help="Scores within 30 centipawns, or from 50 to 150 for either side.",
)
@click.option(
    "--window",
    type=(_CENTIPAWNS, _CENTIPAWNS),
    metavar="LOW HIGH",
    help="Other limits of the score, in centipawns for either side.",
)
@click.option(
    "--size", type=click.IntRange(1, 100_000), default=1000, show_default=True, help="Openings."
)
@click.option(
    "--from",
    "source",
    type=_FILE,
    help="Choose from this EPD, FEN or PGN file; default: random lines from the start position.",
)
@click.option(
    "--plies",
    type=click.IntRange(1, MAX_PLIES),
    help="Of a random line (default 8), or of each game of a PGN file (default: all).",
)
@click.option(
    "--slack",
    type=_CENTIPAWNS,
    default=60,
    show_default=True,
    help="Centipawns that a move of a random line may lose, by a short search.",
)
@click.option(
    "--nodes",
    type=click.IntRange(1, 10_000_000),
    default=20_000,
    show_default=True,
    help="Of the search that scores a position.",
)
@click.option(
    "--games",
    type=click.IntRange(0, 10_000),
    default=100,
    show_default=True,
    help="Games of the engine with itself that measure the draw rate.",
)
@click.option(
    "--minutes",
    type=click.FloatRange(0.0, 10_000.0, min_open=True),
    default=20.0,
    show_default=True,
    help="Search no longer; the book is smaller where that is too short.",
)
@click.option(
    "-c", "--concurrency", type=click.IntRange(1, 1000), help="Engines at a time; default: cores."
)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
def make(out: Path, **given: Any) -> None:
    """Write openings that the engine scores as wanted to OUT, as EPD.

    The engine then plays a few games with itself from them, which measure their draw rate. Equal
    engines, options and seeds make equal books, unless --minutes ends the search.
    """
    config = None if given["engine"] is not None else _without_book(given["config"])
    window, game_settings = _window(given), _game_settings(given, config)
    candidates = _candidates(given, chess960=game_settings.book.chess960)
    slots = given["concurrency"] or os.cpu_count() or 1
    with interruptible() as stopping, _engine(config, game_settings, given["engine"]) as engine:
        openings, tried = _chosen(engine, candidates, window, given, slots, stopping)
        if not openings:
            raise NothingToDo(
                f"none of {plural(tried, 'position')} scores from {window.low} to "
                f"{window.high} centipawns: use a wider --window, more --slack or --minutes"
            )
        text = "".join(f"{opening.epd}\n" for opening in openings).encode()
        write_whole(out, text)
        match = _match(engine, out, given["games"], slots, stopping)
    about = {"book": str(out), "sha256": sha256(text).hexdigest(), "openings": len(openings)}
    about |= {"tried": tried, "window": [window.low, window.high]}
    told = {**about, "limit": str(game_settings.time_control), **_draws(match)}
    if given["as_json"]:
        echo_json(told)
    else:
        echo(*_lines(told, given["size"]))


def _without_book(path: str | None) -> Config:
    """config.toml, whose book may be the one that is to be made."""
    config = settings(path, None)
    book = Book(chess960=config.game_settings.book.chess960)
    return replace(config, game_settings=replace(config.game_settings, book=book))


def _window(given: Mapping[str, Any]) -> Window:
    low, high = given["window"] or WINDOWS[given["kind"]]
    if low <= high:
        return Window(low=low, high=high, nodes=given["nodes"])
    raise click.BadParameter(f"{low} is more than {high}", param_hint="--window")


def _game_settings(given: Mapping[str, Any], config: Config | None) -> GameSettings:
    control: TimeControl | None = given["games_limit"]
    if config is not None:
        return (
            config.game_settings
            if control is None
            else replace(config.game_settings, time_control=control)
        )
    if control is None and given["games"]:
        raise click.UsageError("--engine needs --limit, as in nodes=5000, or --games 0")
    return GameSettings(time_control=control or TimeControl(low=0.1, high=0.1))


def _candidates(given: Mapping[str, Any], *, chess960: bool) -> Candidates:
    """Raises InvalidInput for a file with faults, before anything is searched."""
    seed, source, plies = given["seed"], given["source"], given["plies"]
    if source is not None:
        openings = load(Book(name=str(source), plies=plies, chess960=chess960)).openings
        return GivenOpenings(openings, seed)
    lines = {"plies": plies or 8, "slack": given["slack"], "seed": seed}
    return RandomLines(**lines, nodes=max(1, given["nodes"] // _SHORTER), chess960=chess960)


@contextmanager
def _engine(
    config: Config | None, game_settings: GameSettings, own: Path | None
) -> Iterator[_Engine]:
    """The engine of --engine (`own`), or that of config.toml at the start of theta."""
    if config is None:
        yield _Engine(
            player=Player(path=str(own and own.resolve()), options={}), game_settings=game_settings
        )
        return
    space = checked_space(config)
    with temporary_delivery(config, space) as delivery:
        start = space.rounded(space.start())
        with working("building the engine"):
            sides = delivery.prepare(start, start)
        yield _Engine(
            player=Player(path=sides.plus.path, options=sides.plus_options),
            game_settings=game_settings,
        )


def _chosen(
    engine: _Engine,
    candidates: Candidates,
    window: Window,
    given: Mapping[str, Any],
    slots: int,
    stopping: threading.Event,
) -> tuple[list[ScoredOpening], int]:
    """The openings and how many candidates were tried, until the book is full or time is up."""
    openings: list[ScoredOpening] = []
    size, end, tried = given["size"], time.monotonic() + 60 * given["minutes"], 0
    with ExitStack() as stack:
        advance = stack.enter_context(counting(Bar("openings", size)))
        searchers = [stack.enter_context(engine.searcher()) for _ in range(slots)]
        results = stack.enter_context(closing(chosen(candidates, window, searchers)))
        for opening in results:
            tried += 1
            if opening is not None:
                openings.append(opening)
                advance(1)
            if stopping.is_set():
                raise click.Abort
            if len(openings) == size or time.monotonic() >= end:
                break
    return openings, tried


def _match(
    engine: _Engine, out: Path, games: int, slots: int, stopping: threading.Event
) -> dict[str, Any] | None:
    if not games:
        return None
    book = Book(name=str(out.resolve()), chess960=engine.game_settings.book.chess960)
    game_settings = replace(engine.game_settings, book=book)
    both, even = [engine.player] * 2, games + games % 2
    with working(f"playing {plural(even, 'game')}"):
        return short_match(both, game_settings, slots, even, out.parent, stopping)


def _draws(match: Mapping[str, Any] | None) -> dict[str, Any]:
    """The error of the draw rate is 95%, by pairs: at fixed nodes both games of one are alike."""
    if match is None:
        return {"games": 0, "draw_rate": None, "draw_rate_error": None}
    draws, pairs = match["draws"] / match["games"], match["games"] // 2
    cautious = (draws * pairs + 1) / (pairs + 2)  # never 0 or 1, which would have no error
    error = 1.96 * sqrt(cautious * (1 - cautious) / pairs)
    return {"games": match["games"], "draw_rate": draws, "draw_rate_error": error}


def _lines(told: Mapping[str, Any], wanted: int) -> Iterator[str]:
    low, high = told["window"]
    yield (
        f"{told['book']}: {plural(told['openings'], 'opening')} of {told['tried']} positions, "
        f"from {low} to {high} centipawns; SHA-256 {told['sha256']}"
    )
    if told["openings"] < wanted:
        yield f"{wanted} were wanted: there are no more positions, or time is up (--minutes)"
    if told["games"]:
        yield (
            f"draws: {told['draw_rate']:.0%} ± {told['draw_rate_error']:.0%} of "
            f"{told['games']} games at {told['limit']}"
        )
