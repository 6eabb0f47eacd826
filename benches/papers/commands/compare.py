"""`python -m benches.papers compare`."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import click

from benches.papers.comparison import COMPARED_RULES, ComparisonSettings, RuleResults, results
from benches.papers.comparison_tables import standings_json, standings_tables
from benches.papers.jobs import JobPool, processes_option, seed_option
from benches.papers.suite import SIZES, Suite
from spsa.output import echo_json
from spsa.report.table import terminal
from spsa.text import suggestion


def _names(_context: click.Context, _option: click.Parameter, text: str | None) -> tuple[str, ...]:
    names = tuple(COMPARED_RULES) if text is None else tuple(dict.fromkeys(_parts(text)))
    wrong = [
        f"found {name!r}: {suggestion(name, COMPARED_RULES)}"
        for name in names
        if name not in COMPARED_RULES
    ]
    if wrong or not names:
        raise click.BadParameter("; ".join(wrong) or f"known: {', '.join(COMPARED_RULES)}")
    return names


def _numbers(
    _context: click.Context, _option: click.Parameter, text: str | None
) -> tuple[int, ...] | None:
    if text is None:
        return None
    parts = _parts(text)
    if not parts or not all(part.isdecimal() and int(part) for part in parts):
        raise click.BadParameter(f"found {text!r}: give whole numbers above 0, as in 1,75")
    return tuple(sorted({int(part) for part in parts}))


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


@click.command()
@click.option(
    "--rules", callback=_names, metavar="NAME,NAME...", help="The rules to compare; default: all."
)
@click.option(
    "--batch",
    "batches",
    callback=_numbers,
    default="1,75",
    show_default=True,
    metavar="PAIRS,...",
    help="Game pairs in an iteration: 1 as in the paper, 75 as with one build for 150 games.",
)
@click.option(
    "--depth",
    "numbers_in_flight",
    callback=_numbers,
    default="1",
    show_default=True,
    metavar="N,...",
    help="Iterations in flight.",
)
@click.option(
    "--own-width",
    is_flag=True,
    help="Keep each rule's own default c. Without this, short runs get a wider one.",
)
@click.option(
    "--budgets",
    callback=_numbers,
    metavar="PAIRS,...",
    help="Game pairs in a run; default: those of --size.",
)
@click.option(
    "--size",
    type=click.Choice(["short", "full"]),
    default="short",
    show_default=True,
    help="short takes minutes, full many hours; limit it with --rules.",
)
@click.option(
    "--problems", type=click.IntRange(min=1), help="Problems in each family and cell; default: 4."
)
@click.option(
    "--half",
    type=click.Choice(["choose", "judge"]),
    default="judge",
    show_default=True,
    help="Half of the problems: choose settings on one, judge them on the other.",
)
@seed_option
@processes_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
def compare(
    rules: tuple[str, ...],
    batches: tuple[int, ...],
    numbers_in_flight: tuple[int, ...],
    own_width: bool,
    processes: int,
    as_json: bool,
    **asked: Any,
) -> None:
    """Compare rules on random problems, drawn afresh from the seed.

    Prints how much of the Elo to gain every rule recovers. Differences to the first rule are
    paired, problem by problem; +- is one standard error.
    """
    suite = _suite(**asked)
    comparisons = [
        ComparisonSettings(suite=suite, pairs=pairs, in_flight=in_flight, same_width=not own_width)
        for pairs, in_flight in product(batches, numbers_in_flight)
    ]
    found = _played(comparisons, rules, processes)
    if as_json:
        echo_json(standings_json(found), indent=2)
        return
    console = terminal()
    for table in standings_tables(found):
        console.print(table, "", sep="\n")


def _suite(
    *, half: str, seed: int, size: str, budgets: tuple[int, ...] | None, problems: int | None
) -> Suite:
    usual = SIZES[size]
    if budgets:
        usual = replace(usual, budgets=budgets, most_results=max(budgets))
    if problems:
        usual = replace(usual, problems=problems)
    return Suite(seed=seed, half=half, size=usual)


def _played(
    comparisons: Sequence[ComparisonSettings], names: tuple[str, ...], processes: int
) -> dict[ComparisonSettings, list[RuleResults]]:
    jobs = {
        (comparison, name, group): partial(comparison.recovered, name, group)
        for comparison in comparisons
        for group in comparison.groups()
        for name in names
    }
    pool = JobPool(processes, "tuning synthetic engines")
    done = list(pool.finished(jobs, weight=lambda key: key[2].iterations + 100))
    return {
        comparison: results(
            [(name, cells) for (of, name, _), cells in done if of == comparison], names
        )
        for comparison in comparisons
    }
