"""Smoke test of a new binary: the UCI handshake and its bench, before a row names it.

It is asked as in a game, with the same client, deadlines and sandbox.
"""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType

from spsa.core.game_settings import MAX_NODES, TimeControl, TimeKind, counted
from spsa.core.uci_options import Declarations
from spsa.errors import EngineFault, SmokeTestFailed
from spsa.uci import system
from spsa.uci.engine import Limit, SearchReply, UciEngine, clock_line, fixed_limit
from spsa.uci.process import EngineProcess, Overdue
from spsa.uci.spawning import EngineLimits, EngineSpec, working_folders

NAME_AN_ENGINE = (
    "name a program that speaks UCI, with the arguments it needs; it starts in an empty folder"
)

_TAIL = 65_536
_GRACE = 10.0
_LONGEST = 120.0
_LONGER = "; if it needs longer for its first move, raise the limit in [time_control]"
_OTHER_KIND = "; if the engine does not know this limit, set another `kind` in [time_control]"
_NO_NODES = (
    "it ignores `go nodes` and plays by a limit of its own; "
    'set kind = "movetime" or "depth" in [time_control]'
)
_COUNTS = (
    re.compile(r"nodes\s+searched\s*[:=]?\s*(\d[\d,']*)", re.ASCII | re.IGNORECASE),
    re.compile(r"(\d[\d,']*)\s+nodes\b(?!\s*(?:/|per\b))", re.ASCII | re.IGNORECASE),
    re.compile(r"\b(?:nodes|bench)\s*[:=]\s*(\d[\d,']*)", re.ASCII | re.IGNORECASE),
)

_HANDSHAKE_SECONDS = 10.0
"""What an engine is given for each of `uci` and `isready`."""

_LISTING_SECONDS = 2.0
"""What an engine is given to list its parameters."""

_COMMAS = 5
"""At least as many stand in the line of a parameter."""

_BENCH_SECONDS = 60.0

_MUCH = 16
_SHORT_SEARCHES = 4
_FEW, _MANY = 1_000, 64_000
"""Nodes of two searches from which one sees whether a limit of nodes is obeyed.

Engines look at their count every so many nodes, up to some thousands, and tell of it less often.
"""


_MIDDLE_GAME = "r1b2rk1/pp1n1pbp/2pp1np1/4p3/2PP3q/2N3P1/PPQ1PPBP/R1B2RNK w - - 0 9 moves g3h4 e5d4"
"""An engine that leaves out the moves behind a FEN takes the queen, which is illegal."""


def longest_search(control: TimeControl) -> Limit:
    """The longest search of a run: an engine that ignores this limit would hang in games."""
    if control.kind is not TimeKind.CLOCK:
        return limit_of(control.kind, control.high)
    clocks, gains = (2 * [seconds] for seconds in (control.high, control.increment))
    return Limit(clock_line(clocks, gains, control.moves), control.high + _GRACE)


def limit_of(kind: TimeKind, value: float) -> Limit:
    """A search with this limit that is no clock, and the time that the slowest engine may take."""
    limit = fixed_limit(kind, value, EngineLimits(grace=_GRACE, depth=_LONGEST))
    most = limit.seconds if kind is TimeKind.MOVETIME else _LONGEST
    return limit._replace(seconds=min(limit.seconds, most))


def declared_options(
    binary: Path,
    arguments: Sequence[str] = (),
    searches: Sequence[Limit] = (),
    sent: Mapping[str, str] = MappingProxyType({}),
    *,
    tried: bool = False,
) -> Declarations:
    """The options that an engine declares, which has to obey the limits of `searches`.

    For these it is `sent` options. With `tried` a build of the same source has shown that it counts
    its nodes and finds moves in a middle game. Raises SmokeTestFailed with the end of the output.
    """
    try:
        with engine_under_test([str(binary.absolute()), *arguments], sent) as engine:
            for limit in searches:
                _obey(engine, limit, tried=tried)
            return engine.declared
    except SmokeTestFailed as failure:
        raise SmokeTestFailed(f"{binary}: {failure}") from failure


