"""The settings of `compete`: each option of its command line is a field, and engines' limits.

A field has the name, type, range, default and help of its option, once each.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import click

from spsa.builds.requirements import MACHINE_WORDS, WORD
from spsa.core.game_settings import (
    MAX_DEPTH,
    MAX_IN_A_ROW,
    MAX_MOVES,
    MAX_NELO,
    MAX_NODES_TO_SEARCH,
    MAX_OPTION_LENGTH,
    MAX_PIECES,
    MAX_PLIES,
    MAX_SCORE,
    MAX_SECONDS,
    MIN_PIECES,
    MIN_SECONDS,
    TimeControl,
    TimeKind,
)
from spsa.output import Within
from spsa.protocol import DEFAULT_LEASE_SECONDS, LEASE_SECONDS, MAX_SLOTS
from spsa.text import NAME_LENGTH, is_printable, printable
from spsa.uci.spawning import EngineLimits
from worker.machine import default_concurrency, memory

NO_DATABASE = (
    "this file plays for a server: give --server URL; what needs a database needs an installation "
    "of spsa-tuner"
)


def field_of(
    text: str,
    kind: Any = None,
    default: Any = None,
    *,
    flags: tuple[str, ...] = (),
    computed: Callable[[], Any] | None = None,
    **more: Any,
) -> Any:
    """A field that is an option of this type, `--its-name` unless `flags` say otherwise.

    `text` is its help. One with the default False is a flag, one with () may be repeated; every
    other default is shown, but for one that is `computed` on the command line. `more` is what
    click.Option takes beside these.
    """
    more |= {"help": text, "type": kind, "default": computed or default}
    more["is_flag"], more["multiple"] = default is False, default == ()
    more["show_default"] = bool(default) and computed is None
    return field(default=default, metadata={"flags": flags, "click": more})


def click_options(settings: type) -> list[click.Parameter]:
    """The options that the fields of a dataclass describe, in their order."""
    return [
        click.Option(
            [*(each.metadata["flags"] or [f"--{each.name.replace('_', '-')}"]), each.name],
            **each.metadata["click"],
        )
        for each in fields(settings)
    ]


def _refused(text: str, why: str) -> click.BadParameter:
    return click.BadParameter(f"'{printable(text, 80)}' {why}")


def _name(text: str) -> str:
    """A name that fits a column of the database and a line of a report."""
    if not is_printable(text, NAME_LENGTH):
        raise _refused(text, f"is not a text of 1 to {NAME_LENGTH} printable characters")
    return text


def _label(text: str) -> str:
    """A word that a run may require, and that does not claim what the machine may lack."""
    if not WORD.fullmatch(text):
        raise _refused(text, "is not a word of at most 40 small letters, digits, `.` and `-`")
    if text in MACHINE_WORDS:
        raise _refused(text, "says what a machine is; the worker knows that by itself")
    return text


def _option(text: str) -> tuple[str, str]:
    """NAME=VALUE on one line, as an option of UCI has to be: it can quote no line break."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not (equals and name and is_printable(name + value, MAX_OPTION_LENGTH)):
        most = f"at most {MAX_OPTION_LENGTH} printable characters on one line"
        raise _refused(text, f"is not NAME=VALUE of {most}")
    return name, value


def _clock(text: str) -> TimeControl:
    """A clock in its usual form; `TimeControl.parse` reads other limits, too."""
    with suppress(ValueError):
        if (control := TimeControl.parse(text)).kind is TimeKind.CLOCK:
            return control
    usual = "[MOVES/]BASE[+INC] in seconds, as in 10+0.1 or 40/60"
    limits = f"at least {MIN_SECONDS:g} and at most {MAX_SECONDS:g} seconds"
    raise _refused(text, f"is not {usual}, with {limits}")


FilePath = partial(click.Path, path_type=Path)
flag = partial(field_of, default=False)
repeated = partial(field_of, default=())

