"""The live view of a master, as it stands on the screen of a terminal."""

import logging
import sys
from dataclasses import replace
from io import StringIO

import pytest
from asking import Store
from builders import LEASE, new_validation, new_worker, stage
from rich.console import Console
from screen import Screen, ScreenFile, console_of
from served import space

from spsa.core import Builds
from spsa.output import StderrLines, echo
from spsa.report.alarms import look
from spsa.report.events import Alarm, AlarmKind
from spsa.report.screen import MAX_OPEN, MAX_WORKERS, Progress, screen


@pytest.fixture
def many(sqlite_url):
    """A run of 40 parameters with three results; it may go on to 100."""
    with Store(sqlite_url, durable=False) as store:
        yield stage(store, space(40), 3, planned=100, seed=8)


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Every look is shown, however long the one before took."""
    monkeypatch.setattr("spsa.report.screen._COST", 0.0)
    monkeypatch.setattr("spsa.report.screen._LOOK_SECONDS", 0.0)


def progress(staged, terminal):
    return Progress(console_of(terminal), staged.store, staged.now())


def test_a_run_is_shown_on_one_screen(many, transcript):
    terminal = Screen(120, 24)
    builds = Builds(iterations=(5,), seconds=75.0, usual=120.0)
    with progress(many, terminal) as shown:
        many.open()
        shown.saw(many.store.tick(many.master, LEASE, builds))
        first, *lines = terminal.shown
        summary = (line for line in terminal.shown if " 1000 " not in f"{line} ")
        transcript.shows("a run on one screen, without its parameters", "\n".join(summary))
        assert len(lines) == 22, "the terminal has one line more"
        assert not terminal.cursor_is_shown
    assert terminal.shown == [first]
    assert terminal.cursor_is_shown and terminal.everything == terminal.text


def test_the_parameters_move_and_no_line_is_added(many):
    terminal = Screen(100, 60)
    with progress(many, terminal) as shown:
        for _ in range(2):
            many.iterate()
            done = many.store.iterations(many.run.id)[-1]
            shown.applied(done, Step(dict.fromkeys(many.run.theta, 1.0)))
            shown.opened(9, Step({}))
            shown.saw(many.store.tick(many.master, LEASE))
        theta = many.now().theta["margin"]
        row = next(line for line in terminal.shown if line.startswith("margin"))
        assert f"{theta:.6g}" in row
        assert sum(c in "▁▂▃▄▅▆▇█" for c in row) == 6, "the start and five results"
        assert terminal.text.count("iteration 5 done: games 8: ") == 1
        assert terminal.text.count("iteration 4 done") == 0
    assert terminal.everything == terminal.text


class Step:
    elo, bounded, c_k, a_k = 1.0, False, 1.0, 1.0

    def __init__(self, delta):
        self.delta = self.theta = delta


def test_a_look_waits_after_the_one_before(many, monkeypatch):
    monkeypatch.setattr("spsa.report.screen._LOOK_SECONDS", 1000.0)
    terminal = Screen(100, 60)
    with progress(many, terminal) as shown:
        for _ in range(2):
            shown.saw(many.store.tick(many.master, LEASE))
            many.iterate()
        assert "3 of 100 iterations" in terminal.text


def test_without_a_terminal_the_first_line_waits_and_tells_the_pace(many, monkeypatch):
    view = many.store.tick(many.master, LEASE)
    for seconds, lines in ((5.0, 0), (0.0, 1)):
        monkeypatch.setattr("spsa.report.screen._FIRST_SECONDS", seconds)
        written = StringIO()
        with Progress(Console(file=written), many.store, many.now()) as shown:
            for _ in range(2):
                shown.saw(view)
        assert written.getvalue().count("3 of 100 iterations") == lines


def test_parameters_get_the_lines_that_the_rest_leaves(many, transcript):
    for _ in range(MAX_OPEN + 2):
        many.open(k=many.store.tick(many.master, LEASE).opened + 1, in_flight=9)
    many.store.open_iteration(many.master, new_validation(target_games=8))
    for i in range(MAX_WORKERS + 1):
        many.store.register_worker(new_worker(f"w{i}"))
    found, lines = look(many.store, many.now()), list[str]()
    *tunes, match = found.open
    found = replace(found, open=(*tunes, replace(match, games_played=6)))
    for height in (12, 26, 27, 30):
        console = console_of(terminal := Screen(64, height))
        console.print(screen(found, console, "said"))
        shown = terminal.everything.rstrip().split("\n")
        parameters = [line for line in shown if "parameters, " in line]
        lines.append(f"{height}: {len(shown)}, {parameters}")
    transcript.shows("screens of 12 to 30 lines, the last one whole", "\n".join((*lines, *shown)))


def test_alarms_are_whole_and_leave_lines_for_parameters(many, transcript):
    kinds = (AlarmKind.SILENT, AlarmKind.AT_BOUND, AlarmKind.DRAWS, AlarmKind.TIME_CONTROLS)
    alarms = tuple(Alarm(kind, "extra1", "found") for kind in kinds)
    console = console_of(terminal := Screen(80, 24))
    console.print(screen(replace(look(many.store, many.now()), alarms=alarms), console))
    transcript.shows("four alarms on one screen", terminal.everything.rstrip())
    assert terminal.everything.rstrip().count("\n") == 22


def test_lines_go_above_the_view(many, monkeypatch):
    terminal = Screen(70, 24)
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, ScreenFile(terminal))
    log = logging.Logger("test")
    log.addHandler(StderrLines())
    with progress(many, terminal) as shown:
        shown.saw(many.store.tick(many.master, LEASE))
        log.warning("first")
        echo("second", err=True)
        sys.stdout.write("third, [bold]not[/bold] :smile: finished")
        shown.saw(many.store.tick(many.master, LEASE))
    everything = terminal.everything.split("\n")
    said = ["first", "second", "third, [bold]not[/bold] :smile: finished"]
    assert [line for line in everything if line in said] == said
    assert sys.stderr.write("x") == 1 and terminal.shown[-1].endswith("x")
