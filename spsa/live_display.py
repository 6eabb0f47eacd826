"""A live view at the bottom of a terminal; whatever else this process writes goes above it.

It loads rich: a program imports this module only when it shows a view. A display that fails is
switched off and never ends the program.
"""

import logging
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Self

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

log = logging.getLogger(__name__)


class LiveDisplay:
    """Lines on a console and, if it is a terminal, below them the view that is shown now.

    A context manager. Until its end sys.stdout and sys.stderr print above the view, where they are
    terminals. With TERM=dumb there is no view.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self._live = Live(console=console, auto_refresh=False, transient=True, **_redirected())
        self.is_live = console.is_terminal and not console.is_dumb_terminal
        self._is_broken = False
        self._left: Sequence[str] = ()

    def __enter__(self) -> Self:
        if self.is_live:
            self.attempt(self._live.start)
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_live:
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

    def attempt(self, draw: Callable[[], None]) -> None:
        """Draw, but nothing more from the first failure on.

        It may be a terminal that is gone, a closed pipe (rich leaves the program for that), or a
        defect.
        """
        if self._is_broken:
            return
        # Ctrl-C comes after the drawing, half of which could not be erased
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            draw()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - see above
            self._is_broken = True
            with suppress(Exception, SystemExit):
                self._live.stop()  # which gives sys.stdout and sys.stderr back
            log.warning("the display failed, the program goes on without it: %r", error)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _redirected() -> dict[str, Any]:
    """What rich prints above a view: rich would also take what goes to a file."""
    return {"redirect_stdout": sys.stdout.isatty(), "redirect_stderr": sys.stderr.isatty()}


@contextmanager
def working(what: str) -> Iterator[None]:
    """Say on a terminal's stderr what is being done, and for how long."""
    with _progress(SpinnerColumn()) as shown:
        shown.add_task(what, total=None)
        yield


@contextmanager
def counting(what: str, total: float) -> Iterator[Callable[[float], None]]:
    """Show a bar on a terminal's stderr while it is advanced by the function that this yields.

    Where stderr is no terminal, one line says what begins.
    """
    with _progress(BarColumn(), TimeRemainingColumn()) as shown:
        if shown.disable:
            sys.stderr.write(f"{what}\n")
        task = shown.add_task(what, total=total)
        yield lambda amount: shown.advance(task, amount)


def _progress(*columns: Any) -> Progress:
    console = Console(stderr=True)
    is_live = console.is_terminal and not console.is_dumb_terminal
    said = TextColumn("{task.description}", markup=False)
    all_columns = (said, *columns, TimeElapsedColumn())
    return Progress(
        *all_columns, console=console, transient=True, disable=not is_live, **_redirected()
    )
