"""`spsa-master key`: the pair of keys by which workers know what the master signed."""

from pathlib import Path

import click

from spsa.cli.common import FileToWrite
from spsa.output import echo
from spsa.security.keys import SigningKey, public_file

_FILE = FileToWrite()


@click.group()
def key() -> None:
    """Make the key that signs what workers execute, or show its public half."""


@key.command()
@click.argument("file", type=_FILE)
def new(file: Path) -> None:
    """Write a new key to FILE and FILE.pub.

    Prints the public half, which FILE.pub has too. Name FILE in config.toml as [trust]
    signing_key, and start every worker with --trust-key and what was printed. FILE itself stays on
    the master's machine.
    """
    made = SigningKey.new()
    made.write(file)
    echo(f"{file} signs; {public_file(file)} is for the workers' --trust-key:", err=True)
    echo(str(made.public))


@key.command()
@click.argument("file", type=_FILE)
def public(file: Path) -> None:
    """Print the public half of the key in FILE."""
    echo(str(SigningKey.read(file).public))