def refuse_options(
    declared: Declarations, options: Mapping[str, str], places: Mapping[str, str]
) -> None:
    """Raise SmokeTestFailed for an option that is not declared so; `places` say where it stands."""
    for name, value in options.items():
        if objection := declared.objection(name, value):
            place = places.get(name, "config.toml:")
            raise SmokeTestFailed(f"{place} the engine would not accept it: {objection}")


def tuning_lines(binary: Path, arguments: Sequence[str] = ()) -> list[str]:
    """What an engine writes for the commands with which engines list what OpenBench tunes.

    Nothing for one that does not know them, or that begins something long.
    """
    lines: list[str] = []
    for command in (b"spsa\nspsainput\n", b"tune\n"):
        with suppress(SmokeTestFailed), engine_under_test([str(binary), *arguments]) as engine:
            lines = engine.ask(command, _LISTING_SECONDS)
        if any(line.count(",") >= _COMMAS for line in lines):
            return lines
    return []


def node_count(output: str) -> int | None:
    """The last node count a bench printed; lines of a search in progress do not count."""
    lines = [line for line in output.splitlines() if not line.lstrip().startswith("info ")]
    for line in reversed(lines):
        for pattern in _COUNTS:
            if found := pattern.search(line):
                return counted(re.sub(r"\D", "", found[1]), MAX_NODES)
    return None


@contextmanager
def engine_under_test(
    command: Sequence[str], options: Mapping[str, str] = MappingProxyType({})
) -> Iterator[UciEngine]:
    """A ready engine with these options.

    It is in the sandbox and in an empty folder, which is removed with it. Raises SmokeTestFailed
    for an EngineFault, with the end of the output.
    """
    path, *arguments = command
    spec = EngineSpec(name=path, path=path, options=options, arguments=tuple(arguments))
    engine: UciEngine | None = None
    with _surroundings() as limits:
        try:
            engine = UciEngine(spec, limits)
            engine.complete_handshake(spec)
            engine.settle()
            engine.await_ready()
            yield engine
        except EngineFault as fault:
            lines = _indented(engine.last_lines) if engine else ""
            notes = "".join(map(_indented, getattr(fault, "__notes__", ())))
            raise SmokeTestFailed(f"{fault}{lines}{notes}") from fault
        finally:
            if engine is not None:
                engine.close(at_once=True)


@contextmanager
def _surroundings() -> Iterator[EngineLimits]:
    seconds, isolation = _HANDSHAKE_SECONDS, system.isolation()
    with working_folders() as folders:
        yield EngineLimits(isolation=isolation, folders=folders, start=seconds, ready=seconds)


def _obey(engine: UciEngine, limit: Limit, *, tried: bool) -> None:
    """Search with a limit of the run. An engine that knows only its clock may move at once."""
    reply = _move(engine, "", limit)
    if reply.info and not tried:
        _move(engine, _MIDDLE_GAME, limit)
        is_checked = limit.go.startswith(b"go nodes")
        if told := _against_nodes(engine, _LONGEST) if is_checked else "":
            raise SmokeTestFailed(f"{told}: {_NO_NODES}")
    if not reply.info or (_is_far_too_quick(limit, reply) and not tried):
        _refuse_clock_alone(engine, limit, reply)


def _is_far_too_quick(limit: Limit, reply: SearchReply) -> bool:
    """Whether next to nothing of the time of a move was used."""
    kind, amount = limit.go.split()[1:3]
    return kind == b"movetime" and reply.seconds < int(amount) / 1000 / _MUCH


def _refuse_clock_alone(engine: UciEngine, limit: Limit, reply: SearchReply) -> None:
    """Raise SmokeTestFailed for an engine that searches much more when it has a clock."""
    with suppress(EngineFault):
        found = engine.search(b"position startpos", Limit(b"go wtime 1000 btime 1000\n", 5.0))
        if found.info and (not reply.info or found.nodes > _MUCH * reply.nodes):
            asked = limit.go.decode().strip()
            raise SmokeTestFailed(f"asked `{asked}`, it moves without a search{_OTHER_KIND}")


