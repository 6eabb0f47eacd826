"""A master at work without cargo and chess: engines that are only named, workers that only count.

Nobody sleeps: whenever the master would sleep, the workers play all that is free.
"""

import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from asking import Store
from builders import TERMS, new_engine, new_run, new_worker, result_of

from spsa.algorithms.tuning import Tuning, tuning
from spsa.core.params import Location, Parameter, Place, Space
from spsa.db.master_queries import Sides
from spsa.master.loop import Master
from spsa.master.session import Auto, RunSettings

GAMES, BATCH, ATTEMPTS = 8, 4, 2
SEED = 11
MAX_SLEEPS = 300


def parameter(name: str, **over) -> Parameter:
    facts = {
        "name": name,
        "value": 50,
        "minimum": 0,
        "maximum": 100,
        "step": 8,
        "place": Place(Location(name)),
        "option": name,
    }
    return Parameter(**facts | over)


SPACE = Space(
    (
        parameter("margin"),
        parameter("ratio", value=0.3, minimum=0.1, maximum=0.9, step=0.1, integral=False),
        parameter("still", active=False),
    )
)


def settings(in_flight: int | Auto, iterations: int) -> RunSettings:
    return RunSettings(
        rule={},
        planned_iterations=iterations,
        games_per_iteration=GAMES,
        batch_size=BATCH,
        iterations_in_flight=in_flight,
        max_attempts=ATTEMPTS,
        delivery={"kind": "fixed"},
        game_settings=TERMS,
    )


@dataclass
class FixedDelivery:
    """Names two engines by their values at once; `trouble` is raised instead if it is set."""

    trouble: Exception | None = None
    prepared: list = field(default_factory=list)
    discarded: list = field(default_factory=list)
    cancelled: bool = False
    source_sha256: str | None = None
    at_once: int = 1

    def prepare(self, plus, minus) -> Sides:
        self.prepared.append((plus, minus))
        if self.trouble is not None:
            raise self.trouble
        return Sides(plus=new_engine(f"{plus}"), minus=new_engine(f"{minus}"))

    def cancel(self) -> None:
        self.cancelled = True

    def discard(self, hashes) -> None:
        self.discarded += hashes


@dataclass
class Watched:
    """Keeps what it is told."""

    opened_numbers: list = field(default_factory=list)
    applied_ks: list = field(default_factory=list)

    def saw(self, view) -> None: ...

    def opened(self, number, proposal) -> None:
        self.opened_numbers.append(number)

    def applied(self, iteration, answer) -> None:
        self.applied_ks.append(iteration.k)


class FakeSleep(threading.Event):
    """Is set to stop a master; a master that sleeps lets `meanwhile` happen instead of time.

    With `most` it is stopped when it has slept so often.
    """

    def __init__(self, meanwhile: Callable[[], object], most: int | None = None) -> None:
        super().__init__()
        self._meanwhile, self._most = meanwhile, most
        self.count = 0

    def wait(self, timeout: float | None = None) -> bool:
        self.count += 1
        assert self.count < MAX_SLEEPS, "the master makes no progress"
        self._meanwhile()
        if self.count == self._most:
            self.set()
        return self.is_set()


def play(store: Store) -> int:
    """Play all that is free; how many batches it was."""
    worker = store.register_worker(new_worker())
    count = 0
    while (claim := store.claim(uuid.uuid4().hex, worker, 1000)) is not None:
        store.report(claim, result_of(claim))
        count += 1
    return count


@dataclass
class RunUnderTest:
    """A run on `SPACE` with everything that a master needs."""

    store: Store
    name: str = "tested"
    algorithm: str = "spsa"
    in_flight: int | Auto = 2
    iterations: int = 4
    delivery: FixedDelivery = field(default_factory=FixedDelivery)
    watched: Watched = field(default_factory=Watched)
    projected: list = field(default_factory=list)
    masters: int = 0

    def __post_init__(self) -> None:
        theta, state = self.tuning.start()
        wanted = settings(self.in_flight, self.iterations)
        self.run = self.store.create_run(
            new_run(
                name=self.name,
                seed=SEED,
                algorithm=self.algorithm,
                settings=wanted.to_json(),
                space=SPACE.to_json(),
                max_iterations=self.iterations,
                theta=theta,
                state=state,
            )
        )

    @property
    def tuning(self) -> Tuning:
        pairs = GAMES // 2
        return tuning(SPACE, self.algorithm, {}, iterations=self.iterations, pairs=pairs, seed=SEED)

    def now(self):
        return self.store.run(self.name)

    def master(self, fake_sleep: FakeSleep, store: Store | None = None, **over) -> Master:
        """Another master of the run; the one before it can do nothing any more."""
        queries = store or self.store
        self.masters += 1
        facts = {
            "store": queries,
            "master_lease": self.store.acquire_master_lease(self.run.id, "m", 1000),
            "tuning": self.tuning,
            "settings": settings(self.in_flight, self.iterations),
            "delivery": self.delivery,
            "watcher": self.watched,
            "project": self.projected.append,
            "stopping": fake_sleep,
        }
        return Master(**facts | over)

    def outcome(self):
        """All that may not depend on what happened on the way."""
        run = self.now()
        return (
            (run.status, run.applied, run.theta, run.state),
            run.estimates,
            [(s.k, s.theta_before, s.delta, s.theta_after) for s in self.store.steps(run.id)],
            [
                (i.k, i.opened_on, i.plus_parameters, i.minus_parameters, i.tally, i.status)
                for i in self.store.iterations(run.id)
            ],
        )
