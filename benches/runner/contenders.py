"""The command line with which each runner plays the same match."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from spsa.uci.spawning import EngineLimits

FIRST, SECOND = "first", "second"
"""The names of the files of every plan's engines, and so of the players in every PGN file."""


@dataclass(frozen=True, slots=True)
class Limit:
    """What an engine gets: `kind` is nodes, movetime (seconds) or tc (BASE+INC, seconds)."""

    kind: str
    value: str

    def __str__(self) -> str:
        return f"{self.kind} {self.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One match; `pairs` is half the number of its games, `max_moves` makes a draw."""

    engines: tuple[Path, Path]
    options: tuple[str, ...]
    book: Path
    limit: Limit
    pairs: int
    concurrency: int
    max_moves: int

    def of(self, **changed: object) -> "Plan":
        return replace(self, **changed)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Contender:
    """A runner: its name in the tables, and its command for a plan that writes a PGN file."""

    name: str
    command: Callable[[Plan, Path], Sequence[str]]


def compete() -> Contender:
    return Contender("compete", lambda plan, pgn: _module("worker", plan, pgn, _OURS))


def earlier(folder: Path) -> Contender:
    """The same runner as another folder of this repository has it."""
    environment = ("env", f"PYTHONPATH={folder}")
    return Contender(
        "compete before", lambda plan, pgn: [*environment, *_module("worker", plan, pgn, _OURS)]
    )


def naive() -> Contender:
    return Contender("python-chess loop", lambda plan, pgn: _module(_NAIVE, plan, pgn, ()))


def fastchess(path: Path) -> Contender:
    return Contender("fastchess", lambda plan, pgn: _fastchess(path, plan, pgn))


_NAIVE = "benches.runner.naive"
_OURS = ("--force", "--order", "sequential", "--no-adjudication")


def _module(name: str, plan: Plan, pgn: Path, more: Sequence[str]) -> list[str]:
    return [
        sys.executable,
        "-m",
        name,
        *map(str, plan.engines),
        *("--games", str(2 * plan.pairs)),
        *("-c", str(plan.concurrency)),
        *(f"--{plan.limit.kind}", plan.limit.value),
        *("--book", str(plan.book)),
        *("--max-moves", str(plan.max_moves)),
        *("--pgn", str(pgn)),
        *(f"--option={option}" for option in plan.options),
        *more,
    ]


def _fastchess(path: Path, plan: Plan, pgn: Path) -> list[str]:
    engines = [
        word
        for name, engine in zip((FIRST, SECOND), plan.engines, strict=True)
        for word in ("-engine", f"cmd={engine}", f"name={name}")
    ]
    return [
        str(path),
        *engines,
        *("-each", *_fastchess_limit(plan.limit), *(f"option.{o}" for o in plan.options)),
        *("-rounds", str(plan.pairs), "-games", "2", "-repeat"),
        *("-concurrency", str(plan.concurrency), "-force-concurrency"),
        *("-openings", f"file={plan.book}", "format=epd", "order=sequential"),
        *("-maxmoves", str(plan.max_moves)),
        *("-pgnout", f"file={pgn}"),
        *("-ratinginterval", "0", "-autosaveinterval", "0", "-recover"),
    ]


def _fastchess_limit(limit: Limit) -> tuple[str, ...]:
    match limit.kind:
        case "movetime":
            # compete, too, waits this long before a late move makes the game void.
            return (f"st={limit.value}", f"timemargin={1000 * EngineLimits().grace:.0f}")
        case "tc":
            return (f"tc={limit.value}", "timemargin=50")
        case _:
            return ("tc=inf", f"{limit.kind}={limit.value}")
