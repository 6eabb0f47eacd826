"""A master at work without cargo and chess: engines that are only named, workers that only count.

Nobody sleeps: whenever the master would sleep, the workers play all that is free.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from asking import Store
from builders import TERMS, new_engine, parameter, run_settings, tunable_run

from spsa.core.game_settings import GameSettings
from spsa.core.params import Space
from spsa.db.master_queries import Side, Sides
from spsa.master.delivery import Delivery
from spsa.master.loop import Master
from spsa.master.session import Auto, RunSettings, tuning_of

GAMES = 8
MAX_SLEEPS = 300


SPACE = Space(
    (
        parameter("margin"),
        parameter("ratio", value=0.3, minimum=0.1, maximum=0.9, step=0.1, integral=False),
        parameter("still", active=False),
    )
)


def settings(in_flight: int | Auto, iterations: int, **over) -> RunSettings:
    over |= {"iterations_in_flight": in_flight, "max_attempts": 2, "delivery": {"kind": "fixed"}}
    return run_settings(iterations, **over)


@dataclass(kw_only=True)
class FixedDelivery(Delivery):
    """Names two engines by their values at once; `trouble` is raised instead if it is set."""

    trouble: Exception | None = None
    prepared: list = field(default_factory=list)
    discarded: list = field(default_factory=list)
    cancelled: bool = False

    def by_kind(self, plus, minus):
        return {(): self.prepare(plus, minus)}

    def prepare(self, plus, minus) -> Sides:
        self.prepared.append((plus, minus))
        if self.trouble is not None:
            raise self.trouble
        return Sides(*(Side(new_engine(f"{values}")) for values in (plus, minus)))

    def cancel(self) -> None:
        self.cancelled = True

    def discard(self, hashes) -> None:
        self.discarded += hashes


@dataclass
class Watched:
    """Keeps what it is told."""

    opened_numbers: list = field(default_factory=list)
    applied_ks: list = field(default_factory=list)
    views: int = 0

    def saw(self, view) -> None:
        self.views += 1

    def opened(self, number, iteration) -> None:
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
    game_settings: GameSettings = TERMS

    def __post_init__(self) -> None:
        games = {"game_settings": self.game_settings}
        self.settings = settings(self.in_flight, self.iterations, **games)
        over = {"name": self.name, "algorithm": self.algorithm, "seed": 11, **games}
        run = tunable_run(SPACE, self.iterations, **over, settings=self.settings.to_json())
        self.run = self.store.create_run(run)
        self.tuning = tuning_of(self.run)

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
            "settings": self.settings,
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
