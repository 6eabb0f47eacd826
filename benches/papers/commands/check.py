"""`python -m benches.papers check`: what `make papers` runs, beside the published figures."""

from collections.abc import Iterator

import click

from benches.papers.commands.table1 import cells_table, played
from benches.papers.experiment import Asked
from benches.papers.jobs import processes_option, seed_option
from benches.papers.table1 import PARAMETERS, Losses, Row, Table1Cell
from spsa.output import echo
from spsa.report.table import terminal

FAR = 4.0
"""Standard errors beyond which a simulated mean is not the published one."""

DESIGNS = {
    1: (0.007685, 152589, 17627.770275, 0.134794, 0.061359, 0.517696, 0.945914),
    4: (0.003111, 376868, 43537.498565, 0.215234, 0.180640, 0.510440, 0.945835),
    16: (0.001123, 1044529, 120668.704509, 0.308430, 0.295683, 0.506878, 0.945112),
}
"""What van den Bergh's simulator prints by parameters: r, games, half life, and of the loss after
them mean, median, 95% point and the probability of the wanted precision."""


@click.command()
@click.option("--runs", type=click.IntRange(min=2), default=50, show_default=True)
@seed_option
@processes_option
@click.pass_context
def check(context: click.Context, runs: int, seed: int, processes: int) -> None:
    """Reproduce the published figures; the exit code is 1 if one differs."""
    rows = (Row.SPSA, Row.BSPSAS, Row.BSPSA)
    cells = [Table1Cell(row=row, n=n) for row in rows for n in PARAMETERS]
    found = played(cells, runs, seed, processes, by_rule=False)
    terminal().print(cells_table(found))
    differences = [*far_cells(found), *_other_designs()]
    echo(*(differences or ["every figure is the published one"]))
    context.exit(1 if differences else 0)


def far_cells(found: list[Losses]) -> Iterator[str]:
    """A line for each mean that is too far from the paper, or from the exact one."""
    for losses in found:
        for what, z in (("the paper", losses.z_published), ("exact", losses.z_expected)):
            if z is not None and abs(z) > FAR:
                yield f"{losses.cell.row} with n = {losses.cell.n}: {z:+.1f} errors from {what}"


def _other_designs() -> Iterator[str]:
    for n, published in DESIGNS.items():
        if (own := designed(n)) != published:
            yield f"the design for n = {n}: {own}, published {published}"


def designed(parameters: int) -> tuple[float, ...]:
    """The figures of `DESIGNS` by our formulas, to the digits printed."""
    experiment = Asked(parameters=parameters).experiment()
    design, losses = experiment.design, experiment.losses(experiment.design.games)
    return (
        round(design.r, 6),
        design.games,
        round(float(experiment.process.half_lives[0]), 6),
        *(round(x, 6) for x in (losses.mean, losses.quantile(0.5), losses.quantile(0.95))),
        round(losses.cdf(experiment.goal.precision), 6),
    )
