"""The options of `compete`: what they are called, take and mean."""

import os
from collections.abc import Callable
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

import click

from spsa.core.game_settings.limits import (
    MOST_CENTIPAWNS,
    MOST_DEPTH_TO_SEARCH,
    MOST_IN_A_ROW,
    MOST_MOVES,
    MOST_NELO,
    MOST_NODES_TO_SEARCH,
    MOST_PLIES,
    MOST_SECONDS,
)
from spsa.text import NAME_LENGTH, is_printable, printable

Command = TypeVar("Command", bound=Callable[..., Any])


class _Finite(click.FloatRange):
    """A range without inf and nan, which click's own lets through."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number = float(super().convert(value, param, ctx))
        if not isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


class _Path(click.Path):
    """A path that this system can have; click's own takes one of 5,000 characters."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            os.lstat(value)
        except FileNotFoundError:
            pass  # click refuses it where it has to be there
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            self.fail(f"'{printable(str(value), 80)}': {reason}.", param, ctx)
        return super().convert(value, param, ctx)


def _name(_context: click.Context, option: click.Parameter, text: str | None) -> str | None:
    """What a column and a line of a report have room for."""
    if text is not None and not is_printable(text, NAME_LENGTH):
        said = printable(text, 80)
        raise click.BadParameter(
            f"'{said}' is not a text of 1 to {NAME_LENGTH} printable characters", param=option
        )
    return text


FILE = _Path(exists=True, dir_okay=False, path_type=Path)
_YEAR = 366 * 86_400.0
_LONGEST_LEASE = 86_400.0  # the database refuses a longer one
_MOST_SLOTS = 4_096
_MOST_MEMORY = 2**24  # mebibytes; as bytes it fits what setrlimit takes
_MOST = 10**9
_SECONDS = _Finite(min=0, min_open=True, max=MOST_SECONDS)
_COUNT = click.IntRange(1, _MOST)
_MOVES = click.IntRange(1, MOST_MOVES)
_IN_A_ROW = click.IntRange(1, MOST_IN_A_ROW)
_NELO = _Finite(min=-MOST_NELO, max=MOST_NELO)
_SEED = click.IntRange(-(2**63), 2**63 - 1)

