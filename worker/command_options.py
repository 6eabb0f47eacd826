"""The options of `compete`, with their types, ranges and help."""

import os
from collections.abc import Callable
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

import click

from spsa.builds.requirements import MACHINE_WORDS, WORD
from spsa.core.game_settings import (
    MAX_SECONDS,
)
from spsa.protocol import DEFAULT_LEASE_SECONDS, LEASE_SECONDS, MAX_SLOTS
from spsa.text import NAME_LENGTH, is_printable, printable

Command = TypeVar("Command", bound=Callable[..., Any])


class FiniteRange(click.FloatRange):
    """A range without inf and nan, which click's own accepts."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number = float(super().convert(value, param, ctx))
        if not isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


class FilePath(click.Path):
    """A path that this system accepts; click's own takes one of 5,000 characters."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            os.lstat(value)
        except FileNotFoundError:
            pass  # click refuses it where it has to exist
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            self.fail(f"'{printable(str(value), 80)}': {reason}.", param, ctx)
        return super().convert(value, param, ctx)


def _name(_context: click.Context, option: click.Parameter, text: str | None) -> str | None:
    """A name that fits a column of the database and a line of a report."""
    if text is not None and not is_printable(text, NAME_LENGTH):
        said = printable(text, 80)
        raise click.BadParameter(
            f"'{said}' is not a text of 1 to {NAME_LENGTH} printable characters", param=option
        )
    return text


def _names(
    context: click.Context, option: click.Parameter, names: tuple[str, ...]
) -> tuple[str, ...]:
    """Names of runs, each once."""
    for name in names:
        _name(context, option, name)
    return tuple(dict.fromkeys(names))


def _labels(
    _context: click.Context, option: click.Parameter, labels: tuple[str, ...]
) -> tuple[str, ...]:
    """Labels, each once; none claims what the machine may lack."""
    for label in labels:
        if not WORD.fullmatch(label):
            raise click.BadParameter(
                f"'{printable(label, 80)}' is not a word of at most 40 small letters, digits, `.` "
                "and `-`",
                param=option,
            )
        if label in MACHINE_WORDS:
            raise click.BadParameter(
                f"{label} says what a machine is; the worker knows that by itself", param=option
            )
    return tuple(dict.fromkeys(labels))


FILE = FilePath(exists=True, dir_okay=False, path_type=Path)
_YEAR = 366 * 86_400.0
_MAX_MEMORY = 2**24  # mebibytes; as bytes it fits what setrlimit takes
MAX_COUNT = 10**9
SECONDS = FiniteRange(min=0, min_open=True, max=MAX_SECONDS)
COUNT = click.IntRange(1, MAX_COUNT)

SHARED = (
    click.option(
        "-c",
        "--concurrency",
        type=click.IntRange(1, MAX_SLOTS),
        help="Slots: games at a time; one of engines with Threads = T takes T of them.  "
        "[default: one per physical core]",
    ),
    click.option("--force", is_flag=True, help="Allow more games at a time than cores."),
    click.option("--pin", is_flag=True, help="Keep each slot's engines on one core of their own."),
    click.option(
        "--engine-memory",
        type=click.IntRange(1, _MAX_MEMORY),
        metavar="MIB",
        help="Memory limit of one engine, for each of its Threads.  "
        "[default: its share of the machine's]",
    ),
    click.option(
        "--syzygy",
        type=FilePath(exists=True, file_okay=False, path_type=Path),
        multiple=True,
        help="Folder of Syzygy tables; repeat it for more.  [default: that of the run]",
    ),
    click.option(
        "--no-sandbox", is_flag=True, help="Give engines the network and all rights of their user."
    ),
    click.option("-v", "--verbose", is_flag=True, help="Log more to stderr."),
    click.option(
        "--log-format",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="Format of the log on stderr.",
    ),
)
WORKER = (
    click.option("--spsa", is_flag=True, help="Play the runs of a server or a database."),
    click.option(
        "--server",
        metavar="URL",
        help="URL of `spsa-master serve`, for a machine with a token.  [env: SPSA_SERVER]",
    ),
    click.option(
        "--token-file",
        type=FilePath(dir_okay=False, path_type=Path),
        help="File that holds this machine's token and nothing else.  [env: SPSA_TOKEN]",
    ),
    click.option(
        "--plain-http",
        is_flag=True,
        help="Send the token to another machine unencrypted, in a network that you trust.",
    ),
    click.option(
        "--database-url", help="URL of the database.  [env: DATABASE_URL; else config.toml]"
    ),
    click.option(
        "--database-url-file",
        type=FilePath(dir_okay=False, path_type=Path),
        help="File that holds this URL and nothing else.  [env: DATABASE_URL_FILE]",
    ),
    click.option("--name", callback=_name, help="Name of this worker.  [default: host-pid-random]"),
    click.option(
        "--run",
        "only_runs",
        multiple=True,
        callback=_names,
        metavar="NAME",
        help="Play only this run; repeatable.  [default: all runs]",
    ),
    click.option(
        "--not",
        "not_runs",
        multiple=True,
        callback=_names,
        metavar="NAME",
        help="Do not play this run; repeatable.",
    ),
    click.option(
        "--label",
        "labels",
        multiple=True,
        callback=_labels,
        metavar="WORD",
        help="Play also runs that require this word ([fleet] require); repeatable.",
    ),
    click.option(
        "--once", is_flag=True, help="Exit when no work is left, with code 3 if there was none."
    ),
    click.option(
        "--idle-timeout",
        type=FiniteRange(min=0, min_open=True, max=_YEAR),
        help="Exit after this many seconds without work.",
    ),
    click.option("--max-batches", type=COUNT, help="Exit after this many batches."),
    click.option(
        "--drain",
        type=FiniteRange(min=0, max=_YEAR),
        default=60.0,
        show_default=True,
        help="Seconds that active batches may go on after the first Ctrl-C.",
    ),
    click.option(
        "--lease",
        type=FiniteRange(min=LEASE_SECONDS[0], max=LEASE_SECONDS[1]),
        default=DEFAULT_LEASE_SECONDS,
        show_default=True,
        help="Seconds after which other workers may claim this worker's batches if it is gone.",
    ),
    click.option(
        "--engines-cache",
        type=FilePath(file_okay=False, path_type=Path),
        help="Folder for engines.  [default: the user's cache]",
    ),
    click.option(
        "--build",
        is_flag=True,
        help='Also build engines for machines of this kind ([build] where = "worker").',
    ),
    click.option("--systemd", is_flag=True, help="Print a systemd unit for this worker, and exit."),
)
REPLAY = (
    click.option(
        "--replay",
        metavar="[RUN/]ITERATION.BATCH[:PAIR]",
        help="Play a batch of a run again, or one of its pairs, and compare the counts.",
    ),
)


def options(*groups: tuple[Callable[[Command], Command], ...]) -> Callable[[Command], Command]:
    """A decorator that gives a command these options, in this order."""

    def decorate(command: Command) -> Command:
        for option in reversed([option for group in groups for option in group]):
            command = option(command)
        return command

    return decorate
