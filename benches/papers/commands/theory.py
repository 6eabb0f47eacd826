"""`python -m benches.papers theory`."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import click
import numpy as np

from benches.papers.experiment import Asked, Check, Experiment, checks
from benches.papers.jobs import JobPool, processes_option, seed_option
from spsa.core import derived_seed
from spsa.core.params import Vector
from spsa.output import echo_json
from spsa.report.table import Column, TextTable, View, terminal

_TOGETHER = 1000  # replicas in an array: what a seed stands for does not depend on processes


def _elos(
    _context: click.Context, _option: click.Parameter, text: str | None
) -> tuple[float, ...] | None:
    try:
        elos = None if text is None else tuple(float(part) for part in text.split(","))
    except ValueError:
        elos = ()
    if elos is not None and not (elos and all(0 < elo < 1e6 for elo in elos)):
        raise click.BadParameter(f"found {text!r}: give numbers above 0, as in 2 or 1,2,4")
    return elos


_above_0 = click.FloatRange(min=0, max=1e6, min_open=True)


@click.command()
@click.option("-n", "--parameters", type=click.IntRange(1, 10_000), default=4, show_default=True)
@click.option(
    "--precision", type=_above_0, default=0.5, show_default=True, help="Largest final loss, in Elo."
)
@click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Probability that the run ends within --precision.",
)
@click.option(
    "--draw-rate", type=click.FloatRange(0, 1, max_open=True), default=0.61, show_default=True
)
@click.option(
    "--bias",
    type=click.FloatRange(0, 0.5),
    default=0.0,
    show_default=True,
    help="Advantage that openings give one side, as a root mean square score; needs --by-rule.",
)
@click.option(
    "--c-ratio",
    type=click.FloatRange(min=0, max=1, min_open=True),
    default=1 / 6,
    show_default="1/6",
    help="c as a part of a parameter's range.",
)
@click.option(
    "--lambda-ratio",
    type=_above_0,
    default=3.0,
    show_default=True,
    help="Length of the run, in time constants.",
)
@click.option(
    "--elo",
    "true_elo",
    callback=_elos,
    default="2",
    show_default=True,
    metavar="ELO[,ELO...]",
    help="Elo lost at the ends of each parameter's range; the last value is repeated.",
)
@click.option(
    "--guessed-elo",
    callback=_elos,
    metavar="ELO[,ELO...]",
    help="Elo that the design assumes; default: the values of --elo.",
)
@click.option(
    "--start-elo", type=_above_0, default=2.0, show_default=True, help="Elo lost at the start."
)
@click.option(
    "--direct",
    is_flag=True,
    help="Use what --start-elo says for a shorter run, by (2.8), instead of --lambda-ratio.",
)
@click.option(
    "--in-turn", is_flag=True, help="Perturb one parameter a game (FDSA), not all at once (SPSA)."
)
@click.option(
    "--by-rule",
    is_flag=True,
    help="Simulate pairs with the rule `constant` itself; many times slower.",
)
@click.option(
    "--replicas",
    type=click.IntRange(min=10),
    default=1000,
    show_default=True,
    help="Simulated runs.",
)
@seed_option
@processes_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
def theory(replicas: int, seed: int, processes: int, as_json: bool, **asked: Any) -> None:
    """Van den Bergh's formulas for constant gains against simulation.

    Designs a run for a wanted precision, plays it, and prints what the formulas say of it beside
    what was seen: z is the difference in standard errors.
    """
    experiment = _experiment(asked)
    theta = _played(experiment, replicas, seed, processes)
    found = list(checks(experiment, theta))
    if as_json:
        echo_json(findings_json(experiment, found), indent=2)
        return
    console = terminal()
    for line in findings_lines(experiment):
        console.print(line)
    console.print("", findings_table(found, replicas), sep="\n")


def _experiment(asked: Mapping[str, Any]) -> Experiment:
    if asked["bias"] and not asked["by_rule"]:
        raise click.UsageError("--bias needs --by-rule: only pairs feel what openings are worth")
    try:
        return Asked(**asked).experiment()
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _played(experiment: Experiment, replicas: int, seed: int, processes: int) -> Vector:
    jobs = {
        first: partial(
            experiment.played, min(_TOGETHER, replicas - first), derived_seed("theory", seed, first)
        )
        for first in range(0, replicas, _TOGETHER)
    }
    done = dict(JobPool(processes, "constant gains").finished(jobs))
    return np.concatenate([done[first] for first in jobs], axis=1)


def findings_lines(experiment: Experiment) -> Iterator[str]:
    """The design, and where it leads."""
    design, goal, process = experiment.design, experiment.goal, experiment.process
    way = "one at a time" if experiment.in_turn else "all at once"
    yield (
        f"{len(experiment.c)} parameters {way}, {experiment.draw_rate:.0%} drawn, to be within "
        f"{goal.precision:g} Elo with {goal.confidence:.1%} confidence:"
    )
    yield f"  r = {design.r:.6f}, c = {experiment.c[0]:.6f} of the range, {design.games} games"
    low, high = process.half_lives.min(), process.half_lives.max()
    yield f"  the loss halves in {low:.6f} games" + (f" to {high:.6f}" if low < high else "")
    yield (
        f"  in the end it loses {process.mean_loss:.6f} Elo on average, "
        f"less than {process.loss_quantile(0.5):.6f} in half of all runs "
        f"and than {process.loss_quantile(goal.confidence):.6f} in {goal.confidence:.1%}"
    )
    scale = process.scale(experiment.start, design.games)
    yield f"  after the games it loses {scale:.6f} times as much"


_FINDINGS = (
    Column("", "games", "games", str),
    Column("", "quantity", "quantity", kind="text"),
    Column("", "formula", "formula", "{:.6f}".format),
    Column("", "simulated", "simulated", "{:.6f}".format),
    Column("", "+-", "error", "{:.6f}".format),
    Column("", "z", "z", "{:+.1f}".format),
)


def findings_table(found: Sequence[Check], replicas: int) -> TextTable:
    """Formula beside simulation."""
    return TextTable(View(f"{replicas} runs; theta in ranges, off the best", _FINDINGS), found)


def findings_json(experiment: Experiment, found: Sequence[Check]) -> dict[str, Any]:
    """The same, unrounded."""
    design, process = experiment.design, experiment.process
    return {
        "r": design.r,
        "c": experiment.c.tolist(),
        "games": design.games,
        "half_lives": process.half_lives.tolist(),
        "mean_loss_in_the_end": process.mean_loss,
        "loss_quantile_in_the_end": process.loss_quantile(experiment.goal.confidence),
        "scale": process.scale(experiment.start, design.games),
        "success": experiment.losses(design.games).cdf(experiment.goal.precision),
        "checks": [
            {
                "games": check.games,
                "quantity": check.quantity,
                "formula": check.formula,
                "simulated": check.simulated,
                "error": check.error,
                "z": check.z,
            }
            for check in found
        ],
    }
