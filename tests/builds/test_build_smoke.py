"""A fresh binary is tried before a row names it; whatever it does, nothing of it is left."""

import os
from pathlib import Path

import pytest

from spsa.builds import smoke
from spsa.builds.builder import adopt
from spsa.builds.smoke import examine, longest_search, node_count
from spsa.core.game_settings import TimeControl, TimeKind
from spsa.errors import SmokeTestFailed
from spsa.uci.engine import Limit

LISTEN = """
while read -r line; do
  case "$line" in
    uci) echo "id name script"; echo uciok ;;
    isready) echo readyok ;;
    "go nodes"*) :; GO ;;
    "go wtime"*) :; CLOCK ;;
    quit) exit ;;
  esac
done
"""
MOVE = "echo info depth 1 score cp 3; echo bestmove e2e4"


def script(directory: Path, body: str, go: str = "", clock: str = "") -> Path:
    path = directory / "engine"
    path.write_text(f"#!/bin/sh\n{body}".replace("GO", go).replace("CLOCK", clock))
    path.chmod(0o755)
    return path


def refused(engine: Path, seconds: float = 20.0) -> str:
    with pytest.raises(SmokeTestFailed) as failure:
        examine(engine, False, searches=[Limit(b"go nodes 500\n", seconds)])
    return str(failure.value)


def test_a_bench_is_recorded(tmp_path, monkeypatch):
    body = 'if [ "$1" = bench ]; then echo "info nodes 7"; echo "4711 nodes 99 nps"; exit; fi'
    engine = script(tmp_path, body + LISTEN)
    assert examine(engine, None) == examine(engine, True) == 4711
    assert examine(engine, False) is None
    monkeypatch.setattr(smoke, "_BENCH_SECONDS", 0.2)
    script(tmp_path, f'if [ "$1" = bench ]; then exec sleep 60; fi{LISTEN}')
    assert examine(engine, None) is None
    script(tmp_path, LISTEN)
    assert examine(engine, None) is None
    with pytest.raises(SmokeTestFailed, match="no node count"):
        examine(engine, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("exec sleep 60", "hang: no uciok within 0.6 s\n  | (it wrote nothing)"),
        ("read -r x; echo uciok; exec sleep 60", "hang: no readyok within 0.6 s\n  | uciok"),
        ("while :; do echo noise; done", "hang: no uciok within 0.6 s\n  | noise"),
        ("tr '\\0' x < /dev/zero", "flood: a line of more than 65536 bytes\n  | xxx"),
    ],
)
def test_an_engine_that_does_not_answer(body, words, tmp_path, monkeypatch):
    monkeypatch.setattr(smoke, "_HANDSHAKE_SECONDS", 0.6)
    assert f"{tmp_path}/engine: {words}" in refused(script(tmp_path, body))


def test_an_engine_that_ends_at_once_or_cannot_be_started(tmp_path, monkeypatch):
    for name in ("DATABASE_URL", "AWS_SECRET_KEY"):
        monkeypatch.setenv(name, "secret")
    said = refused(script(tmp_path, "env; echo broken >&2; exit 1"))
    assert "crash: exit status 1\n" in said and "  | stderr: broken" in said
    assert "PATH=" in said and "secret" not in said
    (tmp_path / "engine").chmod(0o644)
    assert "Permission denied" in refused(tmp_path / "engine")


def test_nothing_is_left_behind(tmp_path):
    os.mkfifo(tmp_path / "alive")
    body = f'(exec sleep 60) > "{tmp_path}/alive" & echo litter > litter\n{LISTEN}'
    reader = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)
    assert examine(script(tmp_path, body), False) is None
    os.set_blocking(reader, True)
    assert os.read(reader, 1) == b""  # the end comes when the last writer is dead
    os.close(reader)
    assert {path.name for path in tmp_path.iterdir()} == {"alive", "engine"}


@pytest.mark.parametrize(
    ("output", "nodes"),
    [
        ("12345 nodes 678 nps", 12345),
        ("Nodes searched  : 4711\nNodes/second    : 99", 4711),
        ("info depth 3 score cp 33 nodes 12 nps 7\nBench: 1234567", 1234567),
        ("1,234,567 nodes", 1234567),
        ("nodes: 5\nnodes: 6", 6),
        ("333 nodes/second\n333 nodes per second", None),
        ("info depth 3 score cp 33 nodes 12", None),
        ("solved 10 of 20 positions", None),
    ],
)
def test_node_counts(output, nodes):
    assert node_count(output) == nodes


