"""`spsa-master simulate`: the papers' experiments, and one's own run, on synthetic engines."""

import click

from spsa.cli import LazyGroup

_COMMANDS = {
    "table1": ("spsa.cli.simulate.table1", "Compare with table 1 of Ivec and Vojnovic 2022."),
    "theory": ("spsa.cli.simulate.theory", "Compare van den Bergh's formulas with simulation."),
    "compare": ("spsa.cli.simulate.compare", "Compare rules on random problems."),
    "locked": (
        "spsa.cli.simulate.locked",
        "Judge finished rules on problems used for no decision.",
    ),
    "retune": (
        "spsa.cli.simulate.locked",
        "Measure what an earlier run saves after the engine changed.",
    ),
    "mine": (
        "spsa.cli.simulate.mine",
        "Simulate the run of your own files: the Elo that it recovers.",
    ),
}


@click.group(cls=LazyGroup, table=_COMMANDS)
def simulate() -> None:
    """Tune synthetic engines: no games are played, nothing is built."""
