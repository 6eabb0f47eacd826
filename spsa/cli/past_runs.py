"""What games and builds have taken in past runs of the database."""

from dataclasses import dataclass

from spsa.config import Config
from spsa.core.game_settings import Book
from spsa.core.run_columns import Builds
from spsa.db import Store
from spsa.db.read_queries import Costs
from spsa.db.tables import Run
from spsa.errors import InvalidInput, TuningError
from spsa.master.delivery_setup import delivery_settings

MIN_GAMES = 50
"""Below, assumptions are better than what was measured."""

_RUNS = 20  # the youngest of a database, which are looked at


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What past runs tell, None where they tell nothing.

    `costs` are those of games with the same time control, from `book`, `plies` those of any game;
    `nps` are a slot's nodes a second, `builds` the seconds of an iteration's builds by the same
    command.
    """

    costs: Costs | None = None
    book: Book | None = None
    plies: float | None = None
    nps: float | None = None
    builds: float | None = None


def measured(config: Config) -> Measured:
    """What the youngest runs of the database have measured; nothing without a database."""
    try:
        with Store(config.database.url) as store:
            return _of_runs(store, config)
    except InvalidInput:
        raise
    except TuningError:
        return Measured()  # no database yet is the usual case before the first run


def _of_runs(store: Store, config: Config) -> Measured:
    runs = list(reversed(store.runs()))[:_RUNS]
    costs = [(run, store.costs(run.id)) for run in runs]
    enough = [(run, cost) for run, cost in costs if cost.tally.games >= MIN_GAMES]
    alike = next(((run, cost) for run, cost in enough if _plays_alike(run, config)), None)
    speeds = [worker.nps for worker in store.workers() if worker.nps]
    builds = (Builds.from_json(run.builds).usual for run in runs if _builds_alike(run, config))
    return Measured(
        costs=None if alike is None else alike[1],
        book=None if alike is None else alike[0].game_settings.book,
        plies=next((cost.plies / cost.tally.games for _, cost in enough if cost.plies), None),
        nps=sum(speeds) / len(speeds) if speeds else None,
        builds=next((seconds for seconds in builds if seconds is not None), None),
    )


def _plays_alike(run: Run, config: Config) -> bool:
    return run.game_settings.time_control == config.game_settings.time_control


def _builds_alike(run: Run, config: Config) -> bool:
    return run.settings.get("delivery") == delivery_settings(config)
