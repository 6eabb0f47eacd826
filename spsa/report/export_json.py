"""All that is known of a run in one frozen value: what `report` shows, writes and exports."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from spsa import __version__
from spsa.db import Store
from spsa.db.history_queries import ResultGroup, WorkerShare
from spsa.db.purge_queries import ReportedResult
from spsa.db.tables import Event, Iteration, Run
from spsa.report.alarms import with_alarms, with_history
from spsa.report.events import Leaf, leaves
from spsa.report.events import to_json as events_json
from spsa.report.history import RunHistory, Strength, ValidationPoint, history
from spsa.report.named_theta import measured
from spsa.report.status import Status, fields_json, plain, status, tally_json
from spsa.report.table import FittedTable
from spsa.report.text import headlines, iterations_table, parameters_table
from spsa.report.workers import machine_json, machines_table, shares_table

MAX_EVENTS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A run at one moment, by the database's clock."""

    made_at: datetime
    status: Status
    history: RunHistory
    validations: tuple[Iteration, ...]
    events: tuple[Event, ...]

    @property
    def run(self) -> Run:
        return self.status.run

    @property
    def settings(self) -> tuple[Leaf, ...]:
        """Everything that decides the run besides its parameters."""
        run = self.run
        own: dict[str, Any] = {
            "algorithm": run.algorithm,
            "seed": run.seed,
            "max_iterations": run.max_iterations,
            "source_sha256": run.source_sha256,
            "started": f"{run.created_at:%Y-%m-%d %H:%M:%S} UTC",
            "ended": run.finished_at and f"{run.finished_at:%Y-%m-%d %H:%M:%S} UTC",
        }
        return tuple(leaves({**own, **run.settings, **run.game_settings.to_json()}))

    def sentences(self) -> Iterator[str]:
        """The run in sentences: how far, how strong, by what it was found."""
        yield from (line.strip() for line in headlines(self.status))

    def tables(self) -> Iterator[FittedTable]:
        """Every figure with its error."""
        now = self.status
        yield parameters_table(now.parameters, now.trails)
        if self.validations:
            thetas = tuple(measured(self.run, match) for match in self.validations)
            yield iterations_table("validations", self.validations, thetas)
        yield shares_table(self.history.workers)
        if len(self.history.machines) > 1:
            yield machines_table(self.history.machines)

    def to_json(self) -> dict[str, Any]:
        """For programs: the status, the history, settings and events."""
        data: dict[str, Any] = {
            "version": __version__,
            "made_at": self.made_at,
            "status": self.status.to_json(),
            "settings": self.run.settings,
            "game_settings": self.run.game_settings.to_json(),
            "space": self.run.space,
            "source_sha256": self.run.source_sha256,
            "history": history_json(self.history)
            | {
                "workers": [share_json(share) for share in self.history.workers],
                "machines": [machine_json(one) for one in self.history.machines],
            },
            "events": events_json(self.events),
        }
        return {name: plain(value) for name, value in data.items()}


def report(store: Store, run: Run) -> Report:
    """Read all that is known of a run."""
    now, path = with_alarms(store, status(store, run)), history(store, run)
    return Report(
        made_at=store.clock(),
        status=with_history(now, path),
        history=path,
        validations=tuple(store.matches(run.id)),
        events=tuple(store.events(run.id, MAX_EVENTS)),
    )


def history_json(found: RunHistory) -> dict[str, Any]:
    """The paths, results and validations of a run as they go into JSON."""
    return {
        "k": found.ks,
        "games": found.games,
        "at": found.at,
        "parameters": [
            fields_json(path) | {"steps_moved": path.steps_moved} for path in found.parameters
        ],
        "gain": None if found.gain is None else fields_json(found.gain),
        "strength": None if found.strength is None else _strength_json(found.strength),
        "results": [counted_json(group) for group in found.results],
        "validations": [counted_json(match) for match in found.validations],
    }


def _strength_json(strength: Strength) -> dict[str, Any]:
    return {"games": strength.games} | fields_json(strength.curve)


def share_json(share: WorkerShare) -> dict[str, Any]:
    """What a worker has played, with its speed."""
    speed = {"games_per_hour": share.games_per_hour, "nodes_per_second": share.nodes_per_second}
    return counted_json(share) | speed


def counted_json(
    value: ResultGroup | ValidationPoint | WorkerShare | ReportedResult,
) -> dict[str, Any]:
    """Its fields, with Elo beside the counts."""
    return fields_json(value) | {"tally": tally_json(value.tally)}
