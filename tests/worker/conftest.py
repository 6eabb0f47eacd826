"""What the tests of workers share: a staged run, a server without a database."""

from contextlib import closing
from functools import partial

import pytest
from asking import Store
from builders import stage
from engines.faulty import LOSER, WINNER, engine
from trials import open_scripted
from worker_server import claim_of, worker_server

from spsa.uci.process import StopSignal

DECLARED = "Margin type spin default 0 min -9 max 9"


@pytest.fixture
def staged(sqlite_url):
    with Store(sqlite_url, durable=False) as store:
        yield stage(store)


@pytest.fixture
def offer(staged, tmp_path):
    """Opens an iteration, by default of two batches of four games that plus wins."""
    return partial(open_scripted, staged, tmp_path)


@pytest.fixture
def server():
    with worker_server() as running:
        yield running


@pytest.fixture
def play(tmp_path, server):
    """Offers batches of one pair between two quick engines."""

    def offer_batches(count=1, **minus):
        plus_path, minus_path = engine(tmp_path, "plus"), engine(tmp_path, "minus", **minus)
        for number in range(count):
            server.claims.append(claim_of(plus_path, minus_path, server, number=number, pairs=1))

    return offer_batches


@pytest.fixture
def stop_signal():
    with closing(StopSignal()) as made:
        yield made


@pytest.fixture
def winner(tmp_path):
    return engine(tmp_path, "winner", moves=WINNER, option=DECLARED, log=tmp_path / "winner.log")


@pytest.fixture
def loser(tmp_path):
    return engine(tmp_path, "loser", moves=LOSER, option=DECLARED, log=tmp_path / "loser.log")
