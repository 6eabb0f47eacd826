"""A plan, and the space that it is for, as text and as JSON."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType

from spsa.core.params import Parameter, Space
from spsa.planning.plan import Plan
from spsa.planning.plan_inputs import UNBALANCED_ELO, Openings, PlanInputs
from spsa.planning.plan_warnings import PlanWarning
from spsa.report.formats import by, duration, number, plain
from spsa.report.table import Column, TextTable, View, records, sentence
from spsa.text import plural

_NAMED = 6
"""Parameters of one warning that are named."""


def planned_text(inputs: PlanInputs, plan: Plan, sources: Sequence[str]) -> RenderableType:
    """All of it for a terminal."""
    return Group(
        *_length(inputs, plan),
        *(sentence(f"  {source}") for source in sources),
        "",
        TextTable(RECOVERIES, [*plan.recoveries.items()]),
        "",
        TextTable(LINES, plan.lines),
        "",
        *_advice(plan, inputs.openings, slower=inputs.builds_are_slower),
    )


def _length(inputs: PlanInputs, plan: Plan) -> Iterator[str]:
    shape = plan.shape
    games = shape.iterations * shape.games
    yield (
        f"{inputs.design.algorithm}: {plural(len(plan.lines), 'parameter')}, "
        f"{plural(shape.iterations, 'iteration')} of {plural(shape.games, 'game')}, "
        f"{games:,} in all"
    )
    yield f"noise ± {plan.noise:.1f} Elo an iteration"
    if plan.pace is not None:
        yield (
            f"{duration(plan.pace.run)} on {plural(inputs.capacity.concurrency, 'slot')}: "
            f"{duration(plan.pace.iteration)} an iteration, slots idle {plan.pace.idle:.0%} "
            "of the time"
        )


RECOVERIES = View(
    "what simulated runs recover",
    (
        Column("elo", "Elo to gain", lambda row: row[0], number),
        Column("mean", "", lambda row: row[0] * row[1].mean),
        Column("error", "", lambda row: row[0] * row[1].error),
        Column(
            "",
            "recovered (95%)",
            lambda row: f"{row[0] * row[1].mean:z.1f} ± {1.96 * row[0] * row[1].error:.1f}",
        ),
        Column("spread", "one run (1 sd)", lambda row: row[0] * row[1].spread, by("± {:.1f}")),
        Column("", "part", lambda row: row[1].mean, by("{:z.0%}")),
    ),
)
"""Of Elo to gain, and what is recovered of it, as a part."""

_ABOUT = by("± {:.3g}")
LINES = View(
    "in each one's own units",
    (
        Column("name", "parameter", kind="name"),
        Column("value", "value", show=number),
        Column("c_first", "plus/minus at first", show=_ABOUT),
        Column("c_last", "at last", show=_ABOUT),
        Column("move_first", "moves at first", show=_ABOUT, rank=1),
        Column("move_last", "at last", show=_ABOUT, rank=1),
    ),
)


def _advice(plan: Plan, openings: Openings | None, *, slower: bool) -> Iterator[str]:
    """At most one piece of advice about a key."""
    warned = {warning.name: warning for warning in reversed(plan.warnings)}
    if plan.shape.adapts:
        yield f"iterations in flight follow the fleet: up to {plan.shape.in_flight} with this one"
    elif "iterations_in_flight" not in warned:
        busy = "" if plan.busy_in_flight is None or slower else plan.busy_in_flight
        keeps = busy and f"; {busy} or more keep every slot busy"
        yield f"iterations in flight: up to {plan.free_in_flight} cost nothing{keeps}"
    if openings is not None and "book" not in warned:
        yield f"openings: {openings.draw_rate:.0%} draws; {_unbalanced(openings)}"
    yield from _warned(one for one in plan.warnings if one is warned[one.name])


def _warned(warnings: Iterable[PlanWarning]) -> Iterator[str]:
    """A line a warning; those that say the same share one."""
    names: dict[tuple[str, str], list[str]] = {}
    for warning in warnings:
        names.setdefault((warning.found, warning.remedy), []).append(warning.name)
    for (found, remedy), same in names.items():
        more = f" and {len(same) - _NAMED} more" if len(same) > _NAMED else ""
        yield f"look at {', '.join(same[:_NAMED])}{more}: {found}; {remedy}"


def _unbalanced(openings: Openings) -> str:
    """What openings in which one side is ahead would cost, by `games_with`."""
    games = openings.games_with(UNBALANCED_ELO)
    change = f"{abs(1 - games):.0%} {'fewer' if games < 1 else 'more'} games"
    return f"with one side {UNBALANCED_ELO:g} Elo ahead a run would need {change}"


def planned_json(inputs: PlanInputs, plan: Plan, sources: Sequence[str]) -> dict[str, Any]:
    """All of it for programs; Elo, seconds, and the units of params.toml."""
    return {
        "algorithm": inputs.design.algorithm,
        "draw_rate": inputs.draw_rate,
        "concurrency": inputs.capacity.concurrency,
        "sources": list(sources),
        "shape": plain(plan.shape),
        "pace": plain(plan.pace),
        "noise": plan.noise,
        "recoveries": records(RECOVERIES, [*plan.recoveries.items()]),
        "parameters": records(LINES, plan.lines),
        "openings": None if inputs.openings is None else _openings(inputs.openings),
        "free_depth": plan.free_in_flight,
        "busy_depth": plan.busy_in_flight,
        "cautions": plain(plan.warnings),
    }


def _openings(openings: Openings) -> dict[str, float]:
    return {
        "draw_rate": openings.draw_rate,
        "elo_ahead": openings.ahead,
        "games_if_unbalanced": openings.games_with(UNBALANCED_ELO),
        "games_if_balanced": openings.games_with(0.0),
    }


def space_table(
    space: Space, lines: Mapping[str, tuple[int, str]] | None, others: Mapping[str, float]
) -> TextTable:
    """What params.toml would tune, and where in the engine each value goes.

    `lines` are the lines of the source by name; None if the values are options. `others` are the
    numbers of the source that are not the values.
    """

    def state(p: Parameter) -> str:
        told = [
            "" if p.active else "frozen",
            f"source has {others[p.name]:g}" if p.name in others else "",
        ]
        return ", ".join(filter(None, told))

    columns = (
        Column("name", "name", kind="name"),
        Column("value", "value", show=number),
        Column("minimum", "min", show=number),
        Column("maximum", "max", show=number),
        Column("step", "step", show=number),
        Column("option", "option", kind="name", rank=3)
        if lines is None
        else Column("place", "place", lambda p: str(p.place.location), kind="name", rank=3),
        Column("group", "group", kind="text", rank=4),
        Column(
            "source",
            "source",
            lambda p: "{}: {}".format(*lines[p.name]) if lines else None,
            kind="text",
            rank=2,
        ),
        Column("active", "state", state, kind="word", rank=1),
    )
    return TextTable(View("parameters", columns), space.parameters)
