"""`python -m benches.papers`: the papers' experiments, and rules compared on synthetic engines."""

import click

from benches.papers.commands.check import check
from benches.papers.commands.compare import compare
from benches.papers.commands.locked import locked, retune
from benches.papers.commands.table1 import table1
from benches.papers.commands.theory import theory


@click.group()
def papers() -> None:
    """Tune synthetic engines: no games are played, nothing is built."""


for command in (check, table1, theory, compare, locked, retune):
    papers.add_command(command)

if __name__ == "__main__":
    papers()