_MAX_COUNT = 10**9
_SECONDS = Within(min=MIN_SECONDS, max=MAX_SECONDS)
_NEW_FILE = FilePath(dir_okay=False)
_MIB = 2**20
_WAIT = Within(min=0, min_open=True, max=366 * 86_400.0)
_IDLE_BEFORE_THEN = 600.0
_DRAIN = Within(min=0, max=366 * 86_400.0)
_LEASE = Within(min=LEASE_SECONDS[0], max=LEASE_SECONDS[1])
_MARGIN = Within(min=0, max=MAX_SECONDS)
_NELO = Within(min=-MAX_NELO, max=MAX_NELO)
_IN_A_ROW = click.IntRange(1, MAX_IN_A_ROW)
_DRAW = click.IntRange(0, MAX_MOVES), _IN_A_ROW, click.IntRange(0, MAX_SCORE)
_RESIGN = _IN_A_ROW, click.IntRange(1, MAX_SCORE)
_PIECES = click.IntRange(MIN_PIECES, MAX_PIECES)
_ORDER = click.Choice(["random", "sequential"])
_SEED = click.IntRange(-(2**63), 2**63 - 1)
_MEMORY = click.IntRange(1, 2**24)  # mebibytes; as bytes it fits what setrlimit takes
_FOLDER = FilePath(file_okay=False)
_TABLES = FilePath(exists=True, file_okay=False)

