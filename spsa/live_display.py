"""A live view at the bottom of a terminal; whatever else this process writes goes above it.

It loads rich: a program imports this module only when it shows a view. A display that fails is
switched off and never ends the program.
"""

import io
import logging
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Self, TextIO

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

log = logging.getLogger(__name__)

_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class LiveDisplay:
    """Lines on a console and, if it is a terminal, below them the view that is shown now.

    A context manager. Until its end sys.stdout and sys.stderr print whole lines above the view,
    where they are terminals. With TERM=dumb there is no view.
    """

    def __init__(self, console: Console, refreshes_per_second: float | None = None) -> None:
        self.console = console
        # rich's own redirection breaks long lines and takes those that go to a file
        self._live = Live(
            console=console,
            auto_refresh=refreshes_per_second is not None,
            refresh_per_second=refreshes_per_second or 1,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self.is_live = console.is_terminal and not console.is_dumb_terminal
        self._replaced: dict[str, TextIO] = {}
        self._is_broken = False
        self._left: Sequence[str] = ()

    def __enter__(self) -> Self:
        if self.is_live:
            self.attempt(self._start)
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_live:
            self._restore()
            # rich draws the view once more, and could not erase one that is taller than the screen
            self._live.update("")
            self.attempt(self._live.stop)
            for line in self._left:
                self.say(line)

    def show(self, view: RenderableType, left: Sequence[str] = ()) -> None:
        """Show this view on a terminal; the lines `left` stand in its place at the end."""
        if self.is_live:
            self._left = left
            self.attempt(lambda: self._live.update(view, refresh=True))

    def say(self, line: str) -> None:
        """Print a line; a long one is left to the terminal to wrap."""
        self.attempt(lambda: self.console.print(Text(line), soft_wrap=True))

    def _start(self) -> None:
        self._live.start()
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if stream.isatty():
                self._replaced[name] = stream
                setattr(sys, name, _LinesAbove(self.say, stream))

    def _restore(self) -> None:
        while self._replaced:
            name, stream = self._replaced.popitem()
            getattr(sys, name).end()
            setattr(sys, name, stream)

    def attempt(self, draw: Callable[[], None]) -> None:
        """Draw, but nothing more from the first failure on.

        It may be a terminal that is gone, a closed pipe (rich leaves the program for that), or a
        defect.
        """
        if self._is_broken:
            return
        try:
            draw()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - see above
            self._is_broken = True
            self._restore()
            log.warning("the display failed, the program goes on without it: %r", error)


class _LinesAbove(io.TextIOBase):
    """Takes the place of a stream that is the terminal of a display."""

    def __init__(self, say: Callable[[str], None], stream: TextIO) -> None:
        self._say = say
        self._rest = ""
        self.rich_proxied_file = stream  # where rich writes itself

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Without an encoding click would write past this object."""
        return self.rich_proxied_file.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        return self.rich_proxied_file.errors

    def write(self, text: str) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._say(line)
        return len(text)

    def end(self) -> None:
        """Print a last line that is not finished."""
        if self._rest:
            self.write("\n")

    def fileno(self) -> int:
        return self.rich_proxied_file.fileno()

    def isatty(self) -> bool:
        return True


@contextmanager
def working(what: str) -> Iterator[None]:
    """Say on a terminal's stderr what is being done, and for how long."""
    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    with LiveDisplay(console, refreshes_per_second=4) as display:
        display.show(_Elapsed(what))
        yield


_LINE_SECONDS = 20.0


@contextmanager
def counting(bar: "Bar") -> Iterator[Callable[[float], None]]:
    """Show a bar on a terminal's stderr while it is advanced by the function that this yields.

    A log gets a line now and then instead, and none of what is done at once.
    """
    console, told = Console(stderr=True, highlight=False, markup=False), time.monotonic()
    with LiveDisplay(console, refreshes_per_second=4) as display:
        display.show(bar)

        def advance(amount: float) -> None:
            nonlocal told
            bar.advance(amount)
            now = time.monotonic()
            if not display.is_live and now - told >= _LINE_SECONDS:
                told = now
                display.say(str(bar))

        yield advance


class _Elapsed:
    """A spinner, what is being done, and the seconds so far."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._began = time.monotonic()

    def __rich__(self) -> Text:
        seconds = time.monotonic() - self._began
        frame = _SPINNER[round(4 * seconds) % len(_SPINNER)]
        return Text(f"{frame} {self._what}, {seconds:.0f} s", no_wrap=True, overflow="ellipsis")


class Bar:
    """A bar of what is done of a total, the seconds so far and those that are left."""

    def __init__(self, what: str, total: float) -> None:
        self._what, self._total, self._done = what, total, 0.0
        self._began = time.monotonic()

    def advance(self, amount: float) -> None:
        self._done += amount

    def __str__(self) -> str:
        return f"{self._what}: {100 * self._done / self._total:.0f} %"

    def __rich__(self) -> Table:
        seconds = time.monotonic() - self._began
        left = seconds * (self._total / self._done - 1.0) if self._done else None
        told = f"{seconds:.0f} s" if left is None else f"{seconds:.0f} s, {left:.0f} s to go"
        row = Table.grid(padding=(0, 1))
        row.add_row(self._what, ProgressBar(self._total, self._done, width=40), told)
        return row


class Rate:
    """How many a second there were in the last `window` seconds, from counts as they are seen."""

    def __init__(self, window: float) -> None:
        self._window = window
        self._seen: deque[tuple[float, int]] = deque()

    def saw(self, now: float, count: int) -> None:
        self._seen.append((now, count))
        while now - self._seen[0][0] > self._window:
            self._seen.popleft()

    @property
    def per_second(self) -> float | None:
        """None before any time has gone by."""
        (first, fewer), (last, more) = self._seen[0], self._seen[-1]
        return (more - fewer) / (last - first) if last > first else None
