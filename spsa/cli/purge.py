"""`spsa-master purge`: removes results and recomputes theta without them."""

import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC
from typing import Any

import click

from spsa.cli.common import actor, chosen_run, run_option, with_config
from spsa.config.settings import Config
from spsa.config.space import project_theta, says
from spsa.core.scoring import Tally
from spsa.db import Store
from spsa.db.purge_queries import PurgePlan, Selection
from spsa.db.tables import Run
from spsa.errors import InvalidInput, NothingToDo
from spsa.history.replay import carry_out, moved, plan
from spsa.live_display import working
from spsa.master.session import tuning_of
from spsa.output import echo
from spsa.report.table import TextTable, View, headed, terminal
from spsa.text import plural, suggestion


class _Moment(click.DateTime):
    """A time in UTC."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return super().convert(value, param, ctx).replace(tzinfo=UTC)


_moment = _Moment(["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d"])
_Number = click.IntRange(0, 2**31 - 1)


@click.command()
@with_config
@run_option
@click.option("--worker", metavar="NAME", help="Results of this worker, by its whole name.")
@click.option("--host", metavar="NAME", help="Results of all workers of this machine.")
@click.option(
    "--iteration",
    "iterations",
    type=_Number,
    multiple=True,
    metavar="N",
    help="Results of this iteration, by its number; repeatable.",
)
@click.option(
    "--batch",
    "batches",
    type=(_Number, _Number),
    multiple=True,
    metavar="N SEQ",
    help="One batch, by its iteration and its number in it; repeatable, and added to those of "
    "--iteration.",
)
@click.option(
    "--since", type=_moment, metavar="TIME", help="Reported then or later: UTC, 2026-11-21T14:00."
)
@click.option("--until", type=_moment, metavar="TIME", help="Reported before that.")
@click.option("--reason", default="by its owner", show_default=True, help="For the record.")
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def purge(
    config: Config, run: str | None, reason: str, dry_run: bool, yes: bool, **conditions: Any
) -> None:
    """Remove results, such as those of a machine with bad memory, and recompute theta.

    A result is removed if it meets all conditions. The rows stay in the database and count no more.
    Games of open iterations are played again. The master of the run may keep running.
    """
    selection = Selection(**conditions)
    if not selection.to_json():
        raise click.UsageError(
            "give a condition: --worker, --host, --iteration, --batch, --since or --until"
        )
    if not (dry_run or yes) and not sys.stdin.isatty():
        raise click.UsageError("there is no terminal to ask on: give --yes or --dry-run")
    with Store(config.database.url) as store:
        chosen = chosen_run(store, run)
        _refuse_unknown(store, selection)
        wanted = _planned(config, store, chosen, selection)
        echo(*_sentences(wanted))
        if wanted.after is not None:
            moves = [
                (name, wanted.run.theta[name], wanted.theta[name], f"{steps:+.3f}")
                for name, steps in moved(wanted).items()
            ]
            columns = headed("name", "now", "without them", "steps")
            terminal().print(TextTable(View("theta", columns), moves))
        if dry_run:
            return
        if not yes:
            click.confirm("remove them?", abort=True, err=True)
        with working("removing them"):
            done = carry_out(store, tuning_of(chosen), wanted, actor(), reason)
        _repair(config, store, chosen)
        echo(f"purge {done.number}: {done.games:,} games are removed")


def _refuse_unknown(store: Store, selection: Selection) -> None:
    """Refuse a worker or a host that the database does not know."""
    workers = store.workers()
    names, hosts = {one.name for one in workers}, {one.host for one in workers}
    for option, known in (("worker", names), ("host", hosts)):
        name = getattr(selection, option)
        if name is not None and known and name not in known:
            is_machine = option == "worker" and name in hosts
            remedy = f"it is a machine: --host {name}" if is_machine else suggestion(name, known)
            found = f"the database knows no {name!r}; {remedy}"
            raise click.BadParameter(found, param_hint=f"--{option}")


def _sentences(plan: PurgePlan) -> Iterator[str]:
    """The results that a purge would remove, and what happens to them."""
    run, matches = plan.run, plan.matches
    games = Counter[str]()
    for match in matches:
        games[match.worker.name if match.worker else ""] += match.tally.games
    tally = sum((match.tally for match in matches), Tally())
    count = len({match.iteration_id for match in matches})
    yield (
        f"run {run.name}: {plural(tally.games, 'game')} in {plural(len(matches), 'batch', 'es')} "
        f"of {plural(count, 'iteration')} (+{tally.wins} -{tally.losses} ={tally.draws})"
    )
    for worker, played in games.items():
        yield f"  {worker}: {plural(played, 'game')}"
    if again := sum(match.games for match in matches if match.iteration.is_open):
        yield f"  {plural(again, 'game')} of open iterations will be played again"
    if plan.after is None:
        yield "  theta holds none of them, and stays as it is"
        return
    yield f"  theta is computed anew from the {plural(run.applied, 'result')} it holds"


def _planned(config: Config, store: Store, run: Run, selection: Selection) -> PurgePlan:
    try:
        with working("computing theta without these results"):
            return plan(store, run, tuning_of(run), selection)
    except NothingToDo:  # an earlier purge may have ended before it wrote the file
        _repair(config, store, run)
        raise


def _repair(config: Config, store: Store, run: Run) -> None:
    """Write theta into params.toml if the file still has a theta from before a purge of this run.

    A running master does the same.
    """
    try:
        path, now = config.run.params, store.run(run.name).theta
        if says(path, now):
            return
        if any(says(path, purge.theta_before) for purge in store.purges(run.id)):
            project_theta(path, now)
            echo(f"{path} has theta without them now", err=True)
    except InvalidInput as error:  # perhaps it is being edited; theta is in the database
        echo(f"theta is in the database, but not in params.toml: {error}", err=True)