_Options = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Settings:
    """The options of `compete`, one a field: of a worker, a replay, a match, and of all three.

    It has no repr, because a URL may have a password.
    """

    spsa: bool = flag("Play the runs of a server or a database.")
    server: str | None = field_of(
        "URL of `spsa-master serve`, for a machine with a token.  [env: SPSA_SERVER]", metavar="URL"
    )
    token_file: Path | None = field_of(
        "File that holds this machine's token and nothing else.  [env: SPSA_TOKEN]", _NEW_FILE
    )
    plain_http: bool = flag("Send the token unencrypted, in a network that you trust.")
    database_url: str | None = field_of(
        "URL of the database.  [env: DATABASE_URL; else config.toml]"
    )
    database_url_file: Path | None = field_of(
        "File that holds this URL and nothing else.  [env: DATABASE_URL_FILE]", _NEW_FILE
    )
    name: str | None = field_of(
        "Name of this worker.  [default: host-pid-random]", _name, metavar="NAME"
    )
    only_runs: tuple[str, ...] = repeated(
        "Play only this run; repeatable.  [default: all runs]",
        _name,
        flags=("--run",),
        metavar="NAME",
    )
    not_runs: tuple[str, ...] = repeated(
        "Do not play this run; repeatable.", _name, flags=("--not",), metavar="NAME"
    )
    labels: tuple[str, ...] = repeated(
        "Play also runs that require this word; repeatable.",
        _label,
        flags=("--label",),
        metavar="WORD",
    )
    once: bool = flag("Exit when no work is left, with code 3 if there was none.")
    idle_timeout: float | None = field_of("Exit after this many seconds without work.", _WAIT)
    then: str | None = field_of(
        "Run this in a shell when the worker has exited by itself, 10 minutes without work at the "
        "latest: as `poweroff`.",
        metavar="COMMAND",
    )
    max_batches: int | None = field_of(
        "Exit after this many batches.", click.IntRange(1, _MAX_COUNT)
    )
    drain: float = field_of(
        "Seconds that active batches may go on after the first Ctrl-C.", _DRAIN, 60.0
    )
    lease: float = field_of(
        "Seconds after which other workers may claim this worker's batches if it is gone.",
        _LEASE,
        DEFAULT_LEASE_SECONDS,
    )
    engines_cache: Path | None = field_of(
        "Folder for engines.  [default: the user's cache]", _FOLDER
    )
    build: bool = flag('Also build engines for machines of this kind ([build] where = "worker").')

    replay: str | None = field_of(
        "Play a batch of a run again, or one of its pairs, and compare the counts.",
        metavar="[RUN/]ITERATION.BATCH[:PAIR]",
    )

    games: int | None = field_of("Games to play; an even number.", click.IntRange(2, _MAX_COUNT))
    movetime: float | None = field_of("Seconds per move.  [default: 0.1]", _SECONDS)
    tc: TimeControl | None = field_of(
        "Seconds per game, or per MOVES moves, plus seconds per move, as in 10+0.1.",
        _clock,
        metavar="[MOVES/]BASE+INC",
    )
    margin: float | None = field_of(
        "With --tc: seconds by which an engine may overstep its clock.  [default: 0.05]", _MARGIN
    )
    nodes: int | None = field_of("Nodes per move.", click.IntRange(1, MAX_NODES_TO_SEARCH))
    depth: int | None = field_of("Depth per move, in plies.", click.IntRange(1, MAX_DEPTH))
    book: str = field_of(
        "Opening book: an EPD, FEN or PGN file, a zip of one, or builtin:unbalanced.",
        default="builtin",
    )
    plies: int | None = field_of(
        "Plies to play of each game of a PGN book.  [default: all]", click.IntRange(1, MAX_PLIES)
    )
    order: str = field_of("Order of the openings; --seed decides a random one.", _ORDER, "random")
    seed: int = field_of("Seed of the openings and their order.", _SEED, 1)
    chess960: bool = flag("Play Chess960; --book has its positions.")
    option: _Options = field_of("Option for both engines.", _option, (), metavar="NAME=VALUE")
    option1: _Options = field_of("Option for the first engine.", _option, (), metavar="NAME=VALUE")
    option2: _Options = field_of("Option for the second engine.", _option, (), metavar="NAME=VALUE")
    draw: tuple[int, int, int] = field_of(
        "Draw from move MOVE on, when both engines score COUNT moves within CP centipawns.",
        _DRAW,
        (34, 8, 20),
        metavar="MOVE COUNT CP",
    )
    resign: tuple[int, int] = field_of(
        "End a game when both engines see the same winner by CP centipawns for COUNT moves.",
        _RESIGN,
        (3, 600),
        metavar="COUNT CP",
    )
    max_moves: int | None = field_of(
        "Moves per side after which a game is a draw.  [default: 200]", click.IntRange(1, MAX_MOVES)
    )
    tb_pieces: int | None = field_of(
        "End a game by the --syzygy tables of up to N pieces.", _PIECES, metavar="N"
    )
    no_adjudication: bool = flag(
        "End games by the rules of chess only, and by --max-moves if given."
    )
    sprt: tuple[float, float] | None = field_of(
        "Stop by SPRT with bounds ELO0 and ELO1 in normalised Elo, alpha = beta = 0.05.",
        (_NELO, _NELO),
        metavar="ELO0 ELO1",
    )
    pgn: Path | None = field_of("File to append the games to.", _NEW_FILE)
    json: bool = flag("Print the final report as JSON.")

    concurrency: int = field_of(
        "Slots for games of engines with one thread.  [default: one per physical core]",
        click.IntRange(1, MAX_SLOTS),
        1,
        flags=("-c", "--concurrency"),
        computed=default_concurrency,
    )
    force: bool = flag("Allow more games at a time than cores.")
    engine_memory: int | None = field_of(
        "Memory of an engine for each of its Threads.  [default: its share of the machine's]",
        _MEMORY,
        metavar="MIB",
    )
    syzygy: tuple[Path, ...] = repeated(
        "Folder of Syzygy tables; repeat it for more.  [default: that of the run]", _TABLES
    )
    no_sandbox: bool = flag("Give engines the network and all rights of their user.")
    verbose: bool = flag("Log more to stderr.", flags=("-v", "--verbose"))

    @property
    def is_worker(self) -> bool:
        """Whether the runs of a server or a database are played."""
        return self.spsa or bool(self.server)

    @property
    def idle_limit(self) -> float:
        """Seconds without work after which a worker exits."""
        return self.idle_timeout or (inf if self.then is None else _IDLE_BEFORE_THEN)

    def engine_limits(self, **sandbox: Any) -> EngineLimits:
        """The limits of every engine; `sandbox` are those that do not follow from options.

        An engine gets a quarter of a slot's share of the memory by default: each slot has two
        engines that play and two that start.
        """
        share, wanted = memory(), self.engine_memory
        if share is not None:
            share = max(256 * _MIB, share // (4 * self.concurrency))
        return EngineLimits(memory=share if wanted is None else wanted * _MIB, **sandbox)
