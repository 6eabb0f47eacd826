"""`spsa-master pause|resume|stop|extend`: what the owner of a run tells it."""

import getpass
import os
import socket

import click

from spsa.cli.common import config_option, database_option, opened, run_option


def _actor() -> str:
    """Who changed the run, for its events."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container may run as a number that has no name
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


@click.command()
@config_option
@database_option
@run_option
@click.option("--reason", default="by its owner", show_default=True, help="Shown in the status.")
def pause(config: str | None, database_url: str | None, run: str | None, reason: str) -> None:
    """Hand out no more games of a run; games in play still count."""
    with opened(config, database_url) as store:
        name = store.run(run).name
        store.pause(name, _actor(), reason)
        click.echo(f"{name} is paused")


@click.command()
@config_option
@database_option
@run_option
def resume(config: str | None, database_url: str | None, run: str | None) -> None:
    """Go on with a paused run; batches that had failed are tried again."""
    with opened(config, database_url) as store:
        name = store.run(run).name
        store.resume(name, _actor())
        click.echo(f"{name} is running")


@click.command()
@config_option
@database_option
@run_option
@click.option("--reason", default="by its owner", show_default=True, help="Shown in the status.")
def stop(config: str | None, database_url: str | None, run: str | None, reason: str) -> None:
    """End a run for good: its open iterations are abandoned, what was applied stays."""
    with opened(config, database_url) as store:
        name = store.run(run).name
        store.stop(name, _actor(), reason)
        click.echo(f"{name} is stopped")


@click.command()
@config_option
@database_option
@run_option
@click.argument("iterations", type=click.IntRange(min=1))
def extend(config: str | None, database_url: str | None, run: str | None, iterations: int) -> None:
    """Let a run that has not ended have ITERATIONS iterations in all."""
    with opened(config, database_url) as store:
        name = store.run(run).name
        store.extend(name, _actor(), iterations)
        click.echo(f"{name} has {iterations} iterations now")