@pytest.mark.parametrize(
    ("answer", "seconds", "said"),
    [
        ("", 0.5, "hang: no bestmove within 0.5 s of `go nodes 500`; if the engine does not know"),
        ("kill -SEGV $$", 20.0, "crash: killed by SIGSEGV\n"),
        ("echo 'bestmove (none)'", 20.0, "no move: 'bestmove (none)'; if it needs"),
        ("echo bestmove e2e5", 20.0, "illegal move: e2e5\n"),
    ],
)
def test_an_engine_that_ignores_the_limit_is_named_with_what_was_asked(
    tmp_path, answer, seconds, said
):
    assert f"asked `go nodes 500`: {said}" in refused(script(tmp_path, LISTEN, answer), seconds)


@pytest.mark.parametrize("reply", ["(none)", "e7e5"])
def test_an_engine_that_finds_no_move_in_a_middle_game_is_named(tmp_path, reply):
    """Also one that is published already: the limit of the run may be new to it."""
    body = LISTEN.replace("uci)", '"position fen"*) fen=1 ;;\nucinewgame) fen= ;;\nuci)')
    go = f'echo info depth 1 score cp 3; [ $fen ] && echo "bestmove {reply}" || echo bestmove e2e4'
    engine = script(tmp_path, body, f'case "$line" in *" 500") {go} ;; *) {MOVE} ;; esac')
    told = refused(engine)
    assert "asked `go nodes 500` in r1bq1rk1/" in told and reply in told
    few, more = (TimeControl(kind=TimeKind.NODES, low=n, high=n) for n in (500, 600))
    published = tmp_path / "published"
    assert adopt(engine, published, (), [more]) == adopt(engine, published, (), [more])
    with pytest.raises(SmokeTestFailed, match="in r1bq1rk1/"):
        adopt(engine, published, (), [few])


def test_an_engine_that_searches_with_a_clock_alone_is_named(tmp_path):
    engine = script(tmp_path, LISTEN, "echo bestmove a2a3", MOVE)
    assert "`go nodes 500`, it moves without a search; if the" in refused(engine)
    for go, clock in (("echo bestmove a2a3", "echo bestmove a2a3"), (MOVE, "exit")):
        script(tmp_path, LISTEN, go, clock)
        examine(engine, False, searches=[Limit(b"go nodes 500\n", 20.0)])


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ("$((${line#go nodes } / 4096 * 4096 + 4096))", ""),
        ("$((${line#go nodes } / 3))", ""),
        ("0", ""),
        ("7000", "it searches 7,000 nodes of 1,000, and 7,000 of 64,000: it ignores `go nodes`"),
        ("$((${line#go nodes } / 100 + 900))", "it searches 910 nodes of 1,000, and 1,540 of 6"),
    ],
    ids=["in steps", "told of late", "no counts", "by depth", "by its clock"],
)
def test_an_engine_that_counts_no_nodes_is_named(tmp_path, nodes, said):
    go = f"echo info depth 1 nodes {nodes} score cp 3; echo bestmove e2e4"
    engine, limit = script(tmp_path, LISTEN, go), Limit(b"go nodes 500\n", 20.0)
    if said:
        told = refused(engine)
        assert said in told and 'set kind = "movetime" or "depth"' in told
    else:
        examine(engine, False, searches=[limit])
    examine(engine, False, searches=[limit], tried=True)


def test_an_engine_that_lacks_an_option_is_refused(tmp_path):
    with pytest.raises(SmokeTestFailed, match="no option 'UCI_Chess960', so it does not play"):
        examine(script(tmp_path, LISTEN), False, options={"UCI_Chess960": "true"})
    options, places = {"Hsah": "1"}, {"Hsah": "config.toml:7: [engine.options]"}
    engine = script(tmp_path, LISTEN.replace("uciok", '"option name Hash type spin\nuciok"'))
    with pytest.raises(SmokeTestFailed) as failed:
        examine(engine, False, options=options, places=places)
    assert "config.toml:7: [engine.options] the engine would not accept it: " in str(failed.value)
    assert "declares no option 'Hsah' (did you mean 'Hash'?)" in str(failed.value)


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
def test_every_time_control_has_a_deadline(control, go, seconds):
    assert longest_search(control) == Limit(f"{go}\n".encode(), seconds)
