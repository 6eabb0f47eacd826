"""All that is known of a run, and how it came there: what figures and reports are made of."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil
from typing import Any

import numpy as np

from spsa import __version__
from spsa.core.json_values import to_json
from spsa.core.params import Space
from spsa.db import Store
from spsa.db.read_queries import VoidGame
from spsa.db.tables import NARROW, Event, Run
from spsa.master.verdict import filters_of
from spsa.report.alarms import look
from spsa.report.events import EVENTS, VOIDS, Leaf, leaves
from spsa.report.matches import ITERATIONS, MATCHES, TIME_CONTROLS, Strength, measured
from spsa.report.parameters import PARAMETERS, ParameterStatus, parameters, sampled
from spsa.report.status import STATUS, Status, games_per_iteration
from spsa.report.table import Column, View, csv_of, values
from spsa.report.workers import (
    MACHINES,
    SHARES,
    WORKERS,
    FleetMember,
    MachineReport,
    compared_machines,
    fleet,
)

POINTS = 120
"""Points of a path at most, besides the start."""

MAX_EVENTS = 1000
MAX_VOIDS = 100
"""Batches whose void games are told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHistory:
    """All that the figures of a run show.

    `ks` begins with 0, the start, and ends with the last result; a long run has every so many.
    `at`, `gain` and the values of a path belong to them one by one.
    """

    run: Run
    ks: tuple[int, ...]
    at: tuple[datetime, ...]
    parameters: tuple[ParameterStatus, ...]
    measured: Strength
    gain: tuple[float, ...] | None

    def games(self, ks: Sequence[int]) -> list[int]:
        """The games of so many iterations."""
        size = games_per_iteration(self.run)
        return [k * size for k in ks]


def history(store: Store, run: Run, points: int = POINTS) -> RunHistory:
    """Read a run from its start to now, in at most so many points."""
    space = Space.from_json(run.space)
    stride = max(1, ceil(run.applied / points))
    path = store.theta_path(run.id, sampled(run.applied, stride))
    filters, _ = filters_of(run)
    theta = np.array([space.steps(one.theta) for one in path])
    return RunHistory(
        run=run,
        ks=tuple(point.k for point in path),
        at=tuple(point.at for point in path),
        parameters=tuple(one for one in parameters(run, path) if one.active),
        measured=measured(run, store.matches(run.id)),
        gain=None if filters is None else tuple(filters[1].gained(theta).tolist()),
    )


_PATHS = View(
    "paths",
    (
        *values("name", "group", "minimum", "maximum", "step", "steps_moved"),
        Column("theta", "", "path"),
    ),
)
HISTORY = View(
    "history",
    (
        Column("k", "", "ks"),
        Column("games", "", lambda history: history.games(history.ks)),
        *values("at"),
        Column("parameters", of=_PATHS),
        Column("validations", "", "measured.matches", of=MATCHES),
        *values("gain"),
        Column("strength", "", "measured.curve"),
    ),
)
THETA = View("theta", (*values("k", "at"), Column("theta")))
"""A row for each point of the path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A run at one moment, by the database's clock."""

    made_at: datetime
    status: Status
    history: RunHistory
    machines: tuple[MachineReport, ...]
    workers: tuple[FleetMember, ...]
    events: tuple[Event, ...]
    voids: tuple[VoidGame, ...]

    @property
    def run(self) -> Run:
        return self.status.run

    def tables(self) -> Iterator[tuple[View, Sequence[Any]]]:
        """Every figure with its error."""
        yield PARAMETERS, self.status.parameters
        yield MATCHES, self.status.matches
        if self.status.time_controls:
            yield TIME_CONTROLS, self.status.time_controls
        yield WORKERS, self.workers
        if len(self.machines) > 1:
            yield MACHINES, self.machines
        if self.voids:
            yield VOIDS, self.voids


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
    own |= {**run.settings, **to_json(run.game_settings)}
    if several := run.game_settings.time_controls:
        own |= {"time_control": [str(one) for one in several], "time_controls": None}
    return tuple(leaves(own))


REPORT = View(
    "report",
    (
        Column("version", "", lambda _: __version__),
        *values("made_at"),
        Column("status", of=STATUS),
        *values("settings", "game_settings", "space", "source_sha256", of="run"),
        Column("history", of=HISTORY),
        Column("workers", of=WORKERS),
        Column("machines", of=MACHINES),
        Column("void_games", "", "voids", of=VOIDS),
        Column("events", of=EVENTS),
    ),
)
"""For programs."""


def report(store: Store, run: Run) -> Report:
    """Read all that is known of a run."""
    machines = compared_machines(store, run)
    workers = fleet(store, store.worker_shares(run.id), machines)
    return Report(
        made_at=store.clock(),
        status=look(store, run, machines),
        history=history(store, run),
        machines=machines,
        workers=tuple(one for one in workers if one.share is not None or not run.tunes),
        events=tuple(store.events(run.id, MAX_EVENTS)),
        voids=tuple(store.void_games(run.id, MAX_VOIDS)[::-1]),
    )


def csv_files(store: Store, run: Run) -> dict[str, bytes]:
    """The content of each file by its name; every result has a line, however long the run is."""
    path = store.theta_path(run.id, range(run.applied + 1))
    return {
        "history.csv": csv_of(THETA, path),
        "iterations.csv": csv_of(ITERATIONS, store.iterations(run.id, columns=NARROW)),
        "workers.csv": csv_of(SHARES, store.worker_shares(run.id)),
    }
