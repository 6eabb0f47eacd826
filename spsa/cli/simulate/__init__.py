"""`spsa-master simulate`: the papers' experiments, and one's own run, on synthetic engines."""

import click

from spsa.cli import LazyGroup

_COMMANDS = {
    "table1": ("spsa.cli.simulate.table1", "Table 1 of Ivec and Vojnovic 2022, beside ours."),
    "theory": ("spsa.cli.simulate.theory", "Van den Bergh's formulas against simulation."),
    "compare": ("spsa.cli.simulate.compare", "Rules against each other on a held-out suite."),
    "locked": ("spsa.cli.simulate.locked", "Finished rules on problems that none was chosen on."),
    "retune": (
        "spsa.cli.simulate.locked",
        "What an earlier run saves after a change of the engine.",
    ),
    "mine": ("spsa.cli.simulate.mine", "What the run of your own files will recover."),
}


@click.group(cls=LazyGroup, table=_COMMANDS)
def simulate() -> None:
    """Tune synthetic engines: no games are played, nothing is built."""
