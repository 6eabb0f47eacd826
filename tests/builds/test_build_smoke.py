"""A fresh binary is tried before a row names it; whatever it does, nothing of it is left."""

import os
from pathlib import Path

import pytest

from spsa.builds import smoke
from spsa.builds.smoke import (
    declared_options,
    examine,
    longest_search,
    node_count,
)
from spsa.core.game_settings import TimeControl, TimeKind
from spsa.errors import SmokeTestFailed
from spsa.uci.engine import Limit

LISTEN = """
while read -r line; do
  case "$line" in
    uci) echo "id name script"; echo uciok ;;
    isready) echo readyok ;;
    quit) exit ;;
  esac
done
"""


def script(directory: Path, body: str) -> Path:
    path = directory / "engine"
    path.write_text(f"#!/bin/sh\n{body}")
    path.chmod(0o755)
    return path


def test_a_handshake_is_enough(tmp_path: Path) -> None:
    assert examine(script(tmp_path, LISTEN), None) is None


def test_a_bench_is_recorded(tmp_path: Path) -> None:
    body = (
        f'if [ "$1" = bench ]; then echo "info nodes 7"; echo "4711 nodes 99 nps"; exit; fi{LISTEN}'
    )
    engine = script(tmp_path, body)
    assert examine(engine, None) == 4711
    assert examine(engine, True) == 4711
    assert examine(engine, False) is None


def test_an_engine_that_must_have_a_bench_and_has_none(tmp_path: Path) -> None:
    with pytest.raises(SmokeTestFailed, match="no node count"):
        examine(script(tmp_path, LISTEN), True)


def test_a_bench_that_hangs_is_no_bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smoke, "_BENCH_SECONDS", 0.2)
    body = f'if [ "$1" = bench ]; then exec sleep 60; fi{LISTEN}'
    assert examine(script(tmp_path, body), None) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("exec sleep 60", "no uciok within 0.6 s\n  | (it wrote nothing)"),
        ("echo hello; exec sleep 60", "no uciok within 0.6 s\n  | hello"),
        ("read -r x; echo uciok; exec sleep 60", "no readyok within 0.6 s\n  | uciok"),
        (
            "while :; do echo info string noise; done",
            "no uciok within 0.6 s\n  | info string noise",
        ),
        ("echo not-uciok; exec sleep 60", "no uciok within 0.6 s\n  | not-uciok"),
        ("tr '\\0' x < /dev/zero", "flood: a line of more than 65536 bytes\n  | xxx"),
    ],
)
def test_an_engine_that_does_not_answer(
    body: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smoke, "_HANDSHAKE_SECONDS", 0.6)
    with pytest.raises(SmokeTestFailed) as failure:
        examine(script(tmp_path, body), None)
    assert f"the UCI handshake failed: {words}" in str(failure.value).replace("hang: no", "no", 1)


def test_an_engine_that_ends_at_once(tmp_path: Path) -> None:
    with pytest.raises(SmokeTestFailed) as failure:
        examine(script(tmp_path, "echo broken >&2; exit 3"), None)
    words = "the UCI handshake failed: crash: exit status 3\n  | stderr: broken"
    assert str(failure.value) == words


def test_what_cannot_be_started(tmp_path: Path) -> None:
    engine = tmp_path / "engine"
    engine.write_text("no program")
    engine.chmod(0o644)
    with pytest.raises(SmokeTestFailed, match=r"cannot start: .*: Permission denied"):
        examine(engine, None)


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "alive")
    body = f'(exec sleep 60) > "{tmp_path}/alive" & echo litter > litter\n{LISTEN}'
    reader = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)
    assert examine(script(tmp_path, body), False) is None
    os.set_blocking(reader, True)
    assert os.read(reader, 1) == b""  # the end comes when the last writer is dead
    os.close(reader)
    assert {path.name for path in tmp_path.iterdir()} == {"alive", "engine"}


def test_an_engine_does_not_see_the_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://secret")
    with pytest.raises(SmokeTestFailed) as failure:
        examine(script(tmp_path, "env; exit 1"), None)
    assert "PATH=" in str(failure.value)
    assert "secret" not in str(failure.value)


