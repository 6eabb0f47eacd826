"""A plan, and the space that it is for, as text and as JSON."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType

from spsa.core.params import Space
from spsa.planning.constant_gains import PrecisionDesign
from spsa.planning.plan import Plan
from spsa.planning.plan_inputs import UNBALANCED_ELO, Openings, PlanInputs
from spsa.planning.plan_warnings import PlanWarning
from spsa.planning.recovery import Recovery
from spsa.report.runs import duration
from spsa.report.table import Column, FittedTable
from spsa.report.text import number, plural, sentence

_NAMED = 6
"""Parameters of one warning that are named."""


def planned_text(
    inputs: PlanInputs, plan: Plan, sources: Sequence[str], designs: Sequence[PrecisionDesign]
) -> RenderableType:
    """All of it for a terminal."""
    return Group(
        *_length(inputs, plan),
        *(sentence(f"  {source}") for source in sources),
        "",
        _recoveries(inputs, plan),
        "",
        _lines(plan),
        "",
        *((_designs(designs), "") if designs else ()),
        *_advice(plan, inputs.openings, slower=inputs.builds_are_slower),
    )


def _length(inputs: PlanInputs, plan: Plan) -> Iterator[str]:
    shape = plan.shape
    games = shape.iterations * shape.games
    yield (
        f"{inputs.design.algorithm}: {plural(len(plan.lines), 'parameter')}, "
        f"{plural(shape.iterations, 'iteration')} of {shape.games} games, {games} in all; "
        f"noise ± {plan.noise:.1f} Elo an iteration"
    )
    if plan.pace is not None:
        yield (
            f"{duration(plan.pace.run)} on {plural(inputs.capacity.concurrency, 'slot')}: "
            f"{duration(plan.pace.iteration)} an iteration, slots idle {plan.pace.idle:.0%} "
            "of the time"
        )


def _recoveries(inputs: PlanInputs, plan: Plan) -> FittedTable:
    table = FittedTable(
        f"what {inputs.replicas} simulated runs recover",
        (
            Column("Elo to gain"),
            Column("recovered (95%)"),
            Column("one run (1 sd)"),
            Column("part"),
        ),
    )
    for elo_to_gain, found in plan.recoveries.items():
        mean = round(found.mean * elo_to_gain, 1) + 0.0  # not -0.0
        table.add(
            number(elo_to_gain),
            f"{mean:.1f} ± {1.96 * found.error * elo_to_gain:.1f}",
            f"± {found.spread * elo_to_gain:.1f}",
            f"{round(found.mean, 2) + 0.0:.0%}",
        )
    return table


def _lines(plan: Plan) -> FittedTable:
    table = FittedTable(
        "in each one's own units",
        (
            Column("parameter", is_number=False),
            Column("value"),
            Column("plus/minus at first"),
            Column("at last"),
            Column("moves at first", 1),
            Column("at last ", 1),
        ),
    )
    for line in plan.lines:
        moves = (f"± {line.move_first:.3g}", f"± {line.move_last:.3g}")
        table.add(
            line.name,
            number(line.value),
            f"± {line.c_first:.3g}",
            f"± {line.c_last:.3g}",
            *moves,
        )
    return table


def _designs(designs: Sequence[PrecisionDesign]) -> FittedTable:
    """What to write into config.toml for a precision, wherever the start is."""
    table = FittedTable(
        f"by theory, for so few Elo left with {designs[0].confidence:.0%}",
        (
            Column("Elo to gain"),
            Column("Elo left"),
            Column("r"),
            Column("c"),
            Column("games"),
            Column("max_iterations"),
        ),
    )
    for design in designs:
        table.add(
            number(design.elo_to_gain),
            number(design.precision),
            f"{design.r:.4g}",
            number(design.c),
            f"{design.games:,}",
            str(design.iterations),
        )
    return table


def _advice(plan: Plan, openings: Openings | None, *, slower: bool) -> Iterator[str]:
    if plan.shape.adapts:
        yield f"iterations in flight follow the fleet: up to {plan.shape.in_flight} with this one"
    else:
        yield f"iterations in flight that cost nothing: up to {plan.free_in_flight}"
        if plan.busy_in_flight is not None and not slower:
            yield f"iterations in flight that keep every slot busy: {plan.busy_in_flight} or more"
    if openings is not None:
        yield f"openings: {openings.draw_rate:.0%} draws; {_unbalanced(openings)}"
    yield from _warned(plan.warnings)


def _warned(warnings: Sequence[PlanWarning]) -> Iterator[str]:
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


def planned_json(
    inputs: PlanInputs, plan: Plan, sources: Sequence[str], designs: Sequence[PrecisionDesign]
) -> dict[str, Any]:
    """All of it for programs; Elo, seconds, and the units of params.toml."""
    return {
        "algorithm": inputs.design.algorithm,
        "draw_rate": inputs.draw_rate,
        "concurrency": inputs.capacity.concurrency,
        "sources": list(sources),
        "shape": asdict(plan.shape),
        "pace": None if plan.pace is None else asdict(plan.pace),
        "noise": plan.noise,
        "recoveries": [
            _recovery(elo_to_gain, found) for elo_to_gain, found in plan.recoveries.items()
        ],
        "parameters": [asdict(line) for line in plan.lines],
        "designs": [asdict(design) for design in designs],
        "openings": None if inputs.openings is None else _openings(inputs.openings),
        "free_depth": plan.free_in_flight,
        "busy_depth": plan.busy_in_flight,
        "cautions": [asdict(warning) for warning in plan.warnings],
    }


def _openings(openings: Openings) -> dict[str, float]:
    return {
        "draw_rate": openings.draw_rate,
        "elo_ahead": openings.ahead,
        "games_if_unbalanced": openings.games_with(UNBALANCED_ELO),
        "games_if_balanced": openings.games_with(0.0),
    }


def _recovery(elo_to_gain: float, found: Recovery) -> dict[str, float]:
    return {
        "elo": elo_to_gain,
        "mean": found.mean * elo_to_gain,
        "error": found.error * elo_to_gain,
        "spread": found.spread * elo_to_gain,
    }


def alternatives_table(
    found: Mapping[tuple[str, float], Recovery], elo_to_gain: float
) -> FittedTable:
    """What each alternative recovers of this Elo to gain, beside the first of them."""
    chosen = {name: recovery for (name, at), recovery in found.items() if at == elo_to_gain}
    own = next(iter(chosen.values()))
    table = FittedTable(
        f"with {elo_to_gain:g} Elo to gain",
        (
            Column("", is_number=False),
            Column("recovered"),
            Column("one run (1 sd)", 1),
            Column("against as it is (95%)"),
        ),
    )
    for name, recovery in chosen.items():
        better, error = recovery.better_than(own)
        table.add(
            name,
            f"{recovery.mean * elo_to_gain:.2f}",
            f"± {recovery.spread * elo_to_gain:.2f}",
            ""
            if recovery is own
            else f"{better * elo_to_gain:+.2f} ± {1.96 * error * elo_to_gain:.2f}",
        )
    return table


def alternatives_json(found: Mapping[tuple[str, float], Recovery]) -> dict[str, Any]:
    """All alternatives for programs, in Elo."""
    return {
        "alternatives": [
            {"name": name, **_recovery(elo_to_gain, recovery)}
            for (name, elo_to_gain), recovery in found.items()
        ]
    }


def space_table(space: Space, *, over_uci: bool) -> FittedTable:
    """What params.toml would tune, and where in the engine each value goes."""
    table = FittedTable(
        "parameters",
        (
            Column("name", is_number=False),
            Column("value"),
            Column("min"),
            Column("max"),
            Column("step"),
            Column("option" if over_uci else "place", 2, is_number=False),
            Column("group", 3, is_number=False),
            Column("", 1, is_number=False),
        ),
    )
    for p in space.parameters:
        table.add(
            p.name,
            *(number(x) for x in (p.value, p.minimum, p.maximum, p.step)),
            p.option if over_uci else str(p.place.location),
            p.group,
            "" if p.active else "frozen",
        )
    return table
