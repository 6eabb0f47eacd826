"""The live view of a worker on the screen of a terminal."""

from typing import Any

import pytest
from builders import Stage
from screen import Screen, console_of

from spsa.core.scoring import Tally
from spsa.protocol import BatchResult
from worker.batches import live_view
from worker.batches.active_batch import ActiveBatch, Activity
from worker.batches.live_view import LiveView
from worker.runner.game import NOTHING_PLAYED


def claimed(staged: Stage) -> ActiveBatch:
    staged.open()
    claim = staged.claim("one")
    assert claim is not None
    return ActiveBatch(claim, 0.0, result=BatchResult(tally=Tally.of_pair(2, 1)))


def activity(slots: list[ActiveBatch | None], **over: Any) -> Activity:
    usual: dict[str, Any] = {"state": "playing", "played": NOTHING_PLAYED, "batches": 0}
    return Activity(slots=slots, **usual | over)


def test_slots_and_faults_are_shown(staged: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(live_view.time, "monotonic", lambda: now[0])
    screen = Screen(100, 20)
    with LiveView("me", console_of(screen)) as view:
        batch = claimed(staged)
        now[0] += 90.0
        played = BatchResult(tally=Tally.of_pair(2, 1), plus_time_losses=1, voids={"crash": 2})
        view.show(activity([batch, None], played=played, batches=3))
        assert screen.shown == [
            "me: 2 games of 3 batches in 1.5 min, 80 games an hour",
            "playing; void games: 2 crash; games lost on time: 1",
            "slot 0 first it 1 batch 0, 1/2 pairs, +1 -0 =1 [0 0 0 1 0]",
            "slot 1 no batch",
        ]
        assert view.due_at == 1091.0
    assert screen.shown[0].startswith("me: 2 games of 3") and screen.cursor_is_shown


def test_more_slots_than_lines() -> None:
    screen = Screen(60, 10)
    with LiveView("me", console_of(screen)) as view:
        view.show(activity([None] * 64))
        assert screen.shown[-1] == "58 more slots, 0 of them play" and len(screen.shown) == 9
