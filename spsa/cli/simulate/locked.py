"""`spsa-master simulate locked`."""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import product
from typing import Any

import click
import numpy as np

from spsa.cli.simulate.jobs import JobPool, processes_option
from spsa.lab.simulation.locked import BUDGETS, RULES, TRIALS, TrialResult, trial_result
from spsa.output import echo_json
from spsa.report.table import Column, FittedTable
from spsa.report.text import terminal

Results = Mapping[tuple[str, int, str], TrialResult]
"""By trial, games and rule."""


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
@processes_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
def locked(rules: tuple[str, ...], budgets: tuple[str, ...], processes: int, as_json: bool) -> None:
    """Judge finished rules on problems on which none was chosen.

    Do not choose a rule by these figures: docs/lab-results.md counts how often they were looked
    at. Prints the Elo that each rule gained and, for a rule that has them, how many of the best
    values lie within its 95% intervals.
    """
    played, games = rules or RULES, [int(one) for one in budgets] or BUDGETS
    jobs = {
        (trial, budget, rule): partial(trial_result, trial, rule, budget)
        for trial, budget, rule in product(TRIALS, games, played)
    }
    pool = JobPool(processes, "tuning synthetic engines")
    found = dict(pool.finished(jobs, weight=lambda key: key[1] / 150 + 10))
    if as_json:
        echo_json([_json(*key, found[key]) for key in jobs], indent=2)
        return
    for budget in games:
        terminal().print(_table(found, budget, played), "", sep="\n")


def _table(found: Results, games: int, rules: tuple[str, ...]) -> FittedTable:
    columns = [Column(f"{rule}{what}") for rule in rules for what in ("", " +-", " worst")]
    table = FittedTable(
        f"Elo gained in {games} games",
        (
            Column("trial", is_number=False),
            *columns,
            Column("95% cover"),
            Column("shown"),
            Column("longest move"),
        ),
    )
    for trial in TRIALS:
        cells = [cell for rule in rules for cell in _gained(found[trial, games, rule])]
        table.add(trial, *cells, *_intervals(found[trial, games, rules[0]]))
    parts = [_parts(found, games, rule) for rule in rules]
    table.add("mean part", *(cell for part in parts for cell in (f"{part:.4f}", "", "")), *[""] * 3)
    return table


def _gained(one: TrialResult) -> Iterator[str]:
    yield f"{one.gained.mean():.2f}"
    yield f"{one.gained.std(ddof=1) / len(one.gained) ** 0.5:.2f}"
    yield f"{one.gained.min():.1f}"


def _intervals(one: TrialResult) -> tuple[str, str, str]:
    """Of the first rule."""
    covered = "" if np.isnan(one.covered) else f"{one.covered:.2f}"
    return covered, f"{one.shown:.0%}", f"{one.move.max():.1f}"


def _parts(found: Results, games: int, rule: str) -> float:
    """The mean part of the Elo to gain, over the trials with something to gain."""
    means = [
        found[name, games, rule].gained.mean() / trial.elo
        for name, trial in TRIALS.items()
        if not trial.settled
    ]
    return float(np.mean(means))


def _json(trial: str, games: int, rule: str, one: TrialResult) -> dict[str, Any]:
    covered = None if np.isnan(one.covered) else one.covered
    return {
        "trial": trial,
        "games": games,
        "rule": rule,
        "elo_to_gain": TRIALS[trial].elo,
        "gained": one.gained.tolist(),
        "longest_move": float(one.move.max()),
        "covered": covered,
        "shown": one.shown,
    }