SHARED = (
    click.option(
        "-c",
        "--concurrency",
        type=click.IntRange(1, _MOST_SLOTS),
        help="Games at a time.  [default: one a physical core]",
    ),
    click.option("--force", is_flag=True, help="Allow more games at a time than cores."),
    click.option("--pin", is_flag=True, help="Keep each slot's engines on one core of their own."),
    click.option(
        "--engine-memory",
        type=click.IntRange(1, _MOST_MEMORY),
        metavar="MIB",
        help="Memory of one engine.  [default: its share of the box's]",
    ),
    click.option(
        "--no-sandbox", is_flag=True, help="Let engines have the network, and their user's rights."
    ),
    click.option("-v", "--verbose", is_flag=True, help="Say more on stderr."),
    click.option("--log-format", type=click.Choice(["text", "json"]), default="text"),
)
WORKER = (
    click.option("--spsa", is_flag=True, help="Play for the runs of a database."),
    click.option("--database-url", help="Database.  [env: DATABASE_URL; else config.toml]"),
    click.option(
        "--database-url-file",
        type=_Path(dir_okay=False, path_type=Path),
        help="A file that holds its URL and nothing else.  [env: DATABASE_URL_FILE]",
    ),
    click.option("--name", callback=_name, help="Name of this worker.  [default: host-pid-random]"),
    click.option("--once", is_flag=True, help="Leave when no work is left; 3 if there was none."),
    click.option(
        "--idle-timeout",
        type=_Finite(min=0, min_open=True, max=_YEAR),
        help="Leave after so many seconds without work.",
    ),
    click.option("--max-batches", type=_COUNT, help="Leave after so many batches."),
    click.option(
        "--drain",
        type=_Finite(min=0, max=_YEAR),
        default=60.0,
        show_default=True,
        help="Seconds that games in play may go on after the first Ctrl-C.",
    ),
    click.option(
        "--lease",
        type=_Finite(min=1, max=_LONGEST_LEASE),
        default=60.0,
        show_default=True,
        help="Seconds until a batch goes to others when this box falls silent.",
    ),
    click.option(
        "--engines-cache",
        type=_Path(file_okay=False, path_type=Path),
        help="Folder for engines.  [default: the user's cache]",
    ),
    click.option(
        "--trust-key",
        metavar="KEY",
        help="Run only what the owner of this key signed: base64, or its .pub file.",
    ),
)
MATCH = (
    click.option(
        "--games", type=click.IntRange(2, _MOST), help="Games of a match; an even number."
    ),
    click.option("--movetime", type=_SECONDS, help="Seconds a move.  [default: 0.1]"),
    click.option(
        "--tc",
        metavar="[MOVES/]BASE+INC",
        help="Seconds a game, or for so many moves, and seconds a move, as in 10+0.1.",
    ),
    click.option(
        "--margin",
        type=_Finite(min=0, max=MOST_SECONDS),
        default=0.05,
        show_default=True,
        help="Seconds by which a clock may be overstepped.",
    ),
    click.option("--nodes", type=click.IntRange(1, MOST_NODES_TO_SEARCH), help="Nodes a move."),
    click.option(
        "--depth", type=click.IntRange(1, MOST_DEPTH_TO_SEARCH), help="Plies of depth a move."
    ),
    click.option("--book", default="builtin", show_default=True, help="EPD, FEN or PGN file."),
    click.option(
        "--plies",
        type=click.IntRange(1, MOST_PLIES),
        help="Plies of each game of a PGN book.  [default: all]",
    ),
    click.option(
        "--order",
        type=click.Choice(["random", "sequential"]),
        default="random",
        show_default=True,
        help="Of the openings; random is by --seed.",
    ),
    click.option(
        "--start", type=_COUNT, default=1, show_default=True, help="Place of the first opening."
    ),
    click.option(
        "--seed", type=_SEED, default=1, show_default=True, help="Decides openings and their order."
    ),
    click.option("--option", multiple=True, metavar="NAME=VALUE", help="Option for both engines."),
    click.option("--option1", multiple=True, metavar="NAME=VALUE", help="... for the first."),
    click.option("--option2", multiple=True, metavar="NAME=VALUE", help="... for the second."),
    click.option(
        "--draw",
        type=(click.IntRange(0, MOST_MOVES), _IN_A_ROW, click.IntRange(0, MOST_CENTIPAWNS)),
        default=(34, 8, 20),
        show_default=True,
        metavar="MOVE COUNT CP",
        help="Draw from move MOVE after COUNT moves a side within CP centipawns.",
    ),
    click.option(
        "--resign",
        type=(_IN_A_ROW, click.IntRange(1, MOST_CENTIPAWNS)),
        default=(3, 600),
        show_default=True,
        metavar="COUNT CP",
        help="Resign after COUNT moves a side on which both see CP centipawns.",
    ),
    click.option("--max-moves", type=_MOVES, help="Then a draw.  [default: 200]"),
    click.option(
        "--no-adjudication",
        is_flag=True,
        help="Play by the rules of chess alone, and by --max-moves where that is given.",
    ),
    click.option(
        "--sprt",
        type=(_NELO, _NELO),
        metavar="ELO0 ELO1",
        help="End when a test of these, in normalised Elo, is decided (5 % errors).",
    ),
    click.option("--pgn", type=_Path(dir_okay=False, path_type=Path), help="Append games."),
    click.option("--json", "as_json", is_flag=True, help="The final report as JSON."),
    click.option("--progress", type=_COUNT, default=10, show_default=True, help="Pairs a line."),
)


def options(*groups: tuple[Callable[[Command], Command], ...]) -> Callable[[Command], Command]:
    """A command that takes these, in this order."""

    def decorate(command: Command) -> Command:
        for option in reversed([option for group in groups for option in group]):
            command = option(command)
        return command

    return decorate
