"""SIGINT and SIGTERM as a count that a loop looks at: the first asks, the second insists."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from types import FrameType

INTERRUPTED = 130
"""The exit code after SIGINT; SIGTERM is an orderly end and leaves 0."""


class Interrupts:
    """How often this process was asked to stop, and how it should then exit."""

    def __init__(self) -> None:
        self.count = 0
        self.exit_code = 0
        self._wake: Callable[[], None] = lambda: None
        self._bell: SimpleQueue[None] = SimpleQueue()

    def on_each(self, wake: Callable[[], None]) -> None:
        """Call `wake` from the handler; it has to be as harmless there as SimpleQueue.put."""
        self._wake = wake

    def wait(self, seconds: float) -> None:
        """Sleep, but not through an interrupt."""
        if self.count == 0:
            try:
                self._bell.get(timeout=seconds)
            except Empty:
                return

    def note(self, number: int, frame: FrameType | None = None) -> None:
        """The handler of both signals."""
        self.count += 1
        self.exit_code = INTERRUPTED if number == signal.SIGINT else self.exit_code
        self._bell.put(None)
        self._wake()


@contextmanager
def interrupts() -> Iterator[Interrupts]:
    """Count signals instead of dying of them; what was set before is set again afterwards."""
    heard = Interrupts()
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, heard.note) for number in numbers]
    try:
        yield heard
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