@pytest.mark.parametrize(
    ("output", "nodes"),
    [
        ("12345 nodes 678 nps", 12345),
        ("Nodes searched  : 4711\nNodes/second    : 99", 4711),
        ("info depth 3 score cp 33 nodes 12 nps 7\nBench: 1234567", 1234567),
        ("1,234,567 nodes", 1234567),
        ("nodes: 5\nnodes: 6", 6),
        ("333 nodes/second", None),
        ("333 nodes per second", None),
        ("info depth 3 score cp 33 nodes 12", None),
        ("solved 10 of 20 positions", None),
        ("", None),
    ],
)
def test_node_counts(output: str, nodes: int | None) -> None:
    assert node_count(output) == nodes


def test_thousands_of_options_are_all_heard(tmp_path: Path) -> None:
    named = "option name SomeVeryLongParameterName%05.0f type spin default 50 min 0 max 100"
    options = f"seq -f '{named}' 5000"
    body = LISTEN.replace("echo uciok", f"{options}; echo uciok")
    heard = declared_options(script(tmp_path, body)).by_name
    assert len(heard) == 5000
    assert heard["someverylongparametername00001"].default == 50


ASKED = """\
while read -r line; do
  case $line in
    uci) echo uciok;;
    isready) echo readyok;;
    "go nodes"*) {answer};;
    quit) exit 0;;
  esac
done
"""


@pytest.mark.parametrize(
    ("answer", "seconds", "said"),
    [
        (":", 0.5, "hang: no bestmove within 0.5 s of `go nodes 500`; if the engine does not know"),
        ("exit 7", 20.0, "crash: exit status 7\n  | uciok\n"),
        ("kill -SEGV $$", 20.0, "crash: killed by SIGSEGV\n"),
        ("echo 'bestmove (none)'", 20.0, "no move: 'bestmove (none)'\n"),
    ],
)
def test_an_engine_that_ignores_the_limit_is_named_with_what_was_asked(
    tmp_path: Path, answer: str, seconds: float, said: str
) -> None:
    engine = script(tmp_path, ASKED.format(answer=answer))
    first = Limit(b"go nodes 500\n", seconds)
    with pytest.raises(SmokeTestFailed) as failure:
        examine(engine, False, first_search=first)
    assert f"asked `go nodes 500`: {said}" in str(failure.value)


def test_an_engine_that_searches_with_a_clock_alone_is_named(tmp_path: Path) -> None:
    clock = '"go wtime"*) echo info depth 1 score cp 3; echo bestmove e2e4;;'
    silent = ASKED.format(answer="echo bestmove a2a3")
    first = Limit(b"go nodes 500\n", 20.0)
    engine = script(tmp_path, silent.replace("    quit)", f"    {clock}\n    quit)"))
    with pytest.raises(SmokeTestFailed, match="`go nodes 500`, it moves without a search; if the"):
        examine(engine, False, first_search=first)
    mute = clock.replace("echo info depth 1 score cp 3; ", "")
    engine.write_text(engine.read_text().replace(clock, mute))
    examine(engine, False, first_search=first)


def test_an_engine_that_lacks_an_option_is_refused(tmp_path: Path) -> None:
    engine = script(tmp_path, LISTEN)
    with pytest.raises(SmokeTestFailed, match="no option 'UCI_Chess960', so it does not play"):
        examine(engine, False, options={"UCI_Chess960": "true"})


def test_an_engine_that_obeys_the_limit_passes(tmp_path: Path) -> None:
    engine = script(
        tmp_path, ASKED.format(answer="echo info depth 1 score cp 3; echo bestmove e2e4")
    )
    examine(engine, False, first_search=Limit(b"go nodes 500\n", 20.0))


@pytest.mark.parametrize(
    ("control", "go", "seconds"),
    [
        (TimeControl(kind=TimeKind.NODES, low=1, high=2000), "go nodes 2000", 30),
        (TimeControl(kind=TimeKind.DEPTH, low=1, high=9), "go depth 9", 120),
        (TimeControl(low=0.1, high=0.25), "go movetime 250", 10.25),
        (
            TimeControl(kind=TimeKind.CLOCK, low=8, high=8, increment=0.08),
            "go wtime 8000 btime 8000 winc 80 binc 80",
            18,
        ),
    ],
)
def test_every_time_control_has_a_deadline(control: TimeControl, go: str, seconds: float) -> None:
    assert longest_search(control) == Limit(f"{go}\n".encode(), seconds)
