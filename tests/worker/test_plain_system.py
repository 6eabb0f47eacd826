"""`compete` where a system lacks what Linux has: it plays, and says what is missing.

The missing modules and functions are taken away from Linux. macOS was not tried.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from asking import Store
from builders import NODES
from console import ROOT, call, compete
from engines.faulty import engine
from trials import opened

SCRIPT = ROOT / "tests" / "support" / "plain_system.py"
LACKING = ["sandbox", "orphan reaper"]


def plain(*words: object) -> list[str]:
    return [sys.executable, str(SCRIPT), *map(str, words)]


def warnings(said: str) -> list[str]:
    """The protections that it says it does not have, in order."""
    return re.findall(r"^warning: \w+ has no (.*?)(?: that .*)?: ", said, re.M)


def moves(pgn: Path) -> list[str]:
    """The lines of moves, without what the clock decides."""
    lines = [line for line in pgn.read_text().splitlines() if not line.startswith("[")]
    return [re.sub(r" [0-9.]+s", "", line) for line in lines]


def test_a_match_by_nodes_has_the_same_games_as_on_linux(tmp_path: Path) -> None:
    plus, minus = engine(tmp_path, "plus", lines=3), engine(tmp_path, "minus")
    words = (plus, minus, "--games", 4, "--nodes", 100, "-c", 1, "--max-moves", 20, "--seed", 7)
    usual = compete(*words, "--pgn", tmp_path / "usual.pgn")
    # as in some containers
    assert usual.returncode == 0 and set(warnings(usual.stderr)) <= {"PID namespaces"}
    bare = call(plain(*words, "--pgn", tmp_path / "plain.pgn"), ROOT)
    assert (bare.returncode, warnings(bare.stderr)) == (0, LACKING)
    assert moves(tmp_path / "plain.pgn") == moves(tmp_path / "usual.pgn")


def test_a_worker_plays_and_its_row_says_what_is_missing(
    sqlite_url: str, tmp_path: Path, sql: Callable[..., list[Any]]
) -> None:
    with Store(sqlite_url) as store:
        opened(store, tmp_path, NODES)
    words = ("--spsa", "-c", 1, "--max-batches", 1, "--engines-cache", tmp_path / "cache")
    done = call(plain(*words), ROOT, DATABASE_URL=sqlite_url)
    assert (done.returncode, warnings(done.stderr)) == (0, LACKING), done.stderr
    assert sql("SELECT sandbox FROM spsa_worker WHERE sandbox IS NOT NULL") == [("rlimits",)]
    assert sql("SELECT games_played, plus_wins FROM spsa_iteration") == [(4, 4)]
