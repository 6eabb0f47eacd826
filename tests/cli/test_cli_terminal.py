"""The programs on a real terminal: what its screen shows, and how they leave it."""

import signal

import pytest
from builders import stage
from console import master, worker
from screen import on_terminal
from served import space
from tuner import uci_tuner

pytestmark = pytest.mark.slow


def test_a_watch_fits_the_screen_and_leaves_it_clean(project, project_store):
    stage(project_store, space(40), 3, planned=9)
    command = master("status", "--watch", "--interval", 0.2)
    with on_terminal(command, project, columns=90, lines=24) as terminal:
        view = ("machine-1", "of 40 parameters, those that moved most", "steps moved", "path")
        terminal.wait_for(lambda text: all(part in text for part in view))
        assert len(terminal.shown) <= 24 and terminal.shown[0].startswith("run first: running")
        assert not terminal.cursor_is_shown
        terminal.type(b"\x03")
        assert terminal.wait() == 130
    assert terminal.cursor_is_shown
    assert terminal.everything.count("run first: running") == 1, "the last look alone"
    assert "extra39" in terminal.everything, "which is whole"


def test_a_long_command_says_what_it_does_and_leaves_its_result_alone(project, project_store):
    stage(project_store, space(2), 3)
    with on_terminal(master("doctor"), project) as terminal:
        terminal.wait()
        assert b"checking run first, 3 results " in terminal.written
        assert "checking" not in terminal.everything and terminal.cursor_is_shown
        wanted = terminal.everything
    with on_terminal(master("doctor"), project, TERM="dumb") as terminal:
        terminal.wait()
        assert b"\x1b" not in terminal.written and terminal.everything == wanted


def test_a_master_and_a_worker_on_terminals(tmp_path):
    url = f"sqlite:///{tmp_path}/spsa.db"
    folder = uci_tuner(tmp_path / "tuner", url, iterations=200, think=0.01).folder
    play = worker("--spsa", "-c", "2", "--force", "--engines-cache", str(tmp_path / "cache"))
    with (
        on_terminal(master("run"), folder, DATABASE_URL=url) as lead,
        on_terminal(play, folder, columns=120, DATABASE_URL=url) as hand,
    ):
        view = ("games an hour", "void games: none", "slot 0", "slot 1", "pairs, ")
        hand.wait_for(lambda text: all(part in text for part in view))
        assert "claimed, " in hand.everything, "the log is above"
        view = ("games an hour", "▁", "━", "steps moved")
        seen = lead.wait_for(lambda text: all(part in text for part in view))
        assert "opened: c_k" not in seen
        lead.process.send_signal(signal.SIGTERM)
        assert lead.wait() == 130
        assert "stopping; once more to stop at once" in lead.everything
        assert "steps moved" not in lead.everything and lead.cursor_is_shown
        hand.type(b"\x03")
        assert hand.wait() == 130
        assert hand.cursor_is_shown and "slot 0" not in hand.shown[-1]
        assert "interrupt again to stop at once" in hand.everything
        assert " games of " in hand.everything
