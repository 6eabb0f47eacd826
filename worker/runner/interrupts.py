"""SIGINT and SIGTERM as a count that a loop reads: the first asks it to end, the second aborts."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from types import FrameType

INTERRUPTED = 130
"""The exit code after SIGINT; after SIGTERM it is 0."""


class Interrupts:
    """How many times this process was asked to stop, and its exit code."""

    def __init__(self) -> None:
        self.count = 0
        self.exit_code = 0
        self._wake: Callable[[], None] = lambda: None
        self._received: SimpleQueue[None] = SimpleQueue()

    def on_each(self, wake: Callable[[], None]) -> None:
        """Call `wake` from the signal handler; it must be reentrant, as SimpleQueue.put is."""
        self._wake = wake

    def wait(self, seconds: float) -> None:
        """Sleep until an interrupt, or for this long."""
        if self.count == 0:
            try:
                self._received.get(timeout=seconds)
            except Empty:
                return

    def note(self, number: int, frame: FrameType | None = None) -> None:
        """The handler of both signals."""
        self.count += 1
        self.exit_code = INTERRUPTED if number == signal.SIGINT else self.exit_code
        self._received.put(None)
        self._wake()


@contextmanager
def interrupts() -> Iterator[Interrupts]:
    """Count both signals; the handlers of before are restored afterwards."""
    received = Interrupts()
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, received.note) for number in numbers]
    try:
        yield received
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
