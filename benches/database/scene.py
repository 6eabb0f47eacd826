"""What the bench plays: a run with some iterations in flight, and the bare table beside it."""

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from spsa.core.game_settings import GameSettings, TimeControl
from spsa.core.params.parameter import Parameter
from spsa.core.params.placement import Constant, Location
from spsa.core.params.space import Space
from spsa.core.scoring import Tally
from spsa.db.connection import create_engine, parse_url
from spsa.db.migrate import upgrade
from spsa.db.store import (
    BatchResult,
    NewEngine,
    NewIteration,
    NewRun,
    RegisteredWorker,
    Store,
    WorkerInfo,
    open_store,
)
from spsa.lifecycle import Purpose

PARAMETERS = 20
LEASE = 600.0
IN_FLIGHT = 8
RESULT = BatchResult(tally=Tally(0, 0, 2, (0, 0, 1, 0, 0)), moves=80, seconds=1.5)
THETA = {f"SEARCH_MARGIN_{n}": 100.0 + n / 3 for n in range(PARAMETERS)}
SPACE = Space(
    tuple(
        Parameter(
            name=name,
            value=value,
            minimum=0.0,
            maximum=1000.0,
            step=4.0,
            place=Constant(Location.parse(name)),
            option=name,
        )
        for name, value in THETA.items()
    )
)
TERMS = GameSettings(time_control=TimeControl(low=0.05, high=0.1))

DONE = sa.text("SELECT count(*) FROM spsa_batch WHERE status = 'done'")
_LEFT = sa.text("SELECT count(*) FROM spsa_batch WHERE status = 'ready'")

# what a master does with an iteration, without its arithmetic: those that are played out are
# closed, and as many are opened
_CLOSE = sa.text("""
UPDATE spsa_iteration SET status = 'abandoned' WHERE status = 'in_progress'
   AND NOT EXISTS (SELECT 1 FROM spsa_batch b WHERE b.iteration_id = spsa_iteration.id
                      AND b.status IN ('ready', 'leased'))
""")
_OPEN = sa.text(
    "UPDATE spsa_iteration SET status = 'pending' WHERE k > :opened AND k <= :opened + :closed"
)

# the table and the worker's two statements of the scheme that a tuner starts with
BARE_TABLE = """
CREATE TABLE bare_iteration (
    id INTEGER PRIMARY KEY, iteration_number INTEGER NOT NULL,
    plus_engine_path VARCHAR(255) NOT NULL, minus_engine_path VARCHAR(255) NOT NULL,
    timelow_ms INTEGER NOT NULL, timehigh_ms INTEGER NOT NULL,
    target_games INTEGER NOT NULL, games_played INTEGER NOT NULL DEFAULT 0,
    plus_wins INTEGER NOT NULL DEFAULT 0, minus_wins INTEGER NOT NULL DEFAULT 0,
    draws INTEGER NOT NULL DEFAULT 0, status VARCHAR(20) NOT NULL DEFAULT 'pending',
    base_parameters JSON, plus_parameters JSON, minus_parameters JSON, perturbation_signs JSON,
    gradient_estimate JSON, elo_diff REAL,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, completed_at TIMESTAMP)
"""
BARE_POLL = """
SELECT * FROM bare_iteration
 WHERE status IN ('pending', 'in_progress') AND games_played < target_games
 ORDER BY iteration_number DESC LIMIT 1
"""
BARE_REPORT = """
UPDATE bare_iteration SET games_played = games_played + 2, plus_wins = plus_wins + 0,
       minus_wins = minus_wins + 0, draws = draws + 2 WHERE id = 1
"""


@dataclass(frozen=True, slots=True)
class Size:
    """So many iterations of so many batches of one pair, and so many registered workers."""

    iterations: int
    batches: int
    workers: int


def make(url: str, size: Size) -> None:
    """Fill an empty database; the iterations are closed until `moving` opens them."""
    upgrade(url)
    with open_store(url, durable=False) as store:
        run = store.create_run(new_run("bench", size.iterations + 1))
        master = store.acquire_master_lease(run.id, "bench", LEASE)
        for k in range(1, size.iterations + 1):
            store.open_iteration(master, new_iteration(k, 0, games=2 * size.batches))
        register(store, size.workers)
    with shell(url) as connection:
        connection.exec_driver_sql("UPDATE spsa_iteration SET status = 'abandoned'")
        connection.exec_driver_sql(BARE_TABLE)
        connection.execute(_bare_row())


