"""What a playing worker has loaded: its database's driver, the rules, and little else."""

import json
import re
import sys
from types import SimpleNamespace
from typing import Any, cast

import pytest
from asking import Store
from builders import NODES
from console import ROOT, call
from screen import Screen, console_of
from trials import opened

from spsa.core.scoring import Tally
from spsa.protocol import BatchResult
from worker.batches import live_view
from worker.batches.live_view import LiveView
from worker.batches.loop import Worker
from worker.runner.game import NOTHING_PLAYED
from worker.runner.loop import ActiveJob

NEVER = {
    *("alembic", "chess.engine", "chess.pgn", "chess.svg", "http.client", "urllib3"),
    *("multiprocessing", "numpy", "pydantic", "rich", "spsa.config", "spsa.master"),
    *("tomlkit", "tree_sitter", "xml"),
}
OF_A_SERVER = frozenset({"psycopg2", "spsa.db.postgresql"})

START = """
import atexit, ctypes, gc, json, sys
def tell():
    is_dumpable = getattr(ctypes.CDLL(None), "prctl", lambda _: 0)(3)
    interval, is_frozen = round(sys.getswitchinterval(), 6), gc.get_freeze_count() > 9999
    print(json.dumps([[is_dumpable, interval, gc.get_threshold(), is_frozen], sorted(sys.modules)]))
atexit.register(tell)
from worker.cli import main
main()
"""


@pytest.mark.slow
def test_a_worker_loads_only_what_it_plays_with(database_url, tmp_path):
    with Store(database_url) as store:
        opened(store, tmp_path, NODES)
    command = [sys.executable, "-c", START, "--spsa", "-c", "1", "--max-batches", "1"]
    done = call(command, tmp_path, DATABASE_URL=database_url, XDG_CACHE_HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    tuned, modules = json.loads(done.stdout)
    assert tuned == [0, 0.0002, [20_000, 20, 50], True], "its memory is hidden"
    of_a_server = OF_A_SERVER if database_url.startswith("postgresql") else set()
    assert set(modules) & (NEVER | OF_A_SERVER) == of_a_server


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


JOB: Any = SimpleNamespace(label="first it 1 batch 0", pairings=(None, None))
BATCH = ActiveJob(JOB, 0.0, result=BatchResult(tally=Tally.of_pair(2, 1)))


def worker(**over):
    usual = {"state": "playing", "played": NOTHING_PLAYED, "done": 0}
    return cast(Worker, SimpleNamespace(**usual | over))


def test_slots_and_faults_are_shown(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(live_view.time, "monotonic", lambda: now[0])
    screen = Screen(57, 20)
    with LiveView("me", console_of(screen)) as view:
        now[0] += 90.0
        played = BatchResult(tally=Tally.of_pair(2, 1), plus_time_losses=1, voids={"crash": 2})
        view(worker(playing=[BATCH, None], played=played, done=3))
        assert screen.shown == [
            "me: 2 games of 3 batches in 1.5 min, 80 games an hour",
            "playing; void games: 2 crash; games lost on time: 1",
            "slot 0 first it 1 batch 0, 1/2 pairs, +1 -0 =1 [0 0 0 1 …",
            "slot 1 no batch",
        ]
        now[0] += 0.9
        view(worker())
        now[0] += 0.1
        view(worker(playing=[None] * 64))
        assert screen.shown[-1] == "48 more slots"
    assert screen.shown[0].startswith("me: 0 games of 0") and screen.cursor_is_shown
