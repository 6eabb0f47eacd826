"""A program makes a file for each side, which reaches direct and remote workers by its hash."""

import json
import os
import re
import shutil
import struct
import subprocess

import chess.pgn
import pytest
from asking import Store
from builders import space_from
from console import Running, call, compete, worker
from served import serve
from tuner import ENGINE, uci_tuner

from spsa.builds.sources.rewriting import render

WRITES = "import sys; open('EvalFile', 'w').write(sys.stdin.read())"

pytestmark = pytest.mark.slow


def by_files(folder, url, program=WRITES):
    """A run of the engine whose choices a file decides."""
    tuner = uci_tuner(folder, url, iterations=2)
    tuner.configure("[delivery]", '[delivery]\ncommand = ["python3", "net.py"]')
    tuner.configure("[build]", '[build]\nsource_path = "net"')
    tuner.params = tuner.params.replace('option = "patience"\n', "").replace("[calm]", "[patience]")
    (folder / "net").mkdir()
    (folder / "net" / "net.py").write_text(program)
    tuner.write_files()
    return tuner


def remote(tuner):
    """What starts a worker of a server, which sees no folder of the master."""
    _, address = serve(tuner.folder, "--database-url", tuner.url)
    (home := tuner.folder / "laptop").mkdir()
    words = ("--server", address, "--plain-http", "-c", 1, "--lease", 10, "--once")
    own = {"SPSA_TOKEN": tuner.invite("laptop"), "XDG_CACHE_HOME": str(home)}
    return lambda: Running(worker(*words), home, **own)


@pytest.mark.parametrize("way", ["path", "database", "remote"])
def test_a_run_is_played_probed_measured_and_replayed(way, tmp_path, sqlite_url):
    tuner = by_files(tmp_path / "run", sqlite_url)
    if way == "path":
        tuner.configure('distribute = "database"', "")
    if way == "remote":
        tuner.ask("db", "upgrade")
        start, running = remote(tuner), tuner.master()
        tuner.wait_for_work()
        playing = start()
        tuner.ends(running, playing)
    else:
        tuner.tune()
    tuner.ask("doctor")
    with Store(tuner.url) as store:
        rows = store.iterations(store.run().id)
        assert store.run().applied == 2 and store.run().source_sha256
        for it in rows if way != "path" else ():
            content = store.file(it.minus_files["EvalFile"].sha256)
            assert content and json.loads(content) == it.minus_parameters
    assert len({it.plus_sha256 for it in rows} | {it.minus_sha256 for it in rows}) == 1
    replay = worker("--replay", f"{rows[-1].iteration_number}.1")
    again = call(replay, tuner.folder, DATABASE_URL=tuner.url)
    assert again.returncode == 0 and "as it was reported" in again.stdout + again.stderr
    if way == "path":
        tuner.validate("--games", 4)
        assert "2 parameters probed, 0 dead" in tuner.ask("probe", code=1).stdout
        named = tuner.ask("status").stdout.split("take the result: `spsa-master ")[1].split("`")[0]
        told = tuner.ask(*named.split()).stdout
        subprocess.run(["python3", "net/net.py"], input=told, text=True, cwd=tuner.folder)
        assert json.loads((tuner.folder / "EvalFile").read_text()).keys() == {
            "boldness",
            "patience",
        }


def test_a_program_that_fails_ends_the_start_with_its_own_words(tmp_path, sqlite_url):
    tuner = by_files(tmp_path / "run", sqlite_url, "import sys; sys.exit('no such net: v3')")
    failed = tuner.ask("run", code=4)
    assert "no such net: v3" in failed.stderr and "boldness = " in failed.stderr


@pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo")
def test_the_bundled_engine_reads_tables_of_squares(tmp_path):
    engine = built(tmp_path / "engine", "--features", "options")

    def bench(*options):
        given = "".join(f"setoption name {one}\n" for one in options) + "bench 7\nquit\n"
        done = subprocess.run([engine], input=given, capture_output=True, text=True)
        return done.stdout.split("\n")[-2].split()[0] if done.returncode == 0 else done.stdout

    text = (ENGINE / "src/piece_square_tables.rs").read_text()
    own, flat, short = (tmp_path / name for name in ("own", "flat", "short"))
    own.write_bytes(tables(text))
    flat.write_bytes(bytes(768))
    short.write_bytes(bytes(764))
    assert bench(f"EvalFile value {own}") == bench() != bench(f"EvalFile value {flat}")
    assert "764 bytes, not 768" in bench(f"EvalFile value {short}")


def tables(source):
    """The tables of the engine's source as its file has them."""
    found = b""
    for kind in ("PAWN", "KNIGHT", "BISHOP", "ROOK", "QUEEN", "KING"):
        body = re.search(rf"const {kind}: Half = \[(.*?)\n\];", source, re.S)
        pairs = re.findall(r"\((-?\d+), (-?\d+)\)", body[1].replace("NONE", "(0, 0)"))
        found += b"".join(struct.pack("<hh", int(a), int(b)) for a, b in pairs)
    return found


CONSTANTS = "src/engine_constants.rs"
# far from the constants, so that games differ from those of the usual engine
PLUS = {
    "RAZOR_MARGIN_PER_DEPTH": 150,
    "NULL_MOVE_REDUCE_DEPTH_BASE": 1,
    "SEE_PRUNE_MARGIN": 90,
    "QUIESCENCE_DELTA_MARGIN": -50,
    "BETA_PRUNE_MARGIN_PER_DEPTH": 60,
    "LMR_MIN_DEPTH": 5,
}


def built(folder, *flags, values=None):
    """The engine with these constants, built in a folder of its own."""
    shutil.copytree(ENGINE, folder, ignore=shutil.ignore_patterns("target"))
    if values:
        table = "{} = {{ value = {}, min = -9999, max = 9999, step = 1 }}\n"
        space = space_from("".join(table.format(n.lower(), value) for n, value in values.items()))
        texts = {CONSTANTS: (folder / CONSTANTS).read_text()}
        named = {p.name: p.value for p in space.parameters}
        (folder / CONSTANTS).write_text(render(space, named, texts)[CONSTANTS])
    subprocess.run(
        ["cargo", "build", "--release", "--offline", "--quiet", *flags],
        cwd=folder,
        env=os.environ | {"CARGO_TARGET_DIR": str(folder / "target")},
        check=True,
    )
    return folder / "target" / "release" / "diapason"


def games(first, second, pgn, *options):
    """The moves of each game of a match at fixed nodes."""
    words = ("--games", 6, "--nodes", 2000, "--seed", 7, "--pgn", pgn, "--no-sandbox")
    done = compete(first, second, *words, *options)
    assert done.returncode == 0, done.stderr
    with pgn.open() as text:
        read = iter(lambda: chess.pgn.read_game(text), None)
        return [" ".join(move.uci() for move in game.mainline_moves()) for game in read]


@pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo")
def test_both_deliveries_play_the_same_games(tmp_path):
    by_options = built(tmp_path / "uci", "--features", "options")
    plus, usual = built(tmp_path / "plus", values=PLUS), built(tmp_path / "usual")
    sent = [f"--option1={name}={value}" for name, value in PLUS.items()]
    by_build = games(plus, usual, tmp_path / "build.pgn")
    over_uci = games(by_options, by_options, tmp_path / "uci.pgn", *sent)
    assert len(by_build) == 6 and len(set(by_build)) > 1
    assert sorted(over_uci) == sorted(by_build)  # pairs of two slots come as they end
    assert games(usual, usual, tmp_path / "usual.pgn") != by_build, "the constants change games"
