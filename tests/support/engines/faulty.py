"""Engines of the tests as programs, and what a test wants to know of processes."""

import gc
import os
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from chess import STARTING_FEN

from spsa.core.game_settings import GameSettings, TimeControl, TimeKind
from spsa.openings.book import Opening
from spsa.uci.engine import UciEngine
from spsa.uci.spawning import EngineLimits, EngineSpec
from worker.runner.game import Pair, Pairing
from worker.runner.pool import Event, Job, PairVoid, Pool

SCRIPT = Path(__file__).with_name("scripted.py")
PATIENT = EngineLimits(start=20.0, ready=20.0, grace=20.0, quit=0.5, depth=20.0)
"""A test that waits for one of these to pass shortens that one only."""


ONE_NODE = TimeControl(kind=TimeKind.NODES, low=1, high=1)


def engine(folder: Path, name: str, **switches: object) -> Path:
    """An executable that is the scripted engine with these switches."""
    words = [sys.executable, "-S", "-E", str(SCRIPT)]
    if "moves" not in switches or switches.get("fault") == "wrong-side":
        words = [sys.executable, str(SCRIPT)]
    for switch, value in switches.items():
        flag = f"--{switch.replace('_', '-')}"
        for each in value if isinstance(value, list) else [value]:
            words.append(flag if each is True else f"{flag}={each}")
    path = folder / name
    path.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    path.chmod(0o755)
    return path


def spec(path: Path, name: str = "plus", **options: str) -> EngineSpec:
    return EngineSpec(name=name, path=str(path), options=options)


def started(wanted: EngineSpec, limits: EngineLimits) -> UciEngine:
    """An engine that has introduced itself and has its options."""
    running = UciEngine(wanted, limits)
    try:
        running.complete_handshake(wanted)
    except BaseException:
        running.close(at_once=True)
        raise
    return running


def job_of(
    plus: EngineSpec,
    minus: EngineSpec,
    time_control: TimeControl = ONE_NODE,
    pairs: int = 1,
    **over: Any,
) -> Job:
    """A job of games from the start position."""
    pairings = [
        Pairing(number=number, opening=Opening(STARTING_FEN), time=time_control.low)
        for number in range(pairs)
    ]
    settings = GameSettings(time_control=time_control)
    facts = {"key": "job", "pairings": tuple(pairings), "settings": settings}
    return Job(plus=plus, minus=minus, **facts | over)


def until_the_end(pool: Pool) -> list[Event]:
    """The events of a job up to its end."""
    events: list[Event] = []
    while not events or isinstance(events[-1], Pair | PairVoid):
        event = pool.next_event(120)
        assert event is not None
        events.append(event)
    return events


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def running_with(word: str) -> list[int]:
    """The processes with this word in their command; an engine itself may count from 1."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:  # the process has ended
            continue
        if word.encode() in words:
            found.append(int(process.name))
    return found


BYSTANDERS: set[int] = set()
"""Children that were there before the test: a database server, a resource tracker."""


def children() -> set[int]:
    """The test's child processes, dead ones that nobody reaped included."""
    return all_children() - BYSTANDERS


def all_children() -> set[int]:
    """The processes whose parent this one is."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:  # the process has ended
            continue
        if parent == os.getpid():
            found.add(int(process.name))
    return found


def open_files() -> int:
    gc.collect()  # of what an earlier test has left none is closed between two counts
    return len(list(Path("/proc/self/fd").iterdir()))


# From the start position plus mates in both games: 1. e4 e5 2. Qh5 Nc6 3. Bc4 Nf6 4. Qxf7#
# as White, 1. f3 e5 2. g4 Qh4# as Black. Where a list says 0000 it is never its turn.
WINNER = "e2e4 e7e5 d1h5 d8h4 f1c4 0000 h5f7"
LOSER = "f2f3 e7e5 g2g4 b8c6 0000 g8f6"


def start_book(folder: Path) -> Path:
    """A book of the start position alone."""
    path = folder / "start.epd"
    path.write_text("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -\n")
    return path


def wait_until(holds: Callable[[], bool], seconds: float = 120.0) -> None:
    """Look again and again until `holds`; TimeoutError when it never does."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.005)
