"""A fresh binary is tried before a row names it; whatever it does, nothing of it is left."""

import json
import os
from pathlib import Path

import pytest
from golden import compare_cases

from spsa.builds import smoke
from spsa.builds.builder import adopt
from spsa.builds.smoke import against_nodes, bench_of, declared_options, longest_search, node_count
from spsa.core.game_settings import TimeControl, TimeKind
from spsa.core.json_values import from_json
from spsa.errors import SmokeTestFailed, TuningError
from spsa.uci.engine import Limit, SearchReply

LISTEN = """
while read -r line; do
  case "$line" in
    "position fen"*) fen=1 ;;
    ucinewgame) fen= ;;
    uci) echo "id name script"; echo option name Hash type spin; echo uciok ;;
    isready) echo readyok ;;
    "go nodes"*|"go movetime"*) :; GO ;;
    "go wtime"*) :; CLOCK ;;
    quit) exit ;;
  esac
done
"""
PLACES = {"Hsah": "config.toml:7: [engine.options]"}
MOVE = "echo info depth 1 score cp 3; echo bestmove e2e4"


def script(directory: Path, body: str, go: str = "", clock: str = "") -> Path:
    path = directory / "engine"
    path.write_text(f"#!/bin/sh\n{body}".replace("GO", go).replace("CLOCK", clock))
    path.chmod(0o755)
    return path


def test_a_bench_is_recorded(tmp_path, monkeypatch):
    body = 'if [ "$1" = bench ]; then read -r quit; printf "\\377 4711 nodes 9 nps"; exit; fi'
    engine = script(tmp_path, body + LISTEN)
    assert [bench_of(engine, asked) for asked in (None, True, False)] == [4711, 4711, None]
    monkeypatch.setattr(smoke, "_BENCH_SECONDS", 0.2)
    script(tmp_path, f'if [ "$1" = bench ]; then exec sleep 60; fi{LISTEN}')
    assert bench_of(engine, None) is None
    script(tmp_path, LISTEN)
    with pytest.raises(SmokeTestFailed, match="no node count"):
        bench_of(engine, True)


def test_nothing_is_left_behind(tmp_path):
    os.mkfifo(tmp_path / "alive")
    body = f'(exec sleep 6000) > "{tmp_path}/alive" & echo litter > litter\n{LISTEN}'
    reader = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)
    engine = script(tmp_path, body)
    assert declared_options(engine).by_name and bench_of(engine, None) is None
    os.set_blocking(reader, True)
    assert os.read(reader, 1) == b""  # the end comes when the last writer is dead
    os.close(reader)
    assert {path.name for path in tmp_path.iterdir()} == {"alive", "engine"}


def test_engines_that_search_as_asked_and_what_is_said_of_others(tmp_path, monkeypatch):
    def shown(files):
        if output := files.get("bench"):
            return [f"{node_count(output)}"]
        if limits := files.get("control"):
            return [str(longest_search(from_json(TimeControl, json.loads(limits))))]
        go, program = files.get("go", ""), files.get("program", "")
        engine = script(tmp_path, program or LISTEN, go, files.get("clock", ""))
        limit = Limit(f"{files.get('limit', 'go nodes 500')}\n".encode(), 20.0 if go else 0.5)
        options = dict([files["option"].split("=")]) if "option" in files else {}
        monkeypatch.setattr(smoke, "_HANDSHAKE_SECONDS", 0.6 if "#hang" in program else 20.0)
        try:
            declared = declared_options(engine, (), [] if program else [limit])
            smoke.refuse_options(declared, options, PLACES)
        except SmokeTestFailed as failed:
            return dict.fromkeys(str(failed).replace(str(tmp_path), "/here").splitlines())
        return ["as asked"]

    monkeypatch.setenv("AWS_SECRET_KEY", "secret")
    compare_cases(Path(__file__).with_name("smoke.txt"), shown)


def test_an_engine_that_is_published_already_is_tried_at_a_new_limit(tmp_path):
    go = 'case "$line" in *" 500") echo bestmove e7e5 ;; *) MOVE ;; esac'.replace("MOVE", MOVE)
    engine, published = script(tmp_path, LISTEN, go), tmp_path / "published"
    few, more = (TimeControl(kind=TimeKind.NODES, low=n, high=n) for n in (500, 600))
    assert adopt(engine, published, (), [more]) == adopt(engine, published, (), [more])
    with pytest.raises(SmokeTestFailed, match="illegal move: e7e5"):
        adopt(engine, published, (), [few])
    for begins, go in (("sleep 2", MOVE), ("fen=", MOVE.replace("1 score", "1 nodes 7000 score"))):
        script(tmp_path, LISTEN.replace("fen= ;;", f"{begins} ;;"), go)
        declared_options(engine, searches=[Limit(b"go nodes 500\n", 1.5)], tried=True)
    adopt(engine, published)
    with pytest.raises(SmokeTestFailed, match="it searches 7,000 nodes of 1,000"):
        adopt(engine, published, (), [few])
    script(tmp_path, f'echo "# more" >> "$0"; {LISTEN}')
    with pytest.raises(TuningError, match="hashes to"):
        adopt(engine, published)


def test_an_engine_that_hangs_in_one_short_search_of_several_obeys_no_nodes(tmp_path, monkeypatch):
    """Also where it plays by time: a person who asks for nodes later is told before."""
    monkeypatch.setattr(smoke, "_GRACE", 0.5)
    counted = MOVE.replace("cp 3", "cp 3 nodes ${line#go nodes }")
    go = f"n=${{n}}x; [ $n = xxxxxx ] || {{ {counted}; }}"
    engine = script(tmp_path, LISTEN, go)
    other = SearchReply("e2e4", 3, 1.0, b"info nodes 100000 score cp 3")
    assert "hang: no bestmove within 4.56 s of" in against_nodes([str(engine)], {}, other)
    script(tmp_path, LISTEN, go.replace("xxxxxx", "-"))
    assert against_nodes([str(engine)], {}, other) == ""
