"""The options of `compete`: what they are called, take and mean."""

from collections.abc import Callable
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

import click

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


FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_SECONDS = _Finite(min=0, min_open=True)
_COUNT = click.IntRange(min=1)

SHARED = (
    click.option(
        "-c",
        "--concurrency",
        type=_COUNT,
        help="Games at a time.  [default: one a physical core]",
    ),
    click.option("--force", is_flag=True, help="Allow more games at a time than cores."),
    click.option("--pin", is_flag=True, help="Keep each slot's engines on one core of their own."),
    click.option(
        "--engine-memory",
        type=_COUNT,
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
        type=click.Path(dir_okay=False, path_type=Path),
        help="A file that holds its URL and nothing else.  [env: DATABASE_URL_FILE]",
    ),
    click.option("--name", help="Name of this worker.  [default: host-pid-random]"),
    click.option("--once", is_flag=True, help="Leave when no work is left; 3 if there was none."),
    click.option("--idle-timeout", type=_SECONDS, help="Leave after so many seconds without work."),
    click.option("--max-batches", type=_COUNT, help="Leave after so many batches."),
    click.option(
        "--drain",
        type=_Finite(min=0),
        default=60.0,
        show_default=True,
        help="Seconds that games in play may go on after the first Ctrl-C.",
    ),
    click.option(
        "--lease",
        type=_Finite(min=1),
        default=60.0,
        show_default=True,
        help="Seconds until a batch goes to others when this box falls silent.",
    ),
    click.option(
        "--engines-cache",
        type=click.Path(file_okay=False, path_type=Path),
        help="Folder for engines.  [default: the user's cache]",
    ),
    click.option(
        "--trust-key",
        metavar="KEY",
        help="Run only what the owner of this key signed: base64, or its .pub file.",
    ),
)
MATCH = (
    click.option("--games", type=click.IntRange(min=2), help="Games of a match; an even number."),
    click.option("--movetime", type=_SECONDS, help="Seconds a move.  [default: 0.1]"),
    click.option(
        "--tc",
        metavar="[MOVES/]BASE+INC",
        help="Seconds a game, or for so many moves, and seconds a move, as in 10+0.1.",
    ),
    click.option(
        "--margin",
        type=_Finite(min=0),
        default=0.05,
        show_default=True,
        help="Seconds by which a clock may be overstepped.",
    ),
    click.option("--nodes", type=_COUNT, help="Nodes a move."),
    click.option("--depth", type=_COUNT, help="Plies of depth a move."),
    click.option("--book", default="builtin", show_default=True, help="EPD, FEN or PGN file."),
    click.option("--plies", type=_COUNT, help="Plies of each game of a PGN book.  [default: all]"),
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
    click.option("--seed", default=1, show_default=True, help="Decides openings and their order."),
    click.option("--option", multiple=True, metavar="NAME=VALUE", help="Option for both engines."),
    click.option("--option1", multiple=True, metavar="NAME=VALUE", help="... for the first."),
    click.option("--option2", multiple=True, metavar="NAME=VALUE", help="... for the second."),
    click.option(
        "--draw",
        type=(int, int, int),
        default=(34, 8, 20),
        show_default=True,
        metavar="MOVE COUNT CP",
        help="Draw from move MOVE after COUNT moves a side within CP centipawns.",
    ),
    click.option(
        "--resign",
        type=(int, int),
        default=(3, 600),
        show_default=True,
        metavar="COUNT CP",
        help="Resign after COUNT moves a side on which both see CP centipawns.",
    ),
    click.option("--max-moves", type=_COUNT, help="Then a draw.  [default: 200]"),
    click.option(
        "--no-adjudication",
        is_flag=True,
        help="Play by the rules of chess alone, and by --max-moves where that is given.",
    ),
    click.option(
        "--sprt",
        type=(float, float),
        metavar="ELO0 ELO1",
        help="End when a test of these, in normalised Elo, is decided (5 % errors).",
    ),
    click.option("--pgn", type=click.Path(dir_okay=False, path_type=Path), help="Append games."),
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
