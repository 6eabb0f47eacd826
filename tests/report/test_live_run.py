"""The live view of a master, as it stands on the screen of a terminal."""

import logging
import sys
from collections.abc import Iterator
from itertools import pairwise

import pytest
from builders import LEASE, Stage
from screen import Screen, ScreenFile, console_of
from served import space
from tuned import iterate, tuned, validated

from spsa.core.builds import Builds
from spsa.db import Store
from spsa.db.history_queries import ThetaPoint
from spsa.live_display import LiveDisplay
from spsa.output import StderrLines, echo
from spsa.report.live_run import MAX_OPEN
from spsa.report.progress import Progress
from spsa.report.trails import POINTS, extended, trail_points


@pytest.fixture
def many(sqlite_url: str) -> Iterator[Stage]:
    """A run of 40 parameters with three results; it may go on to 100."""
    with Store(sqlite_url, durable=False) as store:
        yield tuned(store, space(40), 3, planned=100)


def progress(staged: Stage, screen: Screen) -> Progress:
    run = staged.now()
    games = staged.store.totals(run.id).tally
    path = trail_points(staged.store, run)
    return Progress(console_of(screen), games, dict.fromkeys(run.theta, 20.0), path)


def test_a_run_is_shown_on_one_screen(many: Stage) -> None:
    screen = Screen(120, 24)
    builds = Builds(iterations=(5,), sides=("plus", "minus"), seconds=75.0, usual=120.0)
    with progress(many, screen) as shown:
        many.open()
        shown.saw(many.store.tick(many.master, LEASE, builds))
        lines = screen.shown
        assert lines[0].startswith(
            "first: running, 3/100 iterations, 24 games, 1 worker on 4 slots"
        )
        assert lines[1].endswith("3%, time left not known yet") and lines[1].startswith("━")
        assert lines[2].startswith("tune 4") and lines[2].endswith("0/8 waiting for a worker")
        assert lines[3] == "building iteration 5: plus and minus, 1m 15s of about 2m 0s"
        assert lines[4] == "17 of 40 parameters, those that moved most"
        heads = "name start theta steps moved path in its bounds signal/noise"
        assert " ".join(lines[5].split()) == heads, screen.text
        assert len(lines) == 23, "the terminal has one line more"
        assert not screen.cursor_is_shown
    assert screen.shown == ["first: running, 3/100 iterations, 24 games, 1 worker on 4 slots"]
    assert screen.cursor_is_shown and screen.everything == screen.text


def test_the_parameters_move_and_no_line_is_added(many: Stage) -> None:
    screen = Screen(100, 60)
    with progress(many, screen) as shown:
        for _ in range(2):
            iterate(many)
            done = many.store.iterations(many.run.id)[-1]
            shown.applied(done, Step(dict.fromkeys(many.run.theta, 1.0)))
            shown.opened(9, Step({}))
            shown.saw(many.store.tick(many.master, LEASE))
        theta = many.now().theta["margin"]
        row = next(line for line in screen.shown if line.startswith("margin"))
        assert f"{theta:.6g}" in row and row.count("●") == 1
        assert sum(c in "▁▂▃▄▅▆▇█" for c in row) == 6, "the start and five results"
        assert screen.text.count("iteration 5 done: games 8: ") == 1
        assert screen.text.count("iteration 4 done") == 0
        assert screen.shown[3] == "parameters" and len(screen.shown) == 5 + 40
    assert screen.everything == screen.text


class Step:
    elo, bounded, c_k, a_k = 1.0, False, 1.0, 1.0

    def __init__(self, delta: dict[str, float]) -> None:
        self.delta = self.theta = delta


def test_a_match_has_the_bar(many: Stage) -> None:
    validated(many)
    screen = Screen(80, 24)
    with progress(many, screen) as shown:
        many.open(purpose="validate", k=None, a_k=None, c_k=None)
        shown.saw(many.store.tick(many.master, LEASE))
        assert "validation, 8 games of the tuned values against the start" in screen.text
        assert "0%, " in screen.shown[2]


def test_a_small_terminal_gets_what_fits(many: Stage) -> None:
    for _ in range(MAX_OPEN + 2):
        many.open(k=many.store.tick(many.master, LEASE).opened + 1, in_flight=9)
    screen = Screen(60, 9)
    with progress(many, screen) as shown:
        shown.saw(many.store.tick(many.master, LEASE))
        assert "2 more" in screen.text and "0/16" in screen.text
        assert "margin" not in screen.text, "there is no line left"
    assert len(screen.shown) <= 2 and screen.everything == screen.text


def test_lines_go_above_the_view_unbroken(many: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(60, 24)
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, ScreenFile(screen))
    log = logging.Logger("test")
    log.addHandler(StderrLines())
    long = "a-word-" * 30
    with progress(many, screen) as shown:
        shown.saw(many.store.tick(many.master, LEASE))
        before = screen.shown
        log.warning("first %s", long)
        echo("second", err=True)
        sys.stdout.write("third, [bold]not[/bold] :smile: finished")
        shown.saw(many.store.tick(many.master, LEASE))
    everything = screen.everything.split("\n")
    assert "".join(everything[:4]) == f"first {long}"
    assert everything[4:6] == ["second", "third, [bold]not[/bold] :smile: finished"]
    assert "".join(everything[6:]).startswith(before[0]) and len(everything) == 8
    assert sys.stderr.write("x") == 1 and screen.shown[-1].endswith("x")


def test_a_stream_that_is_a_file_stays_one(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(60, 24)
    with LiveDisplay(console_of(screen)) as display:
        display.show("a view")
        echo("data")
        echo("talk", err=True)
        assert screen.shown == ["a view"]
    assert capsys.readouterr() == ("data\n", "talk\n")
    assert screen.shown == [""]


def test_a_growing_path_stays_short_and_even() -> None:
    path = [ThetaPoint(k=0, theta={}, at=None)]
    for k in range(1, 200):
        path = extended(path, ThetaPoint(k=k, theta={}, at=None))
        ks = [point.k for point in path]
        assert len(ks) <= POINTS and ks[0] == 0 and ks[-1] == k
        strides = {after - before for before, after in pairwise(ks[:-1])}
        assert len(strides) <= 1 and ks[-1] - ks[-2] <= min(strides, default=1), ks