@contextmanager
def moving(url: str) -> Iterator[None]:
    """Keep `IN_FLIGHT` iterations open, as a master does, for as long as this lasts.

    Raises:
        RuntimeError: all batches were played, so that nothing is known of their number.
    """
    stopping = threading.Event()
    engine = create_engine(parse_url(url), durable=True)
    _open(engine, 0, IN_FLIGHT)
    mover = threading.Thread(target=_move, args=(engine, stopping))
    mover.start()
    try:
        yield
    finally:
        stopping.set()
        mover.join()
    with engine.connect() as connection:
        left = connection.scalar(_LEFT)
    engine.dispose()
    if not left:
        raise RuntimeError("every batch was played before the time was up: raise --iterations")


def _move(engine: sa.Engine, stopping: threading.Event) -> None:
    opened = IN_FLIGHT
    while not stopping.wait(0.02):
        with engine.begin() as connection:
            closed = connection.execute(_CLOSE).rowcount
        if closed:
            _open(engine, opened, closed)
            opened += closed


def _open(engine: sa.Engine, opened: int, more: int) -> None:
    with engine.begin() as connection:
        connection.execute(_OPEN, {"opened": opened, "closed": more})


def new_run(name: str, iterations: int) -> NewRun:
    """A run of `PARAMETERS` parameters."""
    return NewRun(
        name=name,
        seed=1,
        algorithm="spsa",
        settings={"games_per_iteration": 2},
        space=SPACE.to_json(),
        game_settings=TERMS,
        source_sha256=None,
        max_iterations=iterations,
        theta=THETA,
        state={"theta": list(THETA.values())},
    )


def new_iteration(k: int, opened_on: int, *, games: int) -> NewIteration:
    """Iteration k, in batches of one pair."""
    return NewIteration(
        purpose=Purpose.TUNE,
        k=k,
        opened_on=opened_on,
        in_flight=k - opened_on,
        a_k=1.0,
        c_k=1.0,
        plus=_engine("plus"),
        minus=_engine("minus"),
        plus_options={},
        minus_options={},
        requires=("linux", "x86-64-v2"),
        game_settings=TERMS,
        target_games=games,
        batches=[2] * (games // 2),
        max_attempts=3,
        base_parameters=THETA,
        plus_parameters=THETA,
        minus_parameters=THETA,
        perturbation_signs=dict.fromkeys(THETA, 1),
    )


def register(store: Store, workers: int) -> list[RegisteredWorker]:
    """So many workers, each on a machine of its own; worker n has the id n and `secret(n)`."""
    return [store.register_worker(_worker(n)) for n in range(1, workers + 1)]


def registered(n: int) -> RegisteredWorker:
    """Worker n, as `register` made it."""
    return RegisteredWorker(id=n, machine=f"bench-{n}", secret=f"bench-{n}")


def _worker(n: int) -> WorkerInfo:
    name = f"bench-{n}"
    return WorkerInfo(
        name=name,
        host=name,
        platform="-",
        cores=8,
        concurrency=8,
        version="-",
        provides=("linux", "x86-64", "x86-64-v2", "x86-64-v3"),
        secret=name,
    )


@contextmanager
def shell(url: str) -> Iterator[sa.Connection]:
    """A connection for statements of the bench's own, committed in the end."""
    engine = create_engine(parse_url(url), durable=False)
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            driver: Any = connection.connection.dbapi_connection
            driver.timeout = 3600
            connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
        yield connection
    engine.dispose()


def drop_triggers(url: str) -> None:
    """Leave games uncounted and counts unchecked."""
    with shell(url) as connection:
        server = connection.dialect.name == "postgresql"
        for trigger, table in _TRIGGERS.items():
            on = f" ON {table}" if server else ""
            connection.exec_driver_sql(f"DROP TRIGGER {trigger}{on}")


_TRIGGERS = {"spsa_count": "spsa_batch", "spsa_check_counts": "spsa_iteration"}


def _engine(name: str) -> NewEngine:
    return NewEngine(
        sha256=hashlib.sha256(name.encode()).hexdigest(),
        build_key=name,
        target="-",
        size=1,
        bench=None,
        path=f"/srv/spsa/engines/{name}",
    )


def _bare_row() -> sa.TextClause:
    values = ", ".join(f'"{name}": {value}' for name, value in THETA.items())
    return sa.text(
        "INSERT INTO bare_iteration (id, iteration_number, plus_engine_path, minus_engine_path,"
        " timelow_ms, timehigh_ms, target_games, base_parameters, plus_parameters,"
        " minus_parameters, perturbation_signs)"
        " VALUES (1, 1, '/srv/plus', '/srv/minus', 50, 100, 2000000000, :v, :v, :v, :v)"
    ).bindparams(v=f"{{{values}}}")
