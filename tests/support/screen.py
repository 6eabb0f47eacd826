"""A program on a terminal of its own, and what stands on the screen of that terminal."""

import fcntl
import io
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyte
from console import environment
from rich.console import Console

SECONDS = 240.0


class Screen:
    """What a terminal of so many columns and lines shows of the bytes that are written to it."""

    def __init__(self, columns: int = 100, lines: int = 30) -> None:
        self.screen = pyte.HistoryScreen(columns, lines, history=10_000)
        self._stream = pyte.ByteStream(self.screen)
        self.written = b""

    def feed(self, data: bytes) -> None:
        self.written += data
        self._stream.feed(data)

    @property
    def shown(self) -> list[str]:
        """The lines on the screen, without the empty ones at its end."""
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip("\n").split("\n")

    @property
    def text(self) -> str:
        return "\n".join(self.shown)

    @property
    def everything(self) -> str:
        """Also what has left the screen at its top."""
        columns = range(self.screen.columns)
        gone = ["".join(line[x].data for x in columns).rstrip() for line in self.screen.history.top]
        return "\n".join([*gone, *self.shown])

    @property
    def cursor_is_shown(self) -> bool:
        return not self.screen.cursor.hidden


class ScreenFile(io.TextIOBase):
    """A file of this process that is a screen; it breaks lines as a terminal does."""

    encoding = "utf-8"
    errors = "strict"

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def write(self, text: str) -> int:
        self._screen.feed(text.replace("\n", "\r\n").encode())
        return len(text)

    def isatty(self) -> bool:
        return True


def console_of(screen: Screen) -> Console:
    """A console that draws on this screen."""
    return Console(
        file=ScreenFile(screen),
        force_terminal=True,
        width=screen.screen.columns,
        height=screen.screen.lines,
        color_system=None,
        markup=False,
        emoji=False,
        highlight=False,
        _environ={"TERM": "xterm"},
    )


class Terminal(Screen):
    """A terminal with a program that runs in its foreground."""

    def __init__(
        self, leader: int, process: subprocess.Popen[bytes], columns: int, lines: int
    ) -> None:
        super().__init__(columns, lines)
        self._leader = leader
        self.process = process

    def type(self, keys: bytes) -> None:
        os.write(self._leader, keys)

    def wait_for(self, found: Callable[[str], bool]) -> str:
        """The text of the screen as soon as it is what is waited for."""
        end = time.monotonic() + SECONDS
        while not found(self.text):
            assert time.monotonic() < end, self.everything
            if not self._read(0.2):
                break
        assert found(self.text), self.everything
        return self.text

    def wait(self) -> int:
        """The exit code."""
        end = time.monotonic() + SECONDS
        while self._read(1.0):
            assert time.monotonic() < end, self.everything
        return self.process.wait(SECONDS)

    def _read(self, seconds: float) -> bool:
        """Whether more may come."""
        if not select.select([self._leader], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self._leader, 65536)
        except OSError:  # how a terminal says that the other side is closed
            return False
        self.feed(data)
        return bool(data)


@contextmanager
def on_terminal(
    command: list[str], folder: Path, columns: int = 100, lines: int = 30, **variables: str
) -> Iterator[Terminal]:
    """A program with a terminal as stdin, stdout and stderr; it is killed at the end."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    settings = termios.tcgetattr(follower)
    settings[3] |= termios.NOFLSH  # Ctrl-C would drop a part of a view that is not read yet
    termios.tcsetattr(follower, termios.TCSANOW, settings)
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment(**{"TERM": "xterm"} | variables),
        stdin=follower,
        stdout=follower,
        stderr=follower,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(follower)
    try:
        yield Terminal(leader, process, columns, lines)
    finally:
        process.kill()
        process.wait()
        os.close(leader)
