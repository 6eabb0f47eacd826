"""`compete` where a system lacks what Linux has: it plays, and says what is missing.

The missing modules and functions are taken away from Linux. macOS was not tried.
"""

import re
import sys

from asking import Store
from builders import NODES
from console import ROOT, call
from trials import opened

SCRIPT = ROOT / "tests" / "support" / "plain_system.py"


def test_a_worker_plays_and_its_row_says_what_is_missing(sqlite_url, tmp_path, sql):
    with Store(sqlite_url) as store:
        opened(store, tmp_path, NODES)
    words = ("--spsa", "-c", "1", "--max-batches", "1", "--engines-cache", str(tmp_path))
    done = call([sys.executable, str(SCRIPT), *words], ROOT, DATABASE_URL=sqlite_url)
    warned = re.findall(r"^warning: \w+ has no (.*?): ", done.stderr, re.M)
    assert (done.returncode, warned) == (0, ["sandbox", "orphan reaper"]), done.stderr
    assert sql("SELECT sandbox FROM spsa_worker WHERE sandbox IS NOT NULL") == [("rlimits",)]
    assert sql("SELECT games_played, plus_wins FROM spsa_iteration") == [(4, 4)]
