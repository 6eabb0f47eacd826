"""`spsa-master pause|resume|stop|set`: what the owner of a run tells it."""

import click

from spsa.cli.common import actor, with_run
from spsa.db import Store
from spsa.db.tables import Run
from spsa.output import Within, echo
from spsa.text import plural

_reason_option = click.option(
    "--reason", default="by its owner", show_default=True, help="Shown in the status."
)


@click.command()
@with_run
@_reason_option
def pause(store: Store, run: Run, reason: str) -> None:
    """Give workers no more games of a run; games that are being played still count."""
    store.pause(run.name, actor(), reason)
    echo(f"{run.name} is paused")


@click.command()
@with_run
def resume(store: Store, run: Run) -> None:
    """Continue a paused run; failed batches are tried again."""
    store.resume(run.name, actor())
    echo(f"{run.name} is running")


@click.command()
@with_run
@_reason_option
def stop(store: Store, run: Run, reason: str) -> None:
    """End a run for good; open iterations are abandoned, applied results stay."""
    store.stop(run.name, actor(), reason)
    echo(f"{run.name} is stopped")


@click.command()
@with_run
@click.option(
    "--iterations",
    type=click.IntRange(1, 10_000_000),
    help="Iterations in all; a finished run goes on with `spsa-master run`.",
)
@click.option(
    "--priority",
    type=click.IntRange(-1000, 1000),
    metavar="N",
    help="Workers serve the run of the highest priority first.",
)
@click.option(
    "--share",
    type=Within(1e-6, 1e6),
    metavar="X",
    help="Weight of the run among runs of the same priority.",
)
def set(
    store: Store, run: Run, iterations: int | None, priority: int | None, share: float | None
) -> None:
    """Change the length, the priority or the share of a run.

    A priority and a share hold from the next claim of any worker on.
    """
    if (iterations, priority, share) == (None, None, None):
        raise click.UsageError("give --iterations, --priority or --share")
    if iterations is not None:
        store.extend(run.name, actor(), iterations)
        echo(f"{run.name} has {plural(iterations, 'iteration')} now")
    if priority is not None or share is not None:
        store.prioritize(run.name, actor(), priority=priority, share=share)
        now = store.run(run.name)
        echo(f"{run.name} has priority {now.priority} and share {now.share:g} now")