def _move(engine: UciEngine, fen: str, limit: Limit) -> SearchReply:
    """The reply to a limit of the run, "" from the start; SmokeTestFailed for no legal move.

    Moves may stand behind the FEN.
    """
    from chess import STARTING_FEN, Board  # most commands build nothing

    engine.prepare()
    engine.await_ready()
    place, _, moves = fen.partition(" moves ")
    board = Board(place or STARTING_FEN)
    for move in moves.split():
        board.push_uci(move)
    asked = f"asked `{limit.go.decode().strip()}`{fen and f' in {fen}'}"
    try:
        reply = engine.search(f"position {f'fen {fen}' if fen else 'startpos'}".encode(), limit)
        if reply.move not in map(str, board.legal_moves):
            raise EngineFault("illegal move", reply.move)
    except EngineFault as fault:
        may_help = {"hang": _OTHER_KIND, "no move": _LONGER}.get(fault.reason, "")
        words = f"{asked}: {fault}{may_help}{_indented(engine.last_lines)}"
        raise SmokeTestFailed(words) from fault
    return reply


def against_nodes(command: Sequence[str], options: Mapping[str, str], reply: SearchReply) -> str:
    """What shows that an engine does not obey `go nodes`; "" for one that does.

    Its `reply` to another search tells its speed: one that goes on searching is not waited for.
    """
    if not reply.nodes:
        return "it tells of no nodes"
    try:
        with engine_under_test(command, options) as engine:
            return _against_nodes(engine, 2 + 4 * reply.seconds * _MANY / reply.nodes)
    except SmokeTestFailed as failure:
        return failure.lines[0]


def _against_nodes(engine: UciEngine, seconds: float) -> str:
    """The same of a running engine; "" for one that tells of no nodes, too.

    It is given `seconds` for each search; some engines hang in one short search of several.
    """
    short, long = (
        one._replace(seconds=min(one.seconds, seconds))
        for one in (limit_of(TimeKind.NODES, nodes) for nodes in (_FEW, _MANY))
    )
    few, last = _move(engine, "", short).nodes, _move(engine, "", long)
    many = last.nodes
    if not last.info or (many and (many < _MANY / _MUCH or many <= 2 * few)):
        return f"it searches {few:,} nodes of {_FEW:,}, and {many:,} of {_MANY:,}"
    for fen in (_MIDDLE_GAME, "") * _SHORT_SEARCHES:
        _move(engine, fen, short)
    return ""


def bench_of(binary: Path, wanted: bool | None, arguments: Sequence[str] = ()) -> int | None:
    """The node count of the engine's bench, if it has one; it is not asked if `wanted` is False.

    Raises SmokeTestFailed for an engine without one, if `wanted` is True.
    """
    if wanted is False:
        return None
    output, deadline = bytearray(), time.monotonic() + _BENCH_SECONDS
    with _surroundings() as limits:
        process = EngineProcess([str(binary), *arguments, "bench"], limits)
        try:
            with suppress(EngineFault):  # it has ended
                process.write(b"quit\n")
            with suppress(EngineFault, Overdue):  # it ends, or its time does
                while time.monotonic() < deadline:
                    process.read(output, deadline)
                    del output[:-_TAIL]
            output += b"\n" + process.last_errors
            nodes = node_count(output.decode(errors="replace"))
            if nodes is None and wanted:
                found = f"`bench` gave no node count within {_BENCH_SECONDS:g} s"
                raise SmokeTestFailed(found + _indented(process.last_lines))
            return nodes
        finally:
            process.close(b"", 0.0)


def _indented(lines: str) -> str:
    return "".join(f"\n  | {line}" for line in lines.splitlines() or ["(it wrote nothing)"])
