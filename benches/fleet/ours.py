"""The run of a scene by this project's own master."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from uuid import uuid4

from benches.database.scene import claimed, reported
from benches.fleet.scene import BATCH_GAMES, BUILD_SECONDS, Scene
from spsa import __version__
from spsa.algorithms.tuning import Tuning, tuning
from spsa.core import Values
from spsa.core.game_settings import GameSettings, TimeControl
from spsa.core.parameter import Location, Parameter
from spsa.core.params import Space
from spsa.core.scoring import Tally
from spsa.db import Store
from spsa.db.master_queries import Side, Sides
from spsa.db.tables import EngineRow, Run
from spsa.master.delivery import Delivery
from spsa.master.loop import Master
from spsa.master.session import AUTO, TICK_SECONDS, Auto, RunSettings
from spsa.protocol import BatchResult, WorkerInfo

_FIRST_RESULTS = 40
_NOW = Scene(workers=1, games=2, builders=1, warm=0, seconds=0, haste=3000)

NAME, SEED, MANY = "fleet", 1, 100_000
TERMS = GameSettings(time_control=TimeControl(low=0.1, high=0.1))
SPACE = Space(
    tuple(
        Parameter(
            name=name,
            value=50,
            minimum=0,
            maximum=100,
            step=8,
            location=Location(name),
            option=name,
        )
        for name in ("margin", "depth", "ratio", "bonus")
    )
)


@dataclass(kw_only=True)
class SleepingDelivery(Delivery):
    """Builds that take as long as they would, and make nothing."""

    scene: Scene
    source_sha256: str | None = sha256(b"source").hexdigest()
    leaving: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.at_once = self.scene.builders

    def by_kind(self, plus: Values, minus: Values) -> dict[tuple[str, ...], Sides]:
        self.leaving.wait(self.scene.wait(BUILD_SECONDS))
        return {(): Sides(Side(_engine(plus)), Side(_engine(minus)))}

    def cancel(self) -> None:
        self.leaving.set()


def _engine(values: Values) -> EngineRow:
    key = sha256(repr(sorted(values.items())).encode()).hexdigest()
    return EngineRow(sha256=key, build_key=key, target="none", size=1, bench=None, path=key)


class NoWatcher:
    """A master without output."""

    def saw(self, *_: object) -> None: ...
    def opened(self, *_: object) -> None: ...
    def applied(self, *_: object) -> None: ...


@contextmanager
def master(url: str, scene: Scene, in_flight: int | Auto = AUTO) -> Iterator[Store]:
    """A master that moves the run of a scene as long as this lasts."""
    with Store(url, durable=False) as store:
        run, rules = _begun(store, scene)
        small = replace(_settings(scene, 1), games_per_iteration=2)
        with _moving(store, run, rules, small, _NOW):
            _play_at_once(store, scene)
    settings = _settings(scene, in_flight)
    with Store(url) as store, _moving(store, run, rules, settings, scene):
        yield store


@contextmanager
def _moving(
    store: Store, run: Run, rules: Tuning, settings: RunSettings, scene: Scene
) -> Iterator[None]:
    stopping = threading.Event()
    mover = Master(
        store=store,
        master_lease=store.acquire_master_lease(run.id, "bench", 3600),
        tuning=rules,
        settings=settings,
        delivery=SleepingDelivery(scene=scene),
        watcher=NoWatcher(),
        project=_forget,
        stopping=stopping,
        tick=scene.wait(TICK_SECONDS),
    )
    with ThreadPoolExecutor(1, "master") as thread:
        moving = thread.submit(mover.run)
        try:
            yield
        finally:
            stopping.set()
            moving.result()


def _settings(scene: Scene, in_flight: int | Auto) -> RunSettings:
    return RunSettings(
        rule={},
        planned_iterations=MANY,
        games_per_iteration=scene.games,
        batch_size=BATCH_GAMES,
        iterations_in_flight=in_flight,
        max_attempts=5,
        delivery={"kind": "simulated"},
        game_settings=TERMS,
    )


def _begun(store: Store, scene: Scene) -> tuple[Run, Tuning]:
    rules = tuning(SPACE, "mixture", {}, iterations=MANY, pairs=scene.games // 2, seed=SEED)
    theta, state = rules.start()
    run = store.create_run(
        Run(
            name=NAME,
            seed=SEED,
            algorithm="mixture",
            settings=_settings(scene, AUTO).to_json(),
            space=SPACE.to_json(),
            game_settings=TERMS,
            source_sha256=None,
            max_iterations=MANY,
            theta=theta,
            state=state,
        )
    )
    return run, rules


def _play_at_once(store: Store, scene: Scene) -> None:
    """The first results, so many that the depth is limited by the fleet and not by their number."""
    result = BatchResult(tally=Tally(0, 0, 2, (0, 0, 1, 0, 0)), seconds=scene.wait(20))
    info = WorkerInfo(
        name="first", host="first", platform="", cores=1, concurrency=1, version=__version__
    )
    worker = store.ask(info)
    while store.run(NAME).applied < _FIRST_RESULTS:
        claim = claimed(store, uuid4().hex, worker.id)
        if claim is None:
            time.sleep(0.01)
        else:
            reported(store, claim, result)


def _forget(_run: Run) -> None:
    """Nobody reads theta here."""
