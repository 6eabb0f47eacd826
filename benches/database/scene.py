"""What the benches play: a run of many parameters, its iterations and its workers."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from spsa.core import Update
from spsa.core.game_settings import GameSettings, TimeControl
from spsa.core.parameter import Location, Parameter
from spsa.core.params import Space
from spsa.core.scoring import Tally
from spsa.db import Store
from spsa.db.database import create_engine
from spsa.db.master_queries import NewIteration, Side, Sides
from spsa.db.tables import EngineRow, Iteration, Run
from spsa.db.url import parse_url
from spsa.master.session import RunSettings
from spsa.protocol import (
    BatchReport,
    BatchResult,
    Claim,
    ClaimRequest,
    HeldClaim,
    RegisteredWorker,
    WorkerInfo,
    WorkerStore,
)

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
            location=Location.parse(name),
            option=name,
        )
        for name, value in THETA.items()
    )
)
TERMS = GameSettings(time_control=TimeControl(low=0.05, high=0.1))


def new_run(name: str, iterations: int) -> Run:
    """A run of `PARAMETERS` parameters."""
    return Run(
        name=name,
        seed=1,
        algorithm="spsa",
        settings=RunSettings(
            rule={},
            planned_iterations=iterations,
            games_per_iteration=2,
            batch_size=2,
            iterations_in_flight=1,
            max_attempts=5,
            delivery={},
            game_settings=TERMS,
        ).to_json(),
        space=SPACE.to_json(),
        game_settings=TERMS,
        source_sha256=None,
        max_iterations=iterations,
        theta=THETA,
        state={"theta": list(THETA.values())},
    )


def new_iteration(k: int, opened_on: int, *, games: int) -> NewIteration:
    """Iteration k, in batches of one pair."""
    row = Iteration(
        k=k,
        opened_on=opened_on,
        in_flight=k - opened_on,
        a_k=1.0,
        c_k=1.0,
        game_settings=TERMS,
        target_games=games,
        base_parameters=THETA,
        plus_parameters=THETA,
        minus_parameters=THETA,
        perturbation_signs=dict.fromkeys(THETA, 1),
    )
    plus, minus = (Side(_engine(name)) for name in ("plus", "minus"))
    engines = Sides(plus, minus, requires=("linux", "x86-64-v2"))
    return NewIteration(row=row, sides=engines, batches=[2] * (games // 2), max_attempts=3)


def unmoved(run: Run) -> Update:
    """The next update of a run, which leaves theta where it is."""
    zeros = dict.fromkeys(run.theta, 0.0)
    k = run.applied + 1
    return Update(k=k, delta=zeros, theta=run.theta, state=run.state, gradient=zeros, elo=0.0)


def register(store: Store, workers: int) -> list[RegisteredWorker]:
    """So many workers, each on a machine of its own; worker n has the id n."""
    return [store.ask(worker_info(n)) for n in range(1, workers + 1)]


def claimed(
    store: WorkerStore, claim_id: str, worker_id: int, seconds: float = LEASE
) -> Claim | None:
    return store.ask(ClaimRequest(worker_id=worker_id, claim_id=claim_id, lease_seconds=seconds))


def reported(store: WorkerStore, claim: Claim, result: BatchResult = RESULT) -> None:
    store.ask(BatchReport(held=HeldClaim.of(claim), result=result))


def worker_info(n: int) -> WorkerInfo:
    """Worker n of machine n."""
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


def _engine(name: str) -> EngineRow:
    return EngineRow(
        sha256=hashlib.sha256(name.encode()).hexdigest(),
        build_key=name,
        target="-",
        size=1,
        bench=None,
        path=f"/srv/spsa/engines/{name}",
    )
