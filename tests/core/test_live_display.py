"""A live view leaves nothing but lines, and is no view where there is no terminal."""

import io
import sys
import threading

import pytest
from engines.faulty import wait_until
from rich.console import Console
from rich.text import Text
from screen import Screen, ScreenFile, console_of

from spsa.live_display import LiveDisplay, counting


def test_a_view_that_is_taller_than_the_screen_is_erased():
    screen, threads = Screen(20, 5), threading.active_count()
    with LiveDisplay(console_of(screen)) as display:
        display.show(Text("\n".join("123456789")), ["left"])
        display.say("a line that is longer than the screen is")
        assert threading.active_count() == threads
    assert screen.everything == "a line that is longe\nr than the screen is\nleft"


@pytest.mark.parametrize("term", [{"TERM": "dumb"}, {}])
def test_no_view_is_shown_on_a_dumb_terminal_or_none(term):
    told = io.StringIO()
    with LiveDisplay(Console(file=told, force_terminal=bool(term), _environ=term)) as display:
        display.show(Text("view"), ["left"])
        display.say("long " * 50)
    assert told.getvalue() == "long " * 50 + "\n"


def test_a_bar_tells_how_much_is_done_and_what_is_said_goes_above_it(monkeypatch):
    screen = Screen(80, 5)
    monkeypatch.setenv("TERM", "xterm")
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, ScreenFile(screen))
    with counting("[b]things[/b]", 4.0) as advance:
        advance(4.0)
        sys.stdout.write("above\n")
        sys.stderr.write("it\n")
        wait_until(lambda: "[b]things[/b] ━━━" in screen.text and screen.text.startswith("above"))
    assert screen.everything == "above\nit"
