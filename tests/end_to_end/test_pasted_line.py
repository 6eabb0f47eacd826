"""A new machine with nothing but Python: the line that `workers invite` prints, and what follows.

The server is `spsa-master serve` on an SQLite file, the worker its worker.pyz in an empty folder.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from asking import Store
from builders import NODES, Stage, digest, new_engine, stage
from console import environment, master, write_project
from engines.faulty import LOSER, WINNER, engine, start_book, wait_until
from served import serve

from spsa.core.game_settings import Book, GameSettings
from spsa.core.scoring import Tally
from spsa.history.doctor import check_run


@pytest.fixture
def book(tmp_path: Path) -> Book:
    path = start_book(tmp_path)
    return Book(name=str(path), sha256=digest(path))


@pytest.fixture
def staged(sqlite_url: str, book: Book) -> Iterator[Stage]:
    """A run whose book is in the database alone."""
    content = Path(book.name).read_bytes()
    Path(book.name).unlink()
    with Store(sqlite_url, durable=False) as store:
        yield stage(store, files={book.sha256: content})


@pytest.fixture
def address(tmp_path: Path, sqlite_url: str) -> Iterator[str]:
    write_project(tmp_path)
    with serve(tmp_path, "--database-url", sqlite_url) as (_, found):
        yield found.rstrip("/")


@pytest.fixture
def open_iteration(staged: Stage, book: Book, tmp_path: Path) -> Callable[..., int]:
    """Opens an iteration of four batches, with engines that are in the database alone."""

    def opened(**minus: Any) -> int:
        sides = {
            "plus": engine(tmp_path, "plus", moves=WINNER),
            "minus": engine(tmp_path, "minus", **{"moves": LOSER} | minus),
        }
        engines = {
            side: new_engine(side, sha256=digest(path), content=path.read_bytes())
            for side, path in sides.items()
        }
        for path in sides.values():
            path.unlink()
        return staged.open(
            **engines,
            plus_options={},
            minus_options={},
            batch_games=2,
            game_settings=GameSettings(time_control=NODES, book=book),
        )

    return opened


class Machine:
    """A folder, and a path with a python3 that has no packages."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        programs = folder / "bin"
        programs.mkdir(parents=True)
        python = programs / "python3"
        python.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
        python.chmod(0o755)
        self._environment = {
            "PATH": f"{programs}:/usr/bin:/bin",
            "HOME": str(folder),
            "NO_PROXY": "127.0.0.1",
        }
        self.log = folder / "log"
        self.process: subprocess.Popen[bytes] | None = None

    def paste(self, line: str) -> None:
        """Run a line of the shell, with all it writes in the log."""
        self.process = subprocess.Popen(
            ["sh", "-c", f"exec 2>{self.log}; {line}"],
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    found = Machine(tmp_path / "machine")
    yield found
    found.kill()


@pytest.fixture
def invite(sqlite_url: str, address: str, tmp_path: Path) -> Callable[[str], str]:
    """Runs `workers invite NAME`; the line that it prints, for the slots that are here."""

    def invited(name: str) -> str:
        words = ("workers", "invite", name, "--url", address, "--database-url", sqlite_url)
        done = run_master(tmp_path, *words)
        return done.stdout.strip() + " -c 1 --lease 10"

    return invited


def run_master(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(
        master(*words), cwd=folder, env=environment(), capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("curl") is None, reason="no curl here"),
]


def test_the_pasted_line_counts_games_on_the_page(
    staged: Stage,
    machine: Machine,
    invite: Callable[[str], str],
    open_iteration: Callable[..., int],
) -> None:
    open_iteration()
    machine.paste(invite("laptop"))

    def is_counted() -> bool:
        (iteration,) = staged.store.tick(staged.master, 1000).open
        return iteration.games_played == 8

    wait_until(is_counted, 60)
    (iteration,) = staged.store.tick(staged.master, 1000).open
    assert iteration.tally == Tally(8, 0, 0, (0, 0, 0, 0, 4))
    assert [worker.host for worker in staged.store.workers() if worker.games] == ["laptop"]
    assert check_run(staged.store, staged.now()) == []
    files = {path.name for path in machine.folder.iterdir()}
    assert files <= {"bin", "log", "worker.pyz", ".cache"}
    machine.process.send_signal(signal.SIGINT)  # type: ignore[union-attr]
