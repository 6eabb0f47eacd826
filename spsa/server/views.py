"""The tables that only pages and their JSON have, and the order in which a table is shown."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from spsa.core.scoring import Tally
from spsa.db.machine_queries import PlayedEngines
from spsa.db.tables import Batch, Iteration
from spsa.protocol import words_of
from spsa.report.events import binary, place
from spsa.report.matches import ITERATIONS, RESULT, games_of, time_of
from spsa.report.parameters import PARAMETERS, ParameterStatus
from spsa.report.table import Column, View, count, estimate, headed, thousands, unless_zero, values


def link(path: str, **query: object) -> str:
    """A path with its query, without what is None."""
    given = {name: value for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


def _voids(batch: Batch) -> str:
    """`2: 2 engine crashed`: how many, and how many of each reason."""
    reasons = ", ".join(f"{n} {reason}" for reason, n in (batch.voids or {}).items())
    return f"{batch.void_games}: {reasons}" if batch.void_games else ""


def _span(engines: PlayedEngines) -> str:
    """`3`, or `3 to 8`."""
    first, last = engines.first, engines.last
    return str(first) if first == last else f"{first:,} to {last:,}"


PARAMETER = replace(PARAMETERS, columns=tuple(c for c in PARAMETERS.columns if c.key != "path"))
"""Of one alone, whose path is a figure."""

BATCHES = View(
    "batches",
    (
        Column("seq", "batch", kind="name"),
        Column("status", "status", kind="word"),
        games_of("tally", "games"),
        *RESULT,
        Column("worker", "worker", "worker.name", kind="name"),
        Column("machine", "machine", "worker.host", kind="name", rank=1),
        Column("slot", "slot", rank=1),
        Column("attempt", "attempt"),
        Column("time_losses", "time losses", show=unless_zero, rank=1),
        Column("plus_time_losses", "of plus", show=unless_zero, rank=1),
        Column("minus_time_losses", "of minus", show=unless_zero, rank=1),
        Column("void_games"),
        Column("", "void games", lambda batch: batch, _voids, kind="text", rank=1),
        Column("", "knps", "nodes_per_second", thousands, rank=1),
        Column("scale", "scale", show="{:.3g}".format, note="by what its worker multiplied times"),
        time_of("leased_at", "claimed", 1),
        time_of("reported_at", "reported", 1),
        Column("last_error", "last error", kind="text", rank=1),
        *values("games", "first_pair", "seed", "time_control", "voids"),
        *values("plus_nodes", "minus_nodes", "moves", "seconds", "think_seconds"),
    ),
    "Each batch with the worker that played it last.",
)

FAILED = View(
    "failed batches of its machine",
    (
        Column("run", "run", "batch.iteration.run.name", kind="name"),
        Column("", "batch", place, kind="name"),
        Column("failures", "failed", show=unless_zero),
        Column("lost_leases", "lease lost", show=unless_zero, note="it expired, and others played"),
        binary("sha256", "binary"),
        Column("reason", "last reason", kind="text", rank=1),
        Column("at", "time (UTC)", kind="word"),
    ),
    "Of all runs, the newest first.",
)

ENGINES = View(
    "engines that it has played",
    (
        Column("", "iterations", lambda one: one, _span, kind="name"),
        *(binary(f"{side}_sha256", side) for side in ("plus", "minus")),
        Column("games", "games", show=count),
    ),
    "Of this run, the newest first.",
)

BUILDS = View(
    "engines that it has built",
    (
        Column("created_at", "ordered (UTC)", kind="word"),
        *(binary(f"{side}_sha256", side) for side in ("plus", "minus")),
        Column("", "for machines with", lambda build: words_of(build.requires), kind="text"),
    ),
    "For all runs, the newest first.",
)

PURGED = View(
    "purged results",
    (
        Column("purge", "purge", kind="name"),
        Column("seq", "batch", kind="name"),
        Column("", "games", "tally.games", count),
        *RESULT,
        Column("void_games", "void", show=unless_zero, rank=1),
        Column("worker", "worker", get="worker.name", kind="name"),
        time_of("reported_at", "reported", 0),
        Column("played_again", "played again", kind="word"),
    ),
    "As they were reported; they count no more.",
)

PLAYED = View(
    "parameters",
    headed("name", "theta", "plus", "minus", "gradient, Elo a step"),
    "Theta when the iteration was opened, and the values that the engines had.",
)

ITERATION = View(
    "iteration",
    (
        *ITERATIONS.columns,
        Column("", "theta after result", "opened_on"),
        *values("elo_diff", "plus_sha256", "minus_sha256", "base_parameters"),
        *values("plus_parameters", "minus_parameters", "gradient_estimate"),
    ),
)
"""One iteration with its parameters."""

COMPARED = View("parameters of both", headed("name", "start", "now", "the other's", "apart, steps"))


def played_rows(one: Iteration) -> list[tuple[Any, ...]]:
    """The parameters of an iteration."""
    plus, minus, gradient = (
        values or {}
        for values in (one.plus_parameters, one.minus_parameters, one.gradient_estimate)
    )
    return [
        (name, theta, plus.get(name), minus.get(name), gradient.get(name))
        for name, theta in one.base_parameters.items()
    ]


def compared_rows(
    own: Sequence[ParameterStatus], others: Sequence[ParameterStatus]
) -> list[tuple[Any, ...]]:
    """The parameters that both runs have, those that are farthest apart first."""
    there = {one.name: one.value for one in others}
    apart = [((there[one.name] - one.value) / one.step, one) for one in own if one.name in there]
    farthest = sorted(apart, key=lambda pair: -abs(pair[0]))
    return [
        (one.name, one.start, one.value, there[one.name], f"{steps:+.2f}")
        for steps, one in farthest
    ]


@dataclass(frozen=True, slots=True)
class Sorted:
    """By which column a page's table is sorted, and the addresses that sort it otherwise."""

    path: str
    run: str
    by: str | None
    is_descending: bool

    def state(self, column: Column) -> str | None:
        """As `aria-sort` has it; None for the other columns."""
        if column.heading != self.by:
            return None
        return "descending" if self.is_descending else "ascending"

    def link(self, column: Column) -> str:
        """The address that sorts by a column, the other way round if it is so already."""
        turn = column.heading == self.by and not self.is_descending
        order = "descending" if turn else None
        return link(self.path, run=self.run, sort=column.heading, order=order)

    def rows(self, view: View, rows: Sequence[Any]) -> Sequence[Any]:
        """The rows in this order; unknown values come last, and no column leaves the order."""
        column = next((one for one in view.columns if one.heading and one.heading == self.by), None)
        if column is None:
            return rows
        keys = [(_order(column.value(row)), row) for row in rows]
        known = [pair for pair in keys if pair[0] is not None]
        known.sort(key=lambda pair: pair[0], reverse=self.is_descending)
        return [row for _, row in (*known, *(pair for pair in keys if pair[0] is None))]


def _order(value: Any) -> Any:
    if isinstance(value, Tally):
        found = estimate(value)
        return None if found is None else found.value
    if isinstance(value, int | float):
        return value
    return None if value in (None, "", ()) else str(value).casefold()
