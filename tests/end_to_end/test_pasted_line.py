"""A new machine with nothing but Python: the line that `workers invite` prints, and what follows.

The server is `spsa-master serve` on an SQLite file, the worker its worker.pyz in an empty folder.
"""

import shutil
import sys
from pathlib import Path

import pytest
from asking import Store
from builders import NODES, Stage, digest, new_engine, stage
from console import Running, call, master, write_project
from engines.faulty import LOSER, WINNER, engine, start_book
from served import serve

from spsa.core.game_settings import Book, GameSettings
from spsa.core.scoring import Tally
from spsa.history.doctor import check_run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("curl") is None, reason="no curl here"),
]


def taken(path: Path) -> bytes:
    """The content of a file, which is gone afterwards: a worker has it from the server alone."""
    content = path.read_bytes()
    path.unlink()
    return content


def staged(store: Store, folder: Path) -> Stage:
    """A run with an iteration of four batches, whose book and engines are in the database alone."""
    path = start_book(folder)
    book = Book(name=str(path), sha256=digest(path))
    run = stage(store, files={book.sha256: taken(path)})
    sides = {}
    for side, moves in (("plus", WINNER), ("minus", LOSER)):
        path = engine(folder, side, moves=moves)
        sides[side] = new_engine(side, sha256=digest(path), content=taken(path))
    game_settings = GameSettings(time_control=NODES, book=book)
    run.open(**sides, plus_options={}, minus_options={}, batch_games=2, game_settings=game_settings)
    return run


def pasted(line: str, folder: Path) -> Running:
    """A line of the shell, run in a folder with a python3 that has no packages."""
    programs = folder / "bin"
    programs.mkdir(parents=True)
    python = programs / "python3"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    python.chmod(0o755)
    own = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(folder), "NO_PROXY": "127.0.0.1"}
    return Running(["sh", "-c", line], folder, own)


def test_the_pasted_line_counts_games_on_the_page(sqlite_url, tmp_path):
    write_project(tmp_path)
    machine, database = tmp_path / "machine", ("--database-url", sqlite_url)
    _, address = serve(tmp_path, *database)
    words = ("workers", "invite", "laptop", "--url", address.rstrip("/"), *database)
    line = call(master(*words), tmp_path).stdout.strip()
    with Store(sqlite_url, durable=False) as store:
        run = staged(store, tmp_path)
        shell = pasted(f"{line} -c 1 --lease 10 --max-batches 4", machine)
        assert shell.ended() == 0, shell.log
        (iteration,) = store.tick(run.master, 1000).open
        assert iteration.tally == Tally(8, 0, 0, (0, 0, 0, 0, 4))
        assert [worker.host for worker in store.workers() if worker.games] == ["laptop"]
        assert check_run(store, run.now()) == []
    assert {path.name for path in machine.iterdir()} <= {"bin", "worker.pyz", ".cache"}
