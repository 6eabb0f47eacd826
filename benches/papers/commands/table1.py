"""`python -m benches.papers table1`."""

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from typing import Any

import click
import numpy as np

from benches.papers.jobs import JobPool, processes_option, seed_option
from benches.papers.table1 import PARAMETERS, Losses, Row, Table1Cell
from spsa.core import derived_seed
from spsa.core.params import Vector
from spsa.output import echo_json
from spsa.report.table import TextTable, View, headed, terminal
from spsa.text import suggestion

_TOGETHER = 200  # runs in an array: what a seed stands for does not depend on how many are wanted
_LONGEST = 1_000_000  # iterations, whose c_1 still fits between the paper's bounds


def _rows(_context: click.Context, _option: click.Parameter, text: str) -> list[Row]:
    names = dict.fromkeys(part.strip() for part in text.split(",") if part.strip())
    known = [row.value for row in Row]
    wrong = [f"found {n!r}: {suggestion(n, known)}" for n in names if n not in known]
    if wrong or not names:
        raise click.BadParameter("; ".join(wrong) or f"known: {', '.join(known)}")
    return [Row(name) for name in names]


@click.command()
@click.option(
    "--runs",
    type=click.IntRange(min=2),
    default=50,
    show_default=True,
    help="Runs in each cell; the paper has 50.",
)
@click.option(
    "--iterations",
    type=click.IntRange(min=10, max=_LONGEST),
    default=200_000,
    show_default=True,
    help="Iterations in a run; published figures exist for 200000 only.",
)
@click.option(
    "--rules",
    "rows",
    callback=_rows,
    default="spsa,bspsas,bspsa,bspsa-told",
    show_default=True,
    metavar="NAME,NAME...",
    help="bspsa-told knows the true sigma and distance; mixture knows neither and takes longer.",
)
@click.option(
    "-n",
    "--parameters",
    type=click.Choice(["1", "4", "16", "64"]),
    multiple=True,
    help="Only problems with this many parameters; may be repeated. Default: all.",
)
@click.option(
    "--by-rule",
    is_flag=True,
    help="Simulate each iteration with the rule itself: same distribution, several times slower.",
)
@seed_option
@processes_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
def table1(
    runs: int,
    iterations: int,
    rows: list[Row],
    parameters: tuple[str, ...],
    by_rule: bool,
    seed: int,
    processes: int,
    as_json: bool,
) -> None:
    """Table 1 of Ivec and Vojnovic 2022, beside ours.

    Shows the Elo gained, of the 2 that can be gained, and the Elo still missing, with one standard
    error. z is the difference to the paper and to the exact expectation in standard errors. With
    the paper's perturbations no rule can lose less on average than the Bayes limit; mixture
    chooses its own.
    """
    sizes = [n for n in PARAMETERS if not parameters or str(n) in parameters]
    cells = [Table1Cell(row=row, n=n, iterations=iterations) for row in rows for n in sizes]
    found = played(cells, runs, seed, processes, by_rule=by_rule)
    if as_json:
        echo_json(cells_json(found, seed), indent=2)
        return
    terminal().print(cells_table(found))


def played(
    cells: Sequence[Table1Cell], runs: int, seed: int, processes: int, *, by_rule: bool
) -> list[Losses]:
    """The cells, each simulated `runs` times."""
    jobs = {
        (cell, first): partial(_batch, cell, min(_TOGETHER, runs - first), (seed, first), by_rule)
        for cell in sorted(cells, key=lambda cell: -cell.n)
        for first in range(0, runs, _TOGETHER)
    }
    done: dict[Any, Vector] = dict(
        JobPool(processes, "Table 1").finished(jobs, weight=lambda key: key[0].n + 20.0)
    )
    parts = defaultdict(list)
    for cell, first in jobs:
        parts[cell].append(done[cell, first])
    return [Losses.of(cell, parts[cell]) for cell in cells]


def _batch(cell: Table1Cell, runs: int, seed: tuple[int, int], by_rule: bool) -> Vector:
    rng = np.random.default_rng(derived_seed("table1", *seed, cell.row, cell.n))
    return (cell.losses_by_rule if by_rule else cell.losses)(runs, rng)


def cells_table(found: Sequence[Losses]) -> TextTable:
    """A line for every cell: the gain beside the paper's, the loss beside what is exact."""
    one = found[0]
    title = f"{one.cell.iterations} iterations of one pair, {one.runs} runs: Elo gained of 2"
    rows = [tuple(_line(losses)) for losses in found]
    columns = headed(
        *("rule", "n", "paper", "+-", "gained", "+-", "z"),
        *("lost", "+-", "exact", "z", "limit", "lost/limit"),
    )
    filled = tuple(column for column in columns if any(map(column.text, rows)))
    return TextTable(View(title, filled), rows)


def _line(losses: Losses) -> list[str]:
    cell = losses.cell
    published = cell.published
    return [
        cell.row,
        str(cell.n),
        _elo(published.mean if published else None),
        _elo(published.error if published else None),
        _elo(losses.gain),
        _elo(losses.error),
        _z(losses.z_published),
        _elo(losses.mean, 6),
        _elo(losses.error, 6),
        _elo(cell.expected, 6),
        _z(losses.z_expected),
        _elo(cell.limit, 6),
        f"{losses.of_limit:.2f}",
    ]


def _elo(value: float | None, digits: int = 5) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _z(value: float | None) -> str:
    return "" if value is None else f"{value:+.1f}"


def cells_json(found: Sequence[Losses], seed: int) -> dict[str, Any]:
    """The same, unrounded."""
    return {
        "iterations": found[0].cell.iterations,
        "runs": found[0].runs,
        "seed": seed,
        "cells": [_cell_json(losses) for losses in found],
    }


def _cell_json(losses: Losses) -> dict[str, Any]:
    cell = losses.cell
    published = cell.published
    return {
        "rule": cell.row,
        "parameters": cell.n,
        "gain": losses.gain,
        "loss": losses.mean,
        "error": losses.error,
        "deviation": losses.deviation,
        "published_gain": published.mean if published else None,
        "published_error": published.error if published else None,
        "z_published": losses.z_published,
        "expected_loss": cell.expected,
        "z_expected": losses.z_expected,
        "limit": cell.limit,
        "loss_of_limit": losses.of_limit,
    }
