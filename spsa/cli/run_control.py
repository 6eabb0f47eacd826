"""`spsa-master pause|resume|stop|set|fork`: what the owner of a run tells it."""

from typing import Any

import click

from spsa.algorithms.carrying import MAX_DOUBT
from spsa.cli.common import (
    actor,
    config_option,
    database_option,
    of_run,
    priority_option,
    settings,
    share_option,
)
from spsa.db.run_tables import Run
from spsa.db.store import Store, open_store
from spsa.live_display import working
from spsa.master.new_run import Fork, fork_run
from spsa.master.start import checked_space
from spsa.output import echo
from spsa.text import NAME_LENGTH, is_printable, plural


@click.command()
@of_run
@click.option("--reason", default="by its owner", show_default=True, help="Shown in the status.")
def pause(store: Store, run: Run, reason: str) -> None:
    """Give workers no more games of a run; games that are being played still count."""
    store.pause(run.name, actor(), reason)
    echo(f"{run.name} is paused")


@click.command()
@of_run
def resume(store: Store, run: Run) -> None:
    """Continue a paused run; failed batches are tried again."""
    store.resume(run.name, actor())
    echo(f"{run.name} is running")


@click.command()
@of_run
@click.option("--reason", default="by its owner", show_default=True, help="Shown in the status.")
def stop(store: Store, run: Run, reason: str) -> None:
    """End a run for good; open iterations are abandoned, applied results stay."""
    store.stop(run.name, actor(), reason)
    echo(f"{run.name} is stopped")


@click.command()
@of_run
@click.option(
    "--iterations",
    type=click.IntRange(1, 10_000_000),
    help="Iterations in all; a finished run goes on with `spsa-master run`.",
)
@priority_option
@share_option
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


def _doubt(_context: click.Context, _option: click.Parameter, doubt: float) -> float:
    if not 1.0 <= doubt <= MAX_DOUBT:  # nor nan, which click's own ranges let through
        raise click.BadParameter(f"{doubt:g} is not from 1 to {MAX_DOUBT:g}")
    return doubt


def _name(_context: click.Context, _option: click.Parameter, name: str) -> str:
    if not is_printable(name, NAME_LENGTH):
        raise click.BadParameter(f"a name has 1 to {NAME_LENGTH} printable characters")
    return name


@click.command()
@config_option
@database_option
@click.option("--from", "parent", metavar="RUN", required=True, help="The run to start from.")
@click.option(
    "--at",
    "k",
    type=click.IntRange(min=0),
    metavar="ITERATION",
    help="After this result; 0 is the start. Default: the last one.",
)
@click.option(
    "--run",
    "name",
    metavar="NAME",
    required=True,
    callback=_name,
    help="The name of the new run.",
)
@click.option(
    "--doubt",
    type=float,
    default=1.0,
    show_default=True,
    callback=_doubt,
    metavar="D",
    help="Widen the deviations of what the rule knows by this factor, at most to what they are "
    "before any game; 1 keeps them.",
)
@click.option(
    "--seed", type=click.IntRange(0, 2**63 - 1), help="The seed of the new run; default: a new one."
)
def fork(config: str | None, database_url: str | None, **given: Any) -> None:
    """Start a run where another one was, with its theta and what its rule knew.

    config.toml and params.toml say all the rest, as for any new run: bounds, steps, more parameters
    or fewer, games, time control, the source. A parameter that the other run did not have starts
    from its value in params.toml. `spsa-master run --run NAME` tunes the new run.
    """
    found = settings(config, database_url)
    with open_store(found.database_url) as store:
        wanted = Fork(
            parent=store.run(given["parent"]),
            k=given["k"],
            name=given["name"],
            doubt=given["doubt"],
            seed=given["seed"],
        )
        with working(f"computing what {wanted.parent.name} knew"):
            run, notes = fork_run(found, store, checked_space(found), wanted, actor())
    for note in notes:
        echo(f"note: {note}", err=True)
    at = wanted.parent.applied if wanted.k is None else wanted.k
    echo(
        f"{run.name} begins where {wanted.parent.name} was after {plural(at, 'result')}; "
        f"`spsa-master run --run {run.name}` tunes it"
    )
