"""`python -m benches.fleet.staleness`: what it costs to open iterations on results that are old.

The rule of the default on the problems of `benches.papers compare`, with so many iterations
in flight against one at a time: the same games, the same luck, all but the runs in 30 iterations.
"""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace

import click
import numpy as np

from benches.papers.comparison import COMPARED_RULES, NO_ELO_TO_GAIN, MeanAndError, found, wide
from benches.papers.suite import SIZES, STEEP, ProblemGroup, Suite
from spsa.core.params import Vector
from spsa.planning.games_needed import in_flight_after
from spsa.planning.simulated_run import final

RULE = "mixture"
MISJUDGED = "misjudged"
"""The family whose steps are written two to four times too small or too wide."""

HEAD = (
    "| pairs an iteration | iterations | in flight | from the start | recovered, one at a time "
    "| difference | where steps are misjudged |\n|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True, slots=True)
class Case:
    """A run of `budget` pairs in iterations of `pairs`, `in_flight` of them; `growing` to that."""

    pairs: int
    budget: int
    in_flight: int
    growing: bool = True


FLEETS = (
    Case(75, 37_500, 3),
    Case(75, 92_160, 6),
    Case(300, 737_280, 9),
    Case(1000, 2_949_120, 10),
)
"""Runs of 8 hours, and of 500 iterations for one worker, as deep as `make bench-fleet` finds."""

CUTS = tuple(
    Case(pairs, budget, in_flight, growing=False)
    for budget in (200_000, 1_000_000)
    for pairs, in_flight in ((75, 64), (300, 16), (600, 8), (1200, 4), (2400, 2))
)
"""As many games in the air, cut into many small iterations or into few large ones."""

GROWTH = (Case(75, 200_000, 64, growing=False), Case(75, 200_000, 64))
"""As many in flight at once, and grown into."""

SHORT = (Case(75, 20_000, 8, False), Case(75, 20_000, 8))

TABLES = {"fleets": FLEETS, "cuts": CUTS, "growth": GROWTH, "short": SHORT}


def recovered(case: Case, problems: int, in_flight: int) -> dict[str, Vector]:
    """The recovered parts of the Elo to gain, by family, of every problem in its order."""
    size = replace(
        SIZES["short"], budgets=(case.budget,), most_results=case.budget, problems=problems
    )
    suite = Suite(seed=1, half="judge", size=size)
    parts: dict[str, list[Vector]] = {}
    for group in suite.groups(case.pairs):
        if STEEP not in group.families:
            for family, part in _raced(suite, group, in_flight, case.growing):
                parts.setdefault(family, []).append(part)
    return {
        family: np.concatenate(each) for family, each in parts.items() if family != NO_ELO_TO_GAIN
    }


def _raced(
    suite: Suite, group: ProblemGroup, in_flight: int, growing: bool
) -> Iterator[tuple[str, Vector]]:
    field = suite.problems(group)
    played_rule = COMPARED_RULES[RULE](field, wide(field.problem))
    simulated_run = replace(
        field.simulated_run(in_flight), grows=in_flight_after if growing else None
    )
    state = final(simulated_run, played_rule, suite.games(group))
    parts = np.split(field.recovered(played_rule.theta(state)), len(group.families))
    return zip(group.families, parts, strict=True)


def row(case: Case, problems: int) -> str:
    """One line of the table."""
    alone, deep = (recovered(case, problems, in_flight) for in_flight in (1, case.in_flight))
    lost = {family: deep[family] - alone[family] for family in alone}
    cells = (
        str(case.pairs),
        str(round(case.budget / case.pairs)),
        str(case.in_flight),
        "" if case.growing else "yes",
        _shown(found(alone.values()), ""),
        _shown(found(lost.values()), "+"),
        _shown(found([lost[MISJUDGED]]), "+"),
    )
    return f"| {' | '.join(cells)} |"


def _shown(measured: MeanAndError, sign: str) -> str:
    return f"{measured.mean:{sign}.4f} ± {measured.error:.4f}"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--table", type=click.Choice(list(TABLES)), default="fleets", show_default=True)
@click.option("--problems", type=click.IntRange(min=2), default=16, show_default=True)
@click.option("--processes", type=click.IntRange(min=1), default=os.cpu_count() or 1)
def main(table: str, problems: int, processes: int) -> None:
    """What iterations in flight cost: in fleets, by the cut of games, grown into, briefly."""
    click.echo(HEAD)
    for line in _lines(TABLES[table], problems, processes):
        click.echo(line)


def _lines(cases: Sequence[Case], problems: int, processes: int) -> Iterator[str]:
    if processes == 1:
        yield from (row(case, problems) for case in cases)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(row, cases, [problems] * len(cases))


if __name__ == "__main__":
    main()
