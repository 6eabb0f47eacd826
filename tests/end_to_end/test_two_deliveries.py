"""The bundled engine plays the same games whether its constants are built in or sent as options."""

import os
import shutil
import subprocess
from pathlib import Path

import chess.pgn
import pytest
from builders import space_from
from console import compete

from spsa.builds.sources.rewriting import render

ENGINE = Path(__file__).parents[2] / "engine"
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


def built(folder: Path, *flags: str, values: dict[str, int] | None = None) -> Path:
    """The engine with these constants, built in a folder of its own."""
    shutil.copytree(ENGINE, folder, ignore=shutil.ignore_patterns("target"))
    if values:
        space = space_from(
            "".join(
                f"[{name.lower()}]\nvalue = {value}\nmin = -9999\nmax = 9999\nstep = 1\n"
                for name, value in values.items()
            )
        )
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


def games(first: Path, second: Path, pgn: Path, *options: str) -> list[str]:
    """The moves of each game of a match at fixed nodes."""
    words = ("--games", 6, "--nodes", 2000, "--seed", 7, "--pgn", pgn, "--no-sandbox")
    done = compete(first, second, *words, *options)
    assert done.returncode == 0, done.stderr
    with pgn.open() as text:
        read = iter(lambda: chess.pgn.read_game(text), None)
        return [" ".join(move.uci() for move in game.mainline_moves()) for game in read]


@pytest.mark.slow
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
