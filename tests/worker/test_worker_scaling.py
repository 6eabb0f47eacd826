"""Times that follow the speed of a machine, and slots that follow the threads of engines."""

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from asking import Store
from test_worker_loop import hired

from spsa.core.game_settings import Scale, TimeControl, TimeKind
from spsa.protocol import Measured
from worker.batches import jobs as scaling
from worker.batches.loop import Worker

PAUSE = 0.03
NPS = 77 / PAUSE
"""The scripted engine counts 77 nodes a move, and takes longer than it sleeps."""

MOVETIME = TimeControl(low=0.2, high=0.2)
NODES = TimeControl(kind=TimeKind.NODES, low=1, high=1)


class Watching:
    """A view that remembers how many slots played at a time; at `enough` it opens the gate."""

    due_at, most = 0.0, 0
    measured = Measured()  # what the worker tells with its next sign of life

    def __init__(self, gate: Path, enough: int) -> None:
        self._gate, self._enough = gate, enough
        self._note(0)

    def show_worker(self, worker: Worker) -> None:
        self._note(sum(batch is not None for batch in worker.playing))

    def _note(self, playing: int) -> None:
        self.most = max(self.most, playing)
        if self.most >= self._enough:
            self._gate.touch()


@pytest.fixture
def gated(offer: Callable[..., int], tmp_path: Path) -> Callable[..., int]:
    """Opens an iteration of `count` batches of one pair between engines that wait at a gate."""

    def open_iteration(count: int = 2, **settings: Any) -> int:
        threads = "Threads type spin default 1 min 1 max 9"
        common = {"option": threads, "sleep": PAUSE, "gate": tmp_path / "gate"}
        plus = common | {"log": tmp_path / "log"}
        games = {"target_games": 2 * count, "batch_games": 2}
        return offer(plus=plus, minus=common, settings=settings, **games)

    return open_iteration


@pytest.fixture
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines of exactly NPS, however long a busy machine takes for a move."""
    counted = scaling.SearchReply.nodes.fget
    nodes = property(lambda reply: round(counted(reply) * reply.seconds / PAUSE))
    monkeypatch.setattr(scaling.SearchReply, "nodes", nodes)


def work(
    store: Store, folder: Path, slots: int, enough: int = 0, **options: Any
) -> tuple[int, Watching]:
    watching = Watching(folder / "gate", enough)
    with hired(store, folder, slots, watching, **options) as (worker, _):
        code = worker.run()
        watching.measured = worker._measured
        return code, watching


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], str]]:
    logging.getLogger("worker").propagate = True
    caplog.set_level(logging.INFO)
    yield lambda: caplog.text
    logging.getLogger("worker").propagate = False


def times_asked(folder: Path) -> list[int]:
    asked = [line.split() for line in (folder / "log").read_text().splitlines()]
    return [int(words[2]) for words in asked if words[:2] == ["go", "movetime"]]


@pytest.mark.usefixtures("exact")
def test_a_slow_machine_gets_more_time_and_says_so(staged, gated, tmp_path, sql, said):
    gated(time_control=MOVETIME, scale=Scale(target_nps=round(3.3 * NPS)))
    code, watching = work(staged.store, tmp_path, slots=2, max_batches=2)
    assert code == 0
    scales = [scale for (scale,) in sql("SELECT scale FROM spsa_batch")]
    assert scales[0] == scales[1], "measured once for both"
    assert scales[0] == pytest.approx(3.3, rel=0.02)
    in_games = [time for time in times_asked(tmp_path) if time != 250]
    assert set(in_games) == {round(1000 * 0.2 * scales[0])}
    assert said().count("nodes a second here, so times are multiplied by 3.") == 1
    (share,) = staged.store.worker_shares(staged.run.id)
    assert (share.least_scale, share.most_scale) == (scales[0], scales[0])
    assert watching.measured.scale == scales[0]
    assert watching.measured.nps == pytest.approx(NPS, rel=0.02)


def test_a_machine_outside_the_limits_is_told_and_not_served_and_not_blamed(
    staged, gated, tmp_path, sql, said
):
    gated(count=5, time_control=MOVETIME, scale=Scale(target_nps=round(9 * NPS)))
    with pytest.raises(scaling.TuningError, match=r"the scale is \d+\S*; the run allows 0.25 to 4"):
        work(staged.store, tmp_path, slots=2, once=True)
    assert said().count("this machine cannot play it") == 1
    assert sql("SELECT DISTINCT status, attempt, last_error FROM spsa_batch") == [
        ("ready", 0, None)
    ]
    assert sql("SELECT * FROM spsa_failure") == []
    ((left_out,),) = sql("SELECT not_runs FROM spsa_worker WHERE name = 'me'")
    assert json.loads(left_out) == {"first": True}


def test_an_engine_that_counts_no_nodes_cannot_be_scaled(staged, gated, tmp_path, monkeypatch):
    monkeypatch.setattr(scaling.SearchReply, "nodes", 0)
    gated(time_control=MOVETIME, scale=Scale(target_nps=1))
    with pytest.raises(scaling.TuningError, match="does not say how many nodes"):
        work(staged.store, tmp_path, slots=1, max_batches=1)


def test_games_at_fixed_nodes_need_no_scale(staged, gated, tmp_path, sql, said):
    """As the rounds of a validation with a time control of its own may be."""
    gated(time_control=NODES, scale=Scale(target_nps=1))
    assert work(staged.store, tmp_path, slots=1, max_batches=1)[0] == 0
    assert sql("SELECT scale FROM spsa_batch WHERE status = 'done'") == [(1.0,)]
    assert "nodes a second here" not in said()


def test_a_game_takes_a_slot_for_each_thread(staged, gated, tmp_path):
    gated(count=3, time_control=NODES, engine_options={"Threads": "2"})
    code, watching = work(staged.store, tmp_path, slots=5, enough=2, max_batches=3)
    assert (code, watching.most) == (0, 2)


def test_what_does_not_fit_a_machine_is_a_sentence(staged, gated, tmp_path):
    gated(time_control=NODES, engine_options={"Threads": "3"})
    with pytest.raises(scaling.TuningError, match="= 3 needs as many slots, and there are 2"):
        work(staged.store, tmp_path, slots=2, max_batches=1)
