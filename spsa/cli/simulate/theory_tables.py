"""What `simulate theory` found, as text and as JSON."""

from collections.abc import Iterator, Sequence
from typing import Any

from spsa.cli.simulate.experiment import Check, Experiment
from spsa.report.table import Column, FittedTable


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


def findings_table(found: Sequence[Check], replicas: int) -> FittedTable:
    """Formula beside simulation."""
    table = FittedTable(
        f"{replicas} runs; theta in ranges, off the best",
        (
            Column("games"),
            Column("quantity", is_number=False),
            Column("formula"),
            Column("simulated"),
            Column("+-"),
            Column("z"),
        ),
    )
    for check in found:
        table.add(
            str(check.games),
            check.quantity,
            f"{check.formula:.6f}",
            f"{check.simulated:.6f}",
            f"{check.error:.6f}",
            f"{check.z:+.1f}",
        )
    return table


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
