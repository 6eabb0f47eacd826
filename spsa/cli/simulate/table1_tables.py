"""Table 1 as a table and as JSON."""

from collections.abc import Sequence
from typing import Any

from spsa.lab.simulation.table1 import Losses
from spsa.report.table import Column, FittedTable


def cells_table(found: Sequence[Losses]) -> FittedTable:
    """A line for every cell: the gain beside the paper's, the loss beside what is exact."""
    one = found[0]
    table = FittedTable(
        f"{one.cell.iterations} iterations of one pair, {one.runs} runs: Elo gained of 2",
        (
            Column("rule", is_number=False),
            Column("n"),
            Column("paper", rank=1),
            Column("+-", rank=1),
            Column("gained"),
            Column("+-"),
            Column("z"),
            Column("lost"),
            Column("+-"),
            Column("exact"),
            Column("z"),
            Column("limit"),
            Column("lost/limit"),
        ),
    )
    for losses in found:
        table.add(*_line(losses))
    return table


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
