"""What the tests of workers share: a staged run, a server of its database, quick engines."""

from functools import partial
from itertools import count

import pytest
from asking import Store
from builders import NODES, published, stage
from engines.faulty import LOSER, WINNER, engine
from trials import open_scripted
from worker_server import worker_server

from spsa.core.game_settings import Book, GameSettings

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
def server(staged):
    with worker_server(staged) as running:
        yield running


@pytest.fixture
def play(staged, tmp_path):
    """Offers batches of one pair between two quick engines, with openings of the built-in book."""
    numbers = count(1)

    def offer_batches(batches=1, stored=False, size=0, **switches):
        """The server alone has the engines that are `stored`; plus has `size` bytes more."""
        plus, minus = engine(tmp_path, "plus"), engine(tmp_path, "minus", **switches)
        with plus.open("a") as file:
            file.write("#" * size)

        def offered(path):
            place = {"path": "/nowhere", "content": path.read_bytes()} if stored else {}
            return published(path, **place)

        staged.open(
            k=next(numbers),
            opened_on=0,
            in_flight=9,
            plus=offered(plus),
            minus=offered(minus),
            plus_options={},
            minus_options={},
            target_games=2 * batches,
            batch_games=2,
            game_settings=GameSettings(time_control=NODES, book=Book()),
        )

    return offer_batches


@pytest.fixture
def winner(tmp_path):
    return engine(tmp_path, "winner", moves=WINNER, option=DECLARED, log=tmp_path / "winner.log")


@pytest.fixture
def loser(tmp_path):
    return engine(tmp_path, "loser", moves=LOSER, option=DECLARED, log=tmp_path / "loser.log")
