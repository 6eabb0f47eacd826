"""What the tests of workers share: a staged run, a server without a database."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from asking import Store
from builders import Stage, stage
from engines.faulty import LOSER, WINNER, engine
from trials import open_scripted
from worker_server import WorkerServer, claim_of, worker_server

DECLARED = "Margin type spin default 0 min -9 max 9"


@pytest.fixture
def staged(sqlite_url: str) -> Iterator[Stage]:
    with Store(sqlite_url, durable=False) as store:
        yield stage(store)


@pytest.fixture
def offer(staged: Stage, tmp_path: Path) -> Callable[..., int]:
    """Opens an iteration, by default of two batches of four games that plus wins."""
    return partial(open_scripted, staged, tmp_path)


@pytest.fixture
def server() -> Iterator[WorkerServer]:
    with worker_server() as running:
        yield running


@pytest.fixture
def play(tmp_path: Path, server: WorkerServer) -> Callable[..., None]:
    """Offers batches of one pair between two quick engines."""

    def offer_batches(count: int = 1, **minus: Any) -> None:
        plus_path, minus_path = engine(tmp_path, "plus"), engine(tmp_path, "minus", **minus)
        for number in range(count):
            server.claims.append(claim_of(plus_path, minus_path, server, number=number, pairs=1))

    return offer_batches


@pytest.fixture
def winner(tmp_path: Path) -> Path:
    return engine(tmp_path, "winner", moves=WINNER, option=DECLARED, log=tmp_path / "winner.log")


@pytest.fixture
def loser(tmp_path: Path) -> Path:
    return engine(tmp_path, "loser", moves=LOSER, option=DECLARED, log=tmp_path / "loser.log")
