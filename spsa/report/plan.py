"""A plan, and the space that it is for, as text and as JSON."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType

from spsa.core.params import Space
from spsa.planning.constant_gains import PrecisionDesign
from spsa.planning.plan import Plan
from spsa.planning.plan_inputs import UNBALANCED_ELO, Openings, PlanInputs
from spsa.planning.plan_warnings import PlanWarning
from spsa.planning.recovery import Recovery
from spsa.report.formats import by, count, duration, number, percent, plain
from spsa.report.table import Column, TextTable, View, records, sentence, values
from spsa.text import plural

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
        TextTable(RECOVERIES, _recovered(plan)),
        "",
        TextTable(LINES, plan.lines),
        "",
        *((TextTable(DESIGNS, designs), "") if designs else ()),
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


_ERROR = by("± {:.1f}")


@dataclass(frozen=True, slots=True)
class _Recovered:
    """What simulated runs recover of so much Elo to gain."""

    elo_to_gain: float
    recovery: Recovery

    @property
    def mean(self) -> float:
        return round(self.recovery.mean * self.elo_to_gain, 1) + 0.0  # not -0.0

    @property
    def error(self) -> float:
        return self.recovery.error * self.elo_to_gain

    @property
    def spread(self) -> float:
        return self.recovery.spread * self.elo_to_gain


RECOVERIES = View(
    "what simulated runs recover",
    (
        Column("elo", "Elo to gain", "elo_to_gain", number),
        Column("mean", "", lambda one: one.recovery.mean * one.elo_to_gain),
        *values("error", "spread"),
        Column("", "recovered (95%)", lambda one: f"{one.mean:.1f} ± {1.96 * one.error:.1f}"),
        Column("", "one run (1 sd)", "spread", _ERROR),
        Column("", "part", lambda one: round(one.recovery.mean, 2) + 0.0, percent),
    ),
)

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

DESIGNS = View(
    "by theory, what to write into config.toml for so few Elo left",
    (
        Column("elo_to_gain", "Elo to gain", show=number),
        Column("precision", "Elo left", show=number),
        Column("r", "r", show=by("{:.4g}")),
        Column("c", "c", show=number),
        Column("games", "games", show=count),
        Column("iterations", "max_iterations", show=str),
        *values("confidence", "direct_r", "direct_games"),
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


def planned_json(
    inputs: PlanInputs, plan: Plan, sources: Sequence[str], designs: Sequence[PrecisionDesign]
) -> dict[str, Any]:
    """All of it for programs; Elo, seconds, and the units of params.toml."""
    return {
        "algorithm": inputs.design.algorithm,
        "draw_rate": inputs.draw_rate,
        "concurrency": inputs.capacity.concurrency,
        "sources": list(sources),
        "shape": plain(plan.shape),
        "pace": plain(plan.pace),
        "noise": plan.noise,
        "recoveries": records(RECOVERIES, _recovered(plan)),
        "parameters": records(LINES, plan.lines),
        "designs": records(DESIGNS, designs),
        "openings": None if inputs.openings is None else _openings(inputs.openings),
        "free_depth": plan.free_in_flight,
        "busy_depth": plan.busy_in_flight,
        "cautions": plain(plan.warnings),
    }


def _recovered(plan: Plan) -> list[_Recovered]:
    return [_Recovered(elo, found) for elo, found in plan.recoveries.items()]


def _openings(openings: Openings) -> dict[str, float]:
    return {
        "draw_rate": openings.draw_rate,
        "elo_ahead": openings.ahead,
        "games_if_unbalanced": openings.games_with(UNBALANCED_ELO),
        "games_if_balanced": openings.games_with(0.0),
    }


@dataclass(frozen=True, slots=True)
class _Alternative(_Recovered):
    """An alternative, beside the first of them, which is `own`."""

    name: str
    own: Recovery

    @property
    def better(self) -> str:
        if self.recovery is self.own:
            return ""
        better, error = self.recovery.better_than(self.own)
        elo = self.elo_to_gain
        return f"{better * elo:+.2f} ± {1.96 * error * elo:.2f}"


ALTERNATIVES = View(
    "",
    (
        Column("name", "other settings", kind="name"),
        *RECOVERIES.columns[:4],
        Column("", "recovered", lambda one: one.recovery.mean * one.elo_to_gain, by("{:.2f}")),
        Column("", "one run (1 sd)", "spread", by("± {:.2f}"), rank=1),
        Column("", "against as it is (95%)", "better"),
    ),
)

Found = Mapping[tuple[str, float], Recovery]
"""What every alternative recovers, by its name and the Elo to gain."""


def _alternatives(found: Found, elo_to_gain: float) -> list[_Alternative]:
    chosen = {name: recovery for (name, at), recovery in found.items() if at == elo_to_gain}
    own = next(iter(chosen.values()))
    return [_Alternative(elo_to_gain, one, name, own) for name, one in chosen.items()]


def alternatives_table(found: Found, elo_to_gain: float) -> TextTable:
    """What each alternative recovers of this Elo to gain, beside the first of them."""
    title = f"with {elo_to_gain:g} Elo to gain"
    columns = [one for one in ALTERNATIVES.columns if one.key != "elo"]
    return TextTable(View(title, tuple(columns)), _alternatives(found, elo_to_gain))


def alternatives_json(found: Found) -> dict[str, Any]:
    """All alternatives for programs, in Elo."""
    budgets = dict.fromkeys(elo for _, elo in found)
    rows = [row for elo in budgets for row in _alternatives(found, elo)]
    return {"alternatives": records(ALTERNATIVES, rows)}


def space_table(space: Space, lines: Mapping[str, tuple[int, str]] | None) -> TextTable:
    """What params.toml would tune, and where in the engine each value goes.

    `lines` are the lines of the source by name; None if the values are options.
    """
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
        Column("active", "state", show=lambda it: "" if it else "frozen", kind="word", rank=1),
    )
    return TextTable(View("parameters", columns), space.parameters)
