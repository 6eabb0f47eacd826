"""How a run came to where it is, as one frozen value: paths, results, validations."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil

import numpy as np

from spsa.algorithms import Vector
from spsa.core.limits import as_written
from spsa.core.params import Space
from spsa.db import Store
from spsa.db.history_queries import ThetaPoint
from spsa.db.tables import Run
from spsa.master.verdict import filters_of, gain_of, measured_gain
from spsa.planning.strength import StrengthCurve
from spsa.report.matches import MATCHES, Match, measured
from spsa.report.parameters import ParameterStatus, parameters, sampled
from spsa.report.status import games_per_iteration
from spsa.report.table import Column, View, records, values

POINTS = 120
"""Points of a path at most, besides the start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHistory:
    """All that the figures of a run show.

    `ks` begins with 0, the start, and ends with the last result; a long run has every so many.
    `at`, `gain` and the values of a path belong to them one by one. `validations` are those against
    the start, `strength` is the curve through all of them.
    """

    run: str
    games_per_iteration: int
    planned_iterations: int
    ks: tuple[int, ...]
    at: tuple[datetime, ...]
    parameters: tuple[ParameterStatus, ...]
    validations: tuple[Match, ...]
    gain: tuple[float, ...] | None
    strength: StrengthCurve | None = None

    def games(self, ks: Sequence[int]) -> list[int]:
        """The games of so many iterations."""
        return [k * self.games_per_iteration for k in ks]


def history(store: Store, run: Run, points: int = POINTS) -> RunHistory:
    """Read a run from its start to now, in at most so many points."""
    space = Space.from_json(run.space)
    stride = max(1, ceil(run.applied / points))
    path = store.theta_path(run.id, sampled(run.applied, stride))
    theta = _matrix(run, space, path)
    filters, _ = filters_of(run)
    matches = store.matches(run.id)
    told = (Match(one, measured(run, one)) for one in matches if one.is_against_start)
    return RunHistory(
        run=run.name,
        games_per_iteration=games_per_iteration(run),
        planned_iterations=run.max_iterations,
        ks=tuple(point.k for point in path),
        at=tuple(point.at for point in path),
        parameters=tuple(one for one in parameters(run, path) if one.active),
        validations=tuple(sorted(told, key=lambda match: match.iteration.opened_on)),
        strength=measured_gain(matches),
        gain=None if filters is None else gain_of(filters.bank, theta / space.step),
    )


def _matrix(run: Run, space: Space, path: Sequence[ThetaPoint]) -> Vector:
    """Theta of the active parameters in their own units, shape (points, n)."""
    names = [parameter.name for parameter in space.active]
    with as_written("a column `theta_after` or `start_theta`"):
        values = [[point.theta[name] for name in names] for point in path]
    return np.array(values, dtype=np.float64).reshape(len(path), len(names))


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
        Column("parameters", "", lambda history: records(_PATHS, history.parameters)),
        Column("validations", "", lambda history: records(MATCHES, history.validations)),
        *values("gain", "strength"),
    ),
)
THETA = View("theta", (*values("k", "at"), Column("theta")))
"""A row for each point of the path."""
