"""The runs of a database: their table, and the one that ended last."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spsa.core.scoring import Estimate
from spsa.db import Store
from spsa.db.read_queries import RunOverview
from spsa.db.tables import Run
from spsa.master.verdict import measured_gain
from spsa.planning.strength import StrengthCurve
from spsa.report.formats import estimate, number, plus_minus
from spsa.report.table import Column, View, values
from spsa.text import plural

RUNS = View(
    "runs",
    (
        Column("name", "name", kind="name"),
        Column("status", "status", kind="word"),
        Column("priority", "priority", rank=2),
        Column("share", "share", show=number, rank=2),
        Column("claimed_batches", "claimed batches", "slots"),
        Column(
            "", "iterations", lambda run: run, lambda run: f"{run.applied:,}/{run.max_iterations:,}"
        ),
        Column("has_master", "master", kind="word", rank=1),
        *values("applied", "max_iterations", "live"),
    ),
    "In the order in which they are served; what ended longest ago comes last.",
    "There is no run yet. `spsa-master run` starts one.",
)


def live(standings: Iterable[RunOverview]) -> tuple[RunOverview, ...]:
    """Those that may still want games."""
    return tuple(one for one in standings if one.live)


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierRun:
    """The run of the database that ended last, with its Elo over the start where that is known."""

    run: RunOverview
    measured: Estimate | None

    def to_json(self) -> Mapping[str, Any]:
        found = self.measured
        elo = {"elo": found and found.value, "elo_error": found and found.error}
        return {"name": self.run.name, "status": self.run.status, **elo}

    def __str__(self) -> str:
        run, found = self.run, self.measured
        elo = "not measured" if found is None else f"{plus_minus(found.value, found.error)} Elo"
        played = f"{run.applied:,} of {plural(run.max_iterations, 'iteration')}"
        return f"run {run.name}: {run.status}, {played}, {elo}"


def earlier_run(store: Store, run: Run, standings: Sequence[RunOverview]) -> EarlierRun | None:
    """The run that ended last, besides this one."""
    for one in standings:
        if not one.live and one.name != run.name:
            matches = store.matches(store.run(one.name).id)
            if (curve := measured_gain(matches)) is not None:
                return EarlierRun(run=one, measured=end_of(curve))
            told = [match for match in matches if match.games_played and match.is_against_start]
            return EarlierRun(run=one, measured=estimate(told[-1].tally) if told else None)
    return None


def end_of(curve: StrengthCurve) -> Estimate:
    return Estimate(curve.elo[-1], curve.errors[-1])
