"""The live view of a worker on the screen of a terminal."""

from types import SimpleNamespace
from typing import Any, cast

from screen import Screen, console_of

from spsa.core.scoring import Tally
from spsa.protocol import BatchResult
from worker.batches import live_view
from worker.batches.live_view import LiveView
from worker.batches.loop import Worker
from worker.runner.game import NOTHING_PLAYED
from worker.runner.loop import ActiveJob

JOB: Any = SimpleNamespace(label="first it 1 batch 0", pairings=(None, None))
BATCH = ActiveJob(JOB, 0.0, result=BatchResult(tally=Tally.of_pair(2, 1)))


def worker(**over: Any) -> Worker:
    usual = {"state": "playing", "played": NOTHING_PLAYED, "done": 0}
    return cast(Worker, SimpleNamespace(**usual | over))


def test_slots_and_faults_are_shown(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(live_view.time, "monotonic", lambda: now[0])
    screen = Screen(100, 20)
    with LiveView("me", console_of(screen)) as view:
        now[0] += 90.0
        played = BatchResult(tally=Tally.of_pair(2, 1), plus_time_losses=1, voids={"crash": 2})
        view.show_worker(worker(playing=[BATCH, None], played=played, done=3))
        assert screen.shown == [
            "me: 2 games of 3 batches in 1.5 min, 80 games an hour",
            "playing; void games: 2 crash; games lost on time: 1",
            "slot 0 first it 1 batch 0, 1/2 pairs, +1 -0 =1 [0 0 0 1 0]",
            "slot 1 no batch",
        ]
        assert view.due_at == 1091.0
        view.show_worker(worker(playing=[None] * 64))
        assert screen.shown[-1] == "48 more slots"
    assert screen.shown[0].startswith("me: 0 games of 0") and screen.cursor_is_shown
