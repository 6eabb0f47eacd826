"""How a batch starts its engines: arguments, books and side files."""

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asking import Store
from builders import LEASE, Stage, stage
from engines.faulty import LOSER, SCRIPT, WINNER, engine, start_book
from test_worker_loop import NODES, PLUS_WINS_ALL, digest, published, work

from spsa.builds.artifacts import ArtifactStore
from spsa.core.game_settings import Book, EngineFile, GameSettings


@pytest.fixture
def store(sqlite_url: str) -> Iterator[Store]:
    with Store(sqlite_url, durable=False) as opened:
        yield opened


def opened(staged: Stage, folder: Path, plus: Path, minus: Path, **over: Any) -> None:
    settings = {"time_control": NODES, "book": Book(name=str(start_book(folder)))}
    staged.open(
        plus=published(plus),
        minus=published(minus),
        batch_games=4,
        plus_options=over.pop("plus_options", {}),
        minus_options=over.pop("minus_options", {}),
        game_settings=GameSettings(**settings | over),
    )


def result(staged: Stage) -> Any:
    (iteration,) = staged.store.tick(staged.master, LEASE).open
    return iteration.tally


def test_arguments_and_side_files_reach_the_engine(staged: Stage, tmp_path: Path) -> None:
    launcher = tmp_path / "launcher"
    launcher.write_text('#!/bin/sh\nexec "$@"\n')
    launcher.chmod(0o755)
    net = tmp_path / "a net.nnue"
    net.write_bytes(b"weights")
    log = tmp_path / "log"
    words = [sys.executable, str(SCRIPT), f"--log={log}"]
    arguments = (*words, "--option=EvalFile type string default <empty>")
    opened(
        staged, tmp_path, launcher, launcher, engine_arguments=arguments,
        engine_files={"EvalFile": EngineFile(path=str(net), sha256=digest(net))},
    )  # fmt: skip
    assert work(staged.store, tmp_path, size=1, max_batches=1) == 0
    hashed = hashlib.sha256(b"weights").hexdigest()
    copy = tmp_path / "cache" / hashed
    assert f"setoption name EvalFile value {copy}\n" in log.read_text()
    assert copy.read_bytes() == b"weights"


@pytest.mark.parametrize("where", ["beside the engines", "in the database"])
def test_a_book_and_a_side_file_come_from_where_the_engines_are(
    where: str, store: Store, tmp_path: Path
) -> None:
    """Their own paths, on the master's machine, are not on this one."""
    folder = tmp_path / "engines"
    folder.mkdir()
    log, book = tmp_path / "log", start_book(tmp_path)
    option = "EvalFile type string default <empty>"
    plus, minus = (
        engine(folder, side, moves=moves, option=option, log=log)
        for side, moves in (("plus", WINNER), ("minus", LOSER))
    )
    net = tmp_path / "net"
    net.write_bytes(b"weights")
    contents = {digest(path): path.read_bytes() for path in (book, net)}
    staged = stage(store, files=contents if where == "in the database" else {})
    if where == "beside the engines":
        for path in (book, net):
            ArtifactStore(folder).put(path)
    opened(
        staged, tmp_path, plus, minus,
        book=Book(name="/gone/start.epd", sha256=digest(book)),
        engine_files={"EvalFile": EngineFile(path="/gone/net", sha256=digest(net))},
    )  # fmt: skip
    assert work(staged.store, tmp_path, size=1, max_batches=2) == 0
    assert result(staged) == PLUS_WINS_ALL
    assert f"value {tmp_path / 'cache' / digest(net)}\n" in log.read_text()
