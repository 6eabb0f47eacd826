"""The runs of one database beside one another, and what a run builds."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from spsa.core.builds import Builds
from spsa.db.read_queries import RunOverview
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


def duration(seconds: float) -> str:
    """`2d 3h`, `1h 20m`, `4m 10s`: two units are enough."""
    whole = round(seconds)
    for size, name, part, part_name in ((86400, "d", 3600, "h"), (3600, "h", 60, "m")):
        if whole >= size:
            return f"{whole // size}{name} {whole % size // part}{part_name}"
    return f"{whole // 60}m {whole % 60}s" if whole >= 60 else f"{whole}s"


def building(builds: Builds) -> str:
    """`building iteration 3: plus and minus, 1m 10s of about 2m 0s`."""
    several = len(builds.iterations) > 1
    if builds.iterations == (0,):
        return f"building the engines of a match, {duration(builds.seconds)}"
    what = " and ".join(str(k) for k in builds.iterations)
    sides = "" if several or not builds.sides else f": {' and '.join(builds.sides)}"
    usual = "" if builds.usual is None else f" of about {duration(builds.usual)}"
    name = "iterations" if several else "iteration"
    return f"building {name} {what}{sides}, {duration(builds.seconds)}{usual}"
