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
from console import ROOT, call
from trials import opened

SCRIPT = ROOT / "tests" / "support" / "plain_system.py"
LACKING = ["sandbox", "orphan reaper"]


def plain(*words: object) -> list[str]:
    return [sys.executable, str(SCRIPT), *map(str, words)]


def warnings(said: str) -> list[str]:
    """The protections that it says it does not have, in order."""
    return re.findall(r"^warning: \w+ has no (.*?)(?: that .*)?: ", said, re.M)


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
