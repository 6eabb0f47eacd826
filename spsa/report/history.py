"""How a run came to where it is, as one frozen value: paths, results, validations."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil

import numpy as np

from spsa.algorithms import Vector
from spsa.core.limits import as_written
from spsa.core.params import Space
from spsa.core.scoring import Tally
from spsa.db import Store
from spsa.db.history_queries import ResultGroup, ThetaPoint
from spsa.db.tables import Iteration, Run
from spsa.master.verdict import filters_of, gain_of, measured_gain
from spsa.planning.strength import StrengthCurve
from spsa.report.matches import asked, measured
from spsa.report.parameters import ParameterStatus, parameters, sampled
from spsa.report.table import Column, View, records, values

POINTS = 120
"""Points of a path at most, besides the start."""


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
    iterations between two of them.
    """

    run: str
    ks: tuple[int, ...]
    games: tuple[int, ...]
    at: tuple[datetime, ...]
    parameters: tuple[ParameterStatus, ...]
    results: tuple[ResultGroup, ...]
    validations: tuple[ValidationPoint, ...]
    gain: tuple[float, ...] | None
    strength: Strength | None = None


def history(store: Store, run: Run, points: int = POINTS) -> RunHistory:
    """Read a run from its start to now, in at most so many points."""
    space = Space.from_json(run.space)
    stride = max(1, ceil(run.applied / points))
    path = store.theta_path(run.id, sampled(run.applied, stride))
    results = tuple(
        group for group in store.result_groups(run.id, stride) if group.last_k <= path[-1].k
    )
    theta = _matrix(run, space, path)
    games = _games([point.k for point in path], results)
    filters, _ = filters_of(run)
    return RunHistory(
        run=run.name,
        ks=tuple(point.k for point in path),
        games=games,
        at=tuple(point.at for point in path),
        parameters=tuple(one for one in parameters(run, path) if one.active),
        results=results,
        validations=_validations(store, run, path, games),
        strength=_strength(store, run, path, games),
        gain=None if filters is None else gain_of(filters.bank, theta / space.step),
    )


def _matrix(run: Run, space: Space, path: Sequence[ThetaPoint]) -> Vector:
    """Theta of the active parameters in their own units, shape (points, n)."""
    names = [parameter.name for parameter in space.active]
    with as_written("a column `theta_after` or `start_theta`"):
        values = [[point.theta[name] for name in names] for point in path]
    return np.array(values, dtype=np.float64).reshape(len(path), len(names))


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
    told = (point(one) for one in newest if one.is_against_start)
    return tuple(sorted(told, key=lambda one: one.k))


def _strength(
    store: Store, run: Run, path: Sequence[ThetaPoint], games: Sequence[int]
) -> Strength | None:
    curve = measured_gain(store.matches(run.id))
    if curve is None:
        return None
    at = np.interp(curve.ks, [point.k for point in path], games)
    return Strength(games=tuple(round(x) for x in at.tolist()), curve=curve)


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
        *values("games", "at"),
        Column("parameters", "", lambda history: records(_PATHS, history.parameters)),
        *values("gain", "results", "validations", "strength"),
    ),
)
THETA = View("theta", (*values("k", "at"), Column("theta")))
"""A row for each point of the path."""
