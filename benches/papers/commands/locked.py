"""`python -m benches.papers locked|retune`: finished rules, and priors, on fresh problems."""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import product
from typing import Any

import click
import numpy as np

from benches.papers.jobs import JobPool, processes_option, seed_option
from benches.papers.locked import (
    BUDGETS,
    GROUPS,
    PAIRS,
    RULES,
    SEED,
    Conditions,
    GroupResult,
    group_result,
)
from benches.papers.retuning import CHANGES, FIRST_VALUES, THETA, Retuning, saving
from spsa.core.params import Vector
from spsa.output import echo_json
from spsa.report.table import TextTable, View, headed, terminal

Results = Mapping[tuple[str, int, str], GroupResult]
"""By group, games and rule."""


@click.command()
@click.option(
    "--rule",
    "rules",
    type=click.Choice(RULES),
    multiple=True,
    help="Repeatable; default: all. fishtest-wide perturbs more widely than fishtest.",
)
@click.option(
    "--games",
    "budgets",
    type=click.Choice([str(games) for games in BUDGETS]),
    multiple=True,
    help="Repeatable; default: all.",
)
@click.option(
    "--group",
    "groups",
    type=click.Choice(list(GROUPS)),
    multiple=True,
    help="Repeatable; default: all.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=SEED,
    help="Another one draws problems by which a rule may be chosen.",
)
@click.option(
    "--pairs",
    type=click.IntRange(1),
    default=PAIRS,
    show_default=True,
    help="Game pairs in an iteration.",
)
@click.option("--draw-rate", type=click.FloatRange(0.0, 1.0), default=0.6, show_default=True)
@click.option("--in-flight", type=click.IntRange(1), default=1, show_default=True)
@processes_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
def locked(
    rules: tuple[str, ...],
    budgets: tuple[str, ...],
    groups: tuple[str, ...],
    processes: int,
    as_json: bool,
    **conditions: Any,
) -> None:
    """Judge finished rules on problems on which none was chosen.

    Do not choose a rule by these figures: RESULTS.md counts how often they were looked
    at. Prints the Elo that each rule gained and, for the first, what it believes to have gained.
    """
    played, games = rules or RULES, [int(one) for one in budgets] or BUDGETS
    groups = groups or tuple(name for name, group in GROUPS.items() if not group.added)
    asked = Conditions(**conditions)
    jobs = {
        (group, budget, rule): partial(group_result, group, rule, budget, asked)
        for group, budget, rule in product(groups, games, played)
    }
    pool = JobPool(processes, "tuning synthetic engines")
    found = dict(pool.finished(jobs, weight=lambda key: key[1] / 150 + 10))
    if as_json:
        echo_json([_json(*key, found[key]) for key in jobs], indent=2)
        return
    for budget in games:
        terminal().print(_table(found, groups, budget, played), "", sep="\n")


def _table(
    found: Results, groups: tuple[str, ...], games: int, rules: tuple[str, ...]
) -> TextTable:
    columns = [f"{rule}{what}" for rule in rules for what in ("", " +-", " worst")]
    title = f"Elo gained in {games} games"
    view = View(title, headed("problems", *columns, "believed", "longest move"))
    rows: list[tuple[str, ...]] = []
    for group in groups:
        cells = [cell for rule in rules for cell in _gained(found[group, games, rule])]
        rows.append((group, *cells, *_first(found[group, games, rules[0]])))
    parts = [_parts(found, groups, games, rule) for rule in rules]
    rows.append(
        ("mean part", *(cell for part in parts for cell in (f"{part:.4f}", "", "")), *[""] * 2)
    )
    return TextTable(view, rows)


def _gained(one: GroupResult) -> Iterator[str]:
    yield f"{one.gained.mean():.2f}"
    yield f"{one.gained.std(ddof=1) / len(one.gained) ** 0.5:.2f}"
    yield f"{one.gained.min():.1f}"


def _first(one: GroupResult) -> tuple[str, str]:
    """Of the first rule."""
    believed = one.believed.mean()
    return "" if np.isnan(believed) else f"{believed:.2f}", f"{one.move.max():.1f}"


