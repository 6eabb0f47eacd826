"""What the bench plays: a run with one iteration of very many batches, and the bare table."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from spsa import deadline
from spsa.connection import create_engine, parse_url
from spsa.lifecycle import Purpose
from spsa.migrate import upgrade
from spsa.params.location import Location
from spsa.params.parameter import Parameter
from spsa.params.placement import Constant
from spsa.params.space import Space
from spsa.scoring import Tally
from spsa.store import (
    BatchResult,
    NewEngine,
    NewIteration,
    NewRun,
    RegisteredWorker,
    Store,
    WorkerInfo,
    open_store,
)
from spsa.terms import Terms, TimeControl

PARAMETERS = 20
LEASE = 600.0
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
TERMS = Terms(time_control=TimeControl(low=0.05, high=0.1))

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


def make(url: str, batches: int, workers: int) -> None:
    """Fill an empty database: `batches` of one pair each to be played, by so many known workers."""
    upgrade(url)
    with open_store(url, durable=False) as store:
        run = store.create_run(new_run("bench", 1))
        master = store.acquire(run.id, "bench", LEASE)
        if batches:
            store.open_iteration(master, new_iteration(1, 0, games=2 * batches))
        enrol(store, workers)
    with shell(url) as connection:
        connection.exec_driver_sql(BARE_TABLE)
        connection.execute(_bare_row())


def new_run(name: str, iterations: int) -> NewRun:
    """A run of `PARAMETERS` parameters."""
    return NewRun(
        name=name,
        seed=1,
        algorithm="spsa",
        settings={"games_per_iteration": 2},
        space=SPACE.to_json(),
        terms=TERMS,
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
        in_flight=1,
        a_k=1.0,
        c_k=1.0,
        plus=_engine("plus"),
        minus=_engine("minus"),
        plus_options={},
        minus_options={},
        terms=TERMS,
        target_games=games,
        batches=[2] * (games // 2),
        max_attempts=3,
        base_parameters=THETA,
        plus_parameters=THETA,
        minus_parameters=THETA,
        perturbation_signs=dict.fromkeys(THETA, 1),
    )


def enrol(store: Store, workers: int) -> list[RegisteredWorker]:
    """So many workers."""
    return [
        store.register_worker(
            WorkerInfo(
                name=f"bench-{n}", host="bench", platform="-", cores=8, concurrency=8, version="-"
            )
        )
        for n in range(workers)
    ]


@contextmanager
def shell(url: str) -> Iterator[sa.Connection]:
    """A connection for statements of the bench's own, committed in the end."""
    engine = create_engine(parse_url(url), durable=False)
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            deadline.unhurried(connection.connection.dbapi_connection)
            connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
        yield connection
    engine.dispose()


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
