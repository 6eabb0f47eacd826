"""The runs of one database beside one another."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from spsa.db.store import RunOverview
from spsa.report.table import Column, FittedTable


def live(standings: Iterable[RunOverview]) -> tuple[RunOverview, ...]:
    """Those that may still want games."""
    return tuple(one for one in standings if one.live)


def to_json(standings: Iterable[RunOverview]) -> list[dict[str, Any]]:
    """For programs."""
    return [asdict(one) for one in standings]


def standings_table(standings: Iterable[RunOverview]) -> FittedTable:
    """A line a run, those that are served first on top."""
    table = FittedTable(
        "runs",
        (
            Column("name", is_number=False),
            Column("status", is_number=False),
            Column("priority"),
            Column("share"),
            Column("slots now"),
            Column("iterations", 1),
            Column("master", 2, is_number=False),
        ),
    )
    for one in standings:
        table.add(
            one.name,
            one.status,
            str(one.priority),
            f"{one.share:g}",
            str(one.slots),
            f"{one.applied}/{one.max_iterations}",
            "yes" if one.has_master else "none",
        )
    return table