def _parts(found: Results, groups: tuple[str, ...], games: int, rule: str) -> float:
    """The mean part of the Elo to gain, over the groups with something to gain."""
    means = [
        found[name, games, rule].gained.mean() / GROUPS[name].elo
        for name in groups
        if not GROUPS[name].settled
    ]
    return float(np.mean(means)) if means else 0.0


def _json(group: str, games: int, rule: str, one: GroupResult) -> dict[str, Any]:
    believed = None if np.isnan(one.believed).any() else one.believed.tolist()
    return {
        "trial": group,
        "games": games,
        "rule": rule,
        "elo_to_gain": GROUPS[group].elo,
        "gained": one.gained.tolist(),
        "longest_move": float(one.move.max()),
        "believed": believed,
        "steps_told": int(one.told.sum()),
        "steps_told_right": int(one.told_right.sum()),
        "covered": None if np.isnan(one.covered).any() else one.covered.tolist(),
    }


@click.command()
@click.option(
    "--earlier", type=click.IntRange(1000), default=30_000, show_default=True, help="Its games."
)
@click.option(
    "--games",
    "later",
    type=click.IntRange(1000),
    default=10_000,
    show_default=True,
    help="Of the run of the new version.",
)
@click.option(
    "--pairs",
    type=click.IntRange(1),
    default=15,
    show_default=True,
    help="Game pairs in an iteration.",
)
@click.option("--runs", type=click.IntRange(2), default=200, show_default=True)
@seed_option
@processes_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
def retune(processes: int, as_json: bool, **given: int) -> None:
    """What an earlier run saves after a change of the engine.

    A run tunes random engines of 16 parameters with 20 Elo to gain. Then their best values drift,
    or everything changes, and other runs tune them again, from the first values, from the theta of
    the earlier run, and with what its rule knew. Prints the Elo that
    is left, and how many games a run saves until it is as strong as another after all its games.
    """
    asked = {change: Retuning(change=change, **given) for change in CHANGES}
    jobs = {change: partial(one.lost) for change, one in asked.items()}
    done = dict(JobPool(processes, "tuning synthetic engines").finished(jobs))
    found = {change: done[change] for change in CHANGES}
    if as_json:
        echo_json({change: _retuned_json(lost) for change, lost in found.items()})
        return
    for change, lost in found.items():
        terminal().print(_retuned(change, lost), "", sep="\n")


def _retuned(change: str, lost: Mapping[str, Vector]) -> TextTable:
    title = f"changed: {change}; Elo below the best"
    view = View(
        title,
        headed(
            "start",
            "1/10 of the games",
            "1/3",
            "2/3",
            "all",
            "+-",
            *(f"saved against {other}" for other in (FIRST_VALUES, THETA)),
            f"all minus {THETA}",
            "+- ",
        ),
    )
    rows: list[tuple[str, ...]] = []
    for start, each in lost.items():
        mean, last = each.mean(axis=1), each[-1]
        more = last - lost[THETA][-1]
        rows.append(
            (
                start,
                *(f"{mean[round(len(mean) * part) - 1]:.2f}" for part in (1 / 10, 1 / 3, 2 / 3, 1)),
                f"{_error(last):.2f}",
                *(_saved(start, other, lost) for other in (FIRST_VALUES, THETA)),
                *(("", "") if start == THETA else (f"{more.mean():+.2f}", f"{_error(more):.2f}")),
            )
        )
    return TextTable(view, rows)


def _saved(start: str, other: str, lost: Mapping[str, Vector]) -> str:
    if start == other or other not in lost:
        return ""
    games = saving(lost[start], lost[other])
    return "none" if games is None else f"{games:.0%}"


def _error(of: Vector) -> float:
    return float(of.std(ddof=1) / np.sqrt(len(of)))


def _retuned_json(lost: Mapping[str, Vector]) -> dict[str, Any]:
    return {
        start: {
            "elo_left": each.mean(axis=1).tolist(),
            "elo_left_at_the_end": each[-1].tolist(),
            "saved": {
                other: saving(each, lost[other])
                for other in (FIRST_VALUES, THETA)
                if other in lost and other != start
            },
        }
        for start, each in lost.items()
    }
