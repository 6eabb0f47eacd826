"""All that is known of a run in one frozen value: what `report` shows, writes and exports."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from spsa import __version__
from spsa.db import Store
from spsa.db.tables import Event, Run
from spsa.report.alarms import with_alarms
from spsa.report.events import EVENTS, Leaf, leaves
from spsa.report.formats import plain
from spsa.report.history import HISTORY, THETA, RunHistory, history
from spsa.report.machines import MACHINES, MachineReport, compared_machines
from spsa.report.matches import ITERATIONS, MATCHES, Match, measured
from spsa.report.parameters import PARAMETERS
from spsa.report.status import STATUS, Status, status
from spsa.report.table import View, csv_of, record, records
from spsa.report.workers import SHARES, WORKERS, FleetMember, fleet

MAX_EVENTS = 1000

Table = tuple[View, Sequence[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A run at one moment, by the database's clock."""

    made_at: datetime
    status: Status
    history: RunHistory
    machines: tuple[MachineReport, ...]
    validations: tuple[Match, ...]
    workers: tuple[FleetMember, ...]
    events: tuple[Event, ...]

    @property
    def run(self) -> Run:
        return self.status.run

    def tables(self) -> Iterator[Table]:
        """Every figure with its error."""
        yield PARAMETERS, self.status.parameters
        yield MATCHES, self.validations
        yield WORKERS, self.workers
        if len(self.machines) > 1:
            yield MACHINES, self.machines


def settings_of(run: Run) -> tuple[Leaf, ...]:
    """Everything that decides a run besides its parameters."""
    own: dict[str, Any] = {
        "algorithm": run.algorithm,
        "seed": run.seed,
        "max_iterations": run.max_iterations,
        "source_sha256": run.source_sha256,
        "started": f"{run.created_at:%Y-%m-%d %H:%M:%S} UTC",
        "ended": run.finished_at and f"{run.finished_at:%Y-%m-%d %H:%M:%S} UTC",
    }
    return tuple(leaves({**own, **run.settings, **run.game_settings.to_json()}))


def report_json(found: Report) -> Any:
    """For programs: the status, the history, settings and events."""
    run = found.run
    return plain(
        {
            "version": __version__,
            "made_at": found.made_at,
            "status": record(STATUS, found.status),
            "settings": run.settings,
            "game_settings": run.game_settings.to_json(),
            "space": run.space,
            "source_sha256": run.source_sha256,
            "history": record(HISTORY, found.history),
            "workers": records(WORKERS, found.workers),
            "machines": records(MACHINES, found.machines),
            "events": records(EVENTS, found.events),
        }
    )


def report(store: Store, run: Run) -> Report:
    """Read all that is known of a run."""
    machines = compared_machines(store, run)
    workers = fleet(store, store.worker_shares(run.id), machines)
    return Report(
        made_at=store.clock(),
        status=with_alarms(store, status(store, run), machines),
        history=history(store, run),
        machines=machines,
        validations=tuple(Match(one, measured(run, one)) for one in store.matches(run.id)),
        workers=tuple(one for one in workers if one.share is not None),
        events=tuple(store.events(run.id, MAX_EVENTS)),
    )


def csv_files(store: Store, run: Run) -> dict[str, bytes]:
    """The content of each file by its name; every result has a line, however long the run is."""
    path = store.theta_path(run.id, range(run.applied + 1))
    return {
        "history.csv": csv_of(THETA, path),
        "iterations.csv": csv_of(ITERATIONS, store.iterations(run.id, narrow=True)),
        "workers.csv": csv_of(SHARES, store.worker_shares(run.id)),
    }
