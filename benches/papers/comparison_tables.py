"""What a comparison of rules found, as tables and as JSON."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from benches.papers.comparison import (
    ComparisonCell,
    ComparisonSettings,
    MeanAndError,
    RuleResults,
    ranks,
)
from spsa.report.table import TextTable, View, headed

_ABREAST = 7  # families side by side

Standings = Mapping[ComparisonSettings, Sequence[RuleResults]]


def standings_tables(standings: Standings) -> Iterator[TextTable]:
    """Standings and families of every comparison; then batches and iterations in flight."""
    for comparison, rule_results in standings.items():
        yield _overall(comparison, rule_results)
        yield from _families(rule_results)
    if len(standings) > 1:
        yield _settings(standings)


def standings_json(standings: Standings) -> dict[str, Any]:
    """The same, and every cell of every rule."""
    suite = next(iter(standings)).suite
    comparisons = [
        _comparison_json(comparison, rule_results) for comparison, rule_results in standings.items()
    ]
    return {"seed": suite.seed, "half": suite.half, "contests": comparisons}


def _overall(comparison: ComparisonSettings, rule_results: Sequence[RuleResults]) -> TextTable:
    first = rule_results[0]
    count = first.overall().count
    title = (
        f"half {comparison.suite.half}, seed {comparison.suite.seed}: {count} problems, "
        f"{comparison.pairs} pairs an iteration, {comparison.in_flight} in flight, "
        f"{'the same' if comparison.same_width else 'their own'} widths"
    )
    view = View(
        title, headed("rule", "recovered", "+-", f"minus {first.rule}", "+-", "worst cell", "which")
    )
    rows: list[tuple[str, ...]] = []
    for rule_result in rule_results:
        mean, difference, (worst, cell) = (
            rule_result.overall(),
            rule_result.gain_over(first),
            rule_result.worst(),
        )
        both = (
            ("", "")
            if rule_result is first
            else (f"{difference.mean:+.4f}", f"{difference.error:.4f}")
        )
        rows.append(
            (
                rule_result.rule,
                f"{mean.mean:.4f}",
                f"{mean.error:.4f}",
                *both,
                f"{worst:.2f}",
                _named(cell),
            )
        )
    return TextTable(view, rows)


def _families(rule_results: Sequence[RuleResults]) -> Iterator[TextTable]:
    families = iter(rule_results[0].families())
    while some := list(islice(families, _ABREAST)):
        title = "recovered of each family, and the rank there"
        view = View(title, headed("rule", *(name for name in some)))
        rows: list[tuple[str, ...]] = []
        places = {name: ranks(rule_results, name) for name in some}
        for rule_result in rule_results:
            cells = (
                f"{rule_result.family(f).mean:.3f} {places[f][rule_result.rule]:3d}" for f in some
            )
            rows.append((rule_result.rule, *cells))
        yield TextTable(view, rows)


def _settings(standings: Standings) -> TextTable:
    """Every comparison against the first one, on the problems that both have."""
    first, *others = standings
    title = f"against {_setting(first)}"
    view = View(title, headed("rule", *(_setting(comparison) for comparison in others)))
    rows: list[tuple[str, ...]] = []
    for i, rule_result in enumerate(standings[first]):
        found = (standings[comparison][i].gain_over(rule_result) for comparison in others)
        rows.append((rule_result.rule, *(f"{one.mean:+.4f} +- {one.error:.4f}" for one in found)))
    return TextTable(view, rows)


def _setting(comparison: ComparisonSettings) -> str:
    return f"{comparison.pairs} pairs, {comparison.in_flight} in flight"


def _named(cell: ComparisonCell) -> str:
    return f"{cell.family}, n = {cell.parameters}, {cell.budget} pairs"


def _comparison_json(
    comparison: ComparisonSettings, rule_results: Sequence[RuleResults]
) -> dict[str, Any]:
    return {
        "pairs": comparison.pairs,
        "depth": comparison.in_flight,
        "same_width": comparison.same_width,
        "rules": [_rule_json(rule_result, rule_results) for rule_result in rule_results],
    }


def _rule_json(rule_result: RuleResults, rule_results: Sequence[RuleResults]) -> dict[str, Any]:
    worst, cell = rule_result.worst()
    return {
        "rule": rule_result.rule,
        "recovered": _found_json(rule_result.overall()),
        "minus_first": _found_json(rule_result.gain_over(rule_results[0])),
        "worst": {"mean": worst, **_cell_json(cell)},
        "families": {
            name: {
                **_found_json(rule_result.family(name)),
                "rank": ranks(rule_results, name)[rule_result.rule],
            }
            for name in rule_result.families()
        },
        "cells": [
            {**_cell_json(cell), "recovered": part.tolist()}
            for cell, part in rule_result.cells.items()
        ],
    }


def _cell_json(cell: ComparisonCell) -> dict[str, Any]:
    return {"family": cell.family, "parameters": cell.parameters, "budget": cell.budget}


def _found_json(found: MeanAndError) -> dict[str, Any]:
    return {"mean": found.mean, "error": found.error, "problems": found.count}
