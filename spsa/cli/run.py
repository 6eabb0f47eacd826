"""`spsa-master run`."""

from math import inf

import click

from spsa.cli.common import with_both
from spsa.cli.held_run import held_run, interruptible, tune_and_measure
from spsa.config.settings import Config
from spsa.db import Store, migrate
from spsa.live_display import working
from spsa.master.loop import sole_writer
from spsa.master.start import Origin, checked_space, prepare
from spsa.output import echo
from spsa.report.alarms import look
from spsa.report.notify import addresses
from spsa.report.run_watch import watching
from spsa.report.screen import rendered
from spsa.report.table import terminal


def _origin(store: Store, text: str, name: str, **given: bool) -> Origin:
    """The moment that `RUN[@K]` names, for a new run of this name."""
    parent, at, k = text.rpartition("@")
    if not at or store.find_run(text) is not None:
        parent, k = text, ""
    elif not (k.isascii() and k.isdigit()):
        remedy = f"behind @ belongs the number of a result, not {k!r}"
        raise click.UsageError(f"there is no run named {text}; {remedy}")
    if parent == name:
        raise click.UsageError(f"run {name} cannot start from itself: name another one with --run")
    found = store.run(parent)
    return Origin(run=found, k=int(k) if k else found.applied, **given)


@click.command()
@with_both
@click.option("--run", "name", metavar="NAME", help="The run's name; default: [run] name.")
@click.option(
    "--seed", type=click.IntRange(0, 2**63 - 1), help="The seed of a new run; default: [run] seed."
)
@click.option(
    "--from",
    "origin",
    metavar="RUN[@K]",
    help="Start where this run was, after its result K; default: the last one.",
)
@click.option(
    "--same-engine",
    is_flag=True,
    help="With --from: engine and games are as in that run, so what its rule knew holds, too.",
)
@click.option(
    "--learned-steps",
    is_flag=True,
    help="With --from: write the steps that its games suggest into params.toml, and use them.",
)
def run(
    config: Config, name: str | None, seed: int | None, origin: str | None, **given: bool
) -> int:
    """Tune: start a run, or continue an unfinished one.

    The master plays no games: start `compete --spsa` on this machine or on others. After Ctrl-C the
    same command continues the run.

    With --from a new run has the theta of another one. config.toml and params.toml say all the
    rest, as for any new run: bounds, steps, more parameters or fewer, games, time control, the
    source. What the other run did not tune starts from its value in params.toml.
    """
    if origin is None and any(given.values()):
        option = "--learned-steps" if given["learned_steps"] else "--same-engine"
        raise click.UsageError(f"{option} is about an earlier run: name that with --from RUN")
    chosen = {"name": name or config.run.name, "seed": config.run.seed if seed is None else seed}
    config = config.model_copy(update={"run": config.run.model_copy(update=chosen)})
    told = addresses(config)
    with working("checking params.toml against the engine, and a new book line by line"):
        space = checked_space(config, is_played=True)
    click.get_current_context().with_resource(sole_writer(config, config.run.name))
    if origin is None and migrate.upgrade(config.database.url):
        echo("the database has its tables now", err=True)
    console = terminal(stderr=True)
    with (
        interruptible() as stopping,
        Store(config.database.url, is_stopping=stopping.is_set) as store,
    ):
        with working("preparing the run"):
            new, begins = config.run.name, None
            if origin is not None:
                begins = _origin(store, origin, new, **given)
            prepared = prepare(config, store, space, begins)
        with (
            held_run(store, config, prepared.run, console, stopping, longest_wait=inf) as held,
            watching(config, held.master_lease, prepared.run.name, told),
        ):
            name = prepared.run.name
            has_ended = store.run(name).has_ended  # as it may have while this master stood by
            if not has_ended and not tune_and_measure(held, prepared):
                return 130
        terminal().print(rendered(look(store, store.run(name))))
    return 0
