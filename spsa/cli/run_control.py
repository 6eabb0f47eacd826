"""`spsa-master pause|resume|stop|extend|prioritize`: what the owner of a run tells it."""

import click

from spsa.cli.common import (
    actor,
    config_option,
    database_option,
    opened,
    priority_option,
    run_option,
    share_option,
)
from spsa.output import echo
from spsa.text import plural


@click.command()
@config_option
@database_option
@run_option
@click.option("--reason", default="by its owner", show_default=True, help="Shown in the status.")
def pause(config: str | None, database_url: str | None, run: str | None, reason: str) -> None:
    """Give workers no more games of a run; games that are being played still count."""
    with opened(config, database_url) as store:
        name = store.run(run).name
        store.pause(name, actor(), reason)
        echo(f"{name} is paused")


@click.command()
@config_option
@database_option
@run_option
def resume(config: str | None, database_url: str | None, run: str | None) -> None:
    """Continue a paused run; failed batches are tried again."""
    with opened(config, database_url) as store:
        name = store.run(run).name
        store.resume(name, actor())
        echo(f"{name} is running")


@click.command()
@config_option
@database_option
@run_option
@click.option("--reason", default="by its owner", show_default=True, help="Shown in the status.")
def stop(config: str | None, database_url: str | None, run: str | None, reason: str) -> None:
    """End a run for good; open iterations are abandoned, applied results stay."""
    with opened(config, database_url) as store:
        name = store.run(run).name
        store.stop(name, actor(), reason)
        echo(f"{name} is stopped")


@click.command()
@config_option
@database_option
@run_option
@click.argument("iterations", type=click.IntRange(1, 10_000_000))
def extend(config: str | None, database_url: str | None, run: str | None, iterations: int) -> None:
    """Let a run that has not ended have ITERATIONS iterations in all."""
    with opened(config, database_url) as store:
        name = store.run(run).name
        store.extend(name, actor(), iterations)
        echo(f"{name} has {plural(iterations, 'iteration')} now")


@click.command()
@config_option
@database_option
@run_option
@priority_option
@share_option
def prioritize(
    config: str | None,
    database_url: str | None,
    run: str | None,
    priority: int | None,
    share: float | None,
) -> None:
    """Set the priority or the share of a run, from the next claim of any worker on."""
    if priority is None and share is None:
        raise click.UsageError("give --priority, --share or both")
    with opened(config, database_url) as store:
        name = store.run(run).name
        store.prioritize(name, actor(), priority=priority, share=share)
        now = store.run(name)
        echo(f"{name} has priority {now.priority} and share {now.share:g} now")
