"""A plan, and the space that it is for, as text and as JSON."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType

from spsa.core.parameter import Parameter
from spsa.core.params import Space
from spsa.planning.plan import Plan
from spsa.planning.plan_inputs import UNBALANCED_ELO, Openings, PlanInputs
from spsa.report.table import Column, TextTable, View, duration, percent, plain, records, sentence
from spsa.text import plural

_NAMED = 6
"""Parameters of one warning that are named."""


def planned_text(inputs: PlanInputs, plan: Plan, sources: Sequence[str]) -> RenderableType:
    """All of it for a terminal."""
    return Group(
        *_length(inputs, plan),
        *(sentence(f"  {source}") for source in sources),
        "",
        *([TextTable(COSTS, inputs.time_controls), ""] if inputs.time_controls else ()),
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


COSTS = View(
    "what each time control costs",
    (
        Column("time_control", "time control", kind="name"),
        Column("games", "games an iteration"),
        Column("seconds", "seconds a game", show="{:.3g}".format),
        Column("part", "of the time", show=percent),
    ),
)
RECOVERIES = View(
    "what simulated runs recover",
    (
        Column("elo", "Elo to gain", lambda row: row[0]),
        Column("mean", "", lambda row: row[0] * row[1].mean),
        Column("error", "", lambda row: row[0] * row[1].error),
        Column(
            "",
            "recovered (95%)",
            lambda row: f"{row[0] * row[1].mean:z.1f} ± {1.96 * row[0] * row[1].error:.1f}",
        ),
        Column("spread", "one run (1 sd)", lambda row: row[0] * row[1].spread, "± {:.1f}".format),
        Column("", "part", lambda row: row[1].mean, "{:z.0%}".format),
    ),
)
"""Of Elo to gain, and what is recovered of it, as a part."""


def _about(value: float) -> str:
    """`± 12.3`, and `± 1,320`."""
    return f"± {value:,.0f}" if value >= 999.5 else f"± {value:.3g}"


LINES = View(
    "in each one's own units",
    (
        Column("name", "parameter", kind="name"),
        Column("value", "value"),
        Column("c_first", "plus/minus at first", show=_about),
        Column("c_last", "at last", show=_about),
        Column("move_first", "moves at first", show=_about, rank=1),
        Column("move_last", "at last", show=_about, rank=1),
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
        games = openings.games_with(UNBALANCED_ELO)
        change = f"{abs(1 - games):.0%} {'fewer' if games < 1 else 'more'} games"
        yield (
            f"openings: {openings.draw_rate:.0%} draws; with one side {UNBALANCED_ELO:g} Elo ahead "
            f"a run would need {change}"
        )
    alike: dict[tuple[str, str], list[str]] = {}
    for one in plan.warnings:
        if one is warned[one.name]:
            alike.setdefault((one.found, one.remedy), []).append(one.name)
    for (found, remedy), names in alike.items():
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        yield f"look at {', '.join(names[:_NAMED])}{more}: {found}; {remedy}"


def planned_json(inputs: PlanInputs, plan: Plan, sources: Sequence[str]) -> Any:
    """All of it for programs; Elo, seconds, and the units of params.toml."""
    openings = inputs.openings
    return {
        "algorithm": inputs.design.algorithm,
        "draw_rate": inputs.draw_rate,
        "concurrency": inputs.capacity.concurrency,
        "sources": list(sources),
        "time_controls": records(COSTS, inputs.time_controls),
        "games_if_unbalanced": openings and openings.games_with(UNBALANCED_ELO),
        **plain(plan),
        "recoveries": records(RECOVERIES, [*plan.recoveries.items()]),
    }


def space_table(
    space: Space, lines: Mapping[str, tuple[int, str]] | None, others: Mapping[str, float]
) -> TextTable:
    """What params.toml would tune, and where in the engine each value goes.

    `lines` are the lines of the source by name; None if the values are options. `others` are the
    numbers of the source that are not the values.
    """

    def state(p: Parameter) -> str:
        other = f"source has {others[p.name]:g}" if p.name in others else ""
        return ", ".join(filter(None, ("" if p.active else "frozen", other)))

    where = Column("option", "option", kind="name", rank=3)
    if lines is not None:
        where = Column("place", "place", "location", kind="name", rank=3)
    columns = (
        Column("name", "name", kind="name"),
        Column("value", "value"),
        Column("minimum", "min"),
        Column("maximum", "max"),
        Column("step", "step"),
        where,
        Column("group", "group", kind="text", rank=4),
        Column(
            "source",
            "source",
            lambda p: "{}: {}".format(*lines[p.name]) if lines else "",
            kind="word",
            rank=2,
        ),
        Column("active", "state", state, kind="word", rank=1),
    )
    return TextTable(View("parameters", columns), space.parameters)
