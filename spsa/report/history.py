"""How a run came to where it is, as one frozen value: paths, results, validations, workers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil

import numpy as np

from spsa.algorithms import Vector
from spsa.core.limits import as_written
from spsa.core.params import Space
from spsa.core.scoring import Tally
from spsa.db import Store
from spsa.db.history_queries import ResultGroup, ThetaPoint, WorkerShare
from spsa.db.tables import Iteration, Run
from spsa.master.verdict import EstimatedGain, filters_of, gain_of, measured_gain
from spsa.planning.strength import StrengthCurve
from spsa.report.machines import MACHINES, MachineReport, machine_reports
from spsa.report.matches import asked, measured
from spsa.report.parameters import sampled
from spsa.report.table import Column, View, records, values
from spsa.report.workers import SHARES

POINTS = 120
"""Points of a path at most, besides the start."""

COMPARED = 5_000
"""Iterations over which machines are compared by what looks at a run again and again."""

_GROUPS = 50
"""Groups of iterations in which machines are compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterPath:
    """One active parameter; `theta` has a value for each k."""

    name: str
    group: str
    minimum: float
    maximum: float
    step: float
    theta: tuple[float, ...]

    @property
    def steps_moved(self) -> float:
        return (self.theta[-1] - self.theta[0]) / self.step

    @property
    def in_steps(self) -> tuple[float, ...]:
        """The same from the start: (theta - start) / step."""
        return tuple((value - self.theta[0]) / self.step for value in self.theta)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationPoint:
    """A match of tuned values against the start; `games` is what theta held when it was opened."""

    iteration_number: int
    k: int
    games: int
    tally: Tally
    target_games: int
    thetas: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Strength:
    """Elo over the start by all validations together, with one deviation, after so many games."""

    games: tuple[int, ...]
    curve: StrengthCurve


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHistory:
    """All that the figures of a run show.

    `ks` begins with 0, the start, and ends with the last result; a long run has every so many.
    `games`, `at`, and the values of a path belong to them one by one. `results` are sums over the
    iterations between two of them. Where `gain` is None, `unknown_gain` says why, as a clause.
    """

    run: str
    algorithm: str
    ks: tuple[int, ...]
    games: tuple[int, ...]
    at: tuple[datetime, ...]
    parameters: tuple[ParameterPath, ...]
    results: tuple[ResultGroup, ...]
    validations: tuple[ValidationPoint, ...]
    parts: tuple[WorkerShare, ...]
    workers: tuple[WorkerShare, ...]
    machines: tuple[MachineReport, ...]
    gain: EstimatedGain | None
    unknown_gain: str = ""
    strength: Strength | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What each worker has played of a run, and how its machine compares with the others.

    `parts` are of groups of iterations, `workers` their sums.
    """

    parts: tuple[WorkerShare, ...]
    workers: tuple[WorkerShare, ...]
    machines: tuple[MachineReport, ...]


def played(store: Store, run: Run, last: int | None = None) -> Played:
    """Of the `last` iterations, if given, else of all."""
    parts = worker_parts(store, run, last)
    return Played(parts=tuple(parts), workers=added(parts), machines=machine_reports(parts))


def history(
    store: Store, run: Run, points: int = POINTS, *, known: Played | None = None
) -> RunHistory:
    """Read a run from its start to now, in at most so many points.

    `known` is what the workers have played, if that was read already.
    """
    space = Space.from_json(run.space)
    stride = max(1, ceil(run.applied / points))
    path = store.theta_path(run.id, sampled(run.applied, stride))
    results = tuple(
        group for group in store.result_groups(run.id, stride) if group.last_k <= path[-1].k
    )
    theta = _matrix(run, space, path)
    games = _games([point.k for point in path], results)
    fleet = known or played(store, run)
    filters, unknown = filters_of(run)
    return RunHistory(
        run=run.name,
        algorithm=run.algorithm,
        ks=tuple(point.k for point in path),
        games=games,
        at=tuple(point.at for point in path),
        parameters=_paths(space, theta),
        results=results,
        validations=_validations(store, run, path, games),
        strength=_strength(store, run, path, games),
        parts=fleet.parts,
        workers=fleet.workers,
        machines=fleet.machines,
        gain=None if filters is None else gain_of(filters.bank, theta / space.step),
        unknown_gain=unknown,
    )


def worker_parts(store: Store, run: Run, last: int | None = None) -> list[WorkerShare]:
    """What workers have played, in groups of iterations; of the `last` ones, if given, else of all.

    Iterations that are open count too.
    """
    after = max(0, run.applied - last) if last else 0
    return store.worker_parts(run.id, max(1, ceil((run.applied - after) / _GROUPS)), after)


def added(shares: Iterable[WorkerShare]) -> tuple[WorkerShare, ...]:
    """One share a worker, the sum of its own, most games first."""
    found: dict[str, WorkerShare] = {}
    for share in shares:
        found[share.worker] = found[share.worker] + share if share.worker in found else share
    return tuple(sorted(found.values(), key=lambda share: -share.tally.games))


def _matrix(run: Run, space: Space, path: Sequence[ThetaPoint]) -> Vector:
    """Theta of the active parameters in their own units, shape (points, n)."""
    names = [parameter.name for parameter in space.active]
    with as_written("a column `theta_after` or `start_theta`"):
        values = [[point.theta[name] for name in names] for point in path]
    return np.array(values, dtype=np.float64).reshape(len(path), len(names))


def _paths(space: Space, theta: Vector) -> tuple[ParameterPath, ...]:
    return tuple(
        ParameterPath(
            name=p.name,
            group=p.group,
            minimum=p.minimum,
            maximum=p.maximum,
            step=p.step,
            theta=tuple(theta[:, i].tolist()),
        )
        for i, p in enumerate(space.active)
    )


def _games(ks: Sequence[int], results: Sequence[ResultGroup]) -> tuple[int, ...]:
    """How many games theta holds after each k."""
    ends = [group.last_k for group in results]
    sums = np.concatenate(
        ([0], np.cumsum([group.tally.games for group in results], dtype=np.int64))
    )
    return tuple(int(sums[i]) for i in np.searchsorted(ends, ks, side="right"))


def _validations(
    store: Store, run: Run, path: Sequence[ThetaPoint], games: Sequence[int]
) -> tuple[ValidationPoint, ...]:
    ks = [point.k for point in path]

    def point(one: Iteration) -> ValidationPoint:
        return ValidationPoint(
            iteration_number=one.iteration_number,
            k=one.opened_on,
            games=round(float(np.interp(one.opened_on, ks, games))),
            tally=one.tally,
            target_games=one.target_games,
            thetas=measured(run, one) or ((asked(one),) if one.compared else ()),
        )

    newest = store.matches(run.id, last=POINTS)
    told = (point(one) for one in newest if one.compared is None or one.compared.against == "start")
    return tuple(sorted(told, key=lambda one: one.k))


def _strength(
    store: Store, run: Run, path: Sequence[ThetaPoint], games: Sequence[int]
) -> Strength | None:
    curve = measured_gain(store.match_lines(run.id))
    if curve is None:
        return None
    at = np.interp(curve.ks, [point.k for point in path], games)
    return Strength(games=tuple(round(x) for x in at.tolist()), curve=curve)


_PATHS = View(
    "paths", values("name", "group", "minimum", "maximum", "step", "steps_moved", "theta")
)
HISTORY = View(
    "history",
    (
        Column("k", "", "ks"),
        *values("games", "at"),
        Column("parameters", "", lambda history: records(_PATHS, history.parameters)),
        *values("gain", "results", "validations", "strength"),
        Column("workers", "", lambda history: records(SHARES, history.workers)),
        Column("machines", "", lambda history: records(MACHINES, history.machines)),
    ),
)
THETA = View("theta", (*values("k", "at"), Column("theta")))
"""A row for each point of the path."""
