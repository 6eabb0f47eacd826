"""`spsa-master purge`: removes results and recomputes theta without them."""

import re
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import click
from click.core import ParameterSource

from spsa.cli.common import actor, json_option, run_option, with_config
from spsa.config import Config, project_theta, says
from spsa.db import Store
from spsa.db.purge_queries import PurgePlan, Selection
from spsa.db.tables import Run
from spsa.errors import InvalidInput, NothingToDo
from spsa.history.purge import carry_out, plan
from spsa.lifecycle import Purpose
from spsa.live_display import working
from spsa.master.session import tuning_of
from spsa.output import echo, echo_json
from spsa.report.machines import MachineReport, machine_reports, worker_parts
from spsa.report.matches import measured
from spsa.report.purge import MOVES, moves, sentences, to_json
from spsa.report.table import TextTable, terminal

Moment = datetime | timedelta
"""A time in UTC, or how long ago it was by the database's clock."""

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_AGO = re.compile(r"((?:\d+\s*[smhdw]\s*)+)(?:ago)?", re.ASCII)
_PLACE = re.compile(r"(\d{1,9})\.(\d{1,9})", re.ASCII)


def moment(_context: click.Context, _option: click.Parameter, text: str | None) -> Moment | None:
    """A callback for `2026-11-21T14:00`, `2026-11-21 14:00:30+01:00`, `90m`, `1d12h`, `2h ago`."""
    if text is None:
        return None
    try:
        if (ago := _AGO.fullmatch(text.strip().lower())) is not None:
            return _length(ago[1])
        found = datetime.fromisoformat(text.strip())
        zoned = found.replace(tzinfo=UTC) if found.tzinfo is None else found
        return zoned.astimezone(UTC)
    except (OverflowError, ValueError):
        raise click.BadParameter(
            f"{text!r} is no time: write 2026-11-21T14:00 (UTC), or how long ago: 90m, 2h, 1d"
        ) from None


def places(
    _context: click.Context, _option: click.Parameter, texts: tuple[str, ...]
) -> tuple[tuple[int, int], ...]:
    """A callback for `12.3`: batch 3 of iteration 12."""
    return tuple(_place(text) for text in texts)


def _place(text: str) -> tuple[int, int]:
    found = _PLACE.fullmatch(text)
    if found is None:
        raise click.BadParameter(f"{text!r} is no batch: write 12.3 for batch 3 of iteration 12")
    return int(found[1]), int(found[2])


def resolved(moment: Moment | None, now: datetime) -> datetime | None:
    """The moment as a time; `now` is by the database's clock.

    Raises:
        BadParameter: it is before all calendars.
    """
    if not isinstance(moment, timedelta):
        return moment
    try:
        return now - moment
    except OverflowError:
        raise click.BadParameter(f"{moment.days} days ago there was no database") from None


def _length(text: str) -> timedelta:
    parts = re.findall(r"(\d+)\s*([smhdw])", text)
    return sum((timedelta(**{_UNITS[unit]: int(n)}) for n, unit in parts), timedelta())


@click.command()
@with_config
@run_option
@click.option("--worker", metavar="NAME", help="Results of this worker, by its whole name.")
@click.option("--host", metavar="NAME", help="Results of all workers of this machine.")
@click.option(
    "--iteration",
    "iterations",
    type=click.IntRange(1, 2**31 - 1),
    multiple=True,
    metavar="N",
    help="Results of this iteration, by its number; repeatable.",
)
@click.option(
    "--batch",
    "batches",
    callback=places,
    multiple=True,
    metavar="N.SEQ",
    help="One batch, as 12.3; repeatable, and added to those of --iteration.",
)
@click.option(
    "--since",
    callback=moment,
    metavar="TIME",
    help="Reported then or later: in UTC, as 2026-11-21T14:00, or how long ago, as 90m, 2h, 1d.",
)
@click.option("--until", callback=moment, metavar="TIME", help="Reported before that.")
@click.option(
    "--suggested",
    is_flag=True,
    help="Results of the machine that stands out most, as `workers list` shows it.",
)
@click.option("--reason", default="by its owner", show_default=True, help="For the record.")
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def purge(
    config: Config,
    run: str | None,
    suggested: bool,
    reason: str,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    **conditions: Any,
) -> None:
    """Remove results, such as those of a machine with bad memory, and recompute theta.

    A result is removed if it meets all conditions. The rows stay in the database and count no more.
    Games of open iterations are played again. The master of the run may keep running.
    """
    if suggested and (conditions["host"] or conditions["worker"]):
        raise click.UsageError("--suggested names a machine: leave --host and --worker out")
    given = any(value not in (None, ()) for value in (*conditions.values(), suggested or None))
    _refuse_vague(given, ask=not (dry_run or yes), as_json=as_json)
    with Store(config.database.url) as store:
        chosen = store.run(run)
        if suggested:
            suspect = _suspect(store, chosen)
            conditions["host"] = suspect.machine
            reason = reason if _is_given("reason") else f"it stands out: {suspect.reason}"
            echo(f"{suspect.machine} stands out: {suspect.reason}", err=as_json)
        _refuse_unknown(store, chosen, conditions)
        try:
            tuning = tuning_of(chosen)
            selection = _selection(store, **conditions)
            with working("computing theta without these results"):
                wanted = plan(store, chosen, tuning, selection)
        except NothingToDo:
            _repair(config, store, chosen)
            raise
        if not as_json:
            _show(wanted)
        if not (dry_run or yes):
            click.confirm("remove them?", abort=True, err=True)
        with working("removing them"):
            done = None if dry_run else carry_out(store, tuning, wanted, actor(), reason)
        if done is not None:
            _repair(config, store, chosen)
        if as_json:
            echo_json(to_json(wanted, done))
        elif done is not None:
            echo(
                f"purge {done.number}: {done.games:,} games are removed", *_outdated(store, chosen)
            )


def _refuse_unknown(store: Store, run: Run, conditions: Mapping[str, Any]) -> None:
    """Refuse names and numbers that do not exist: they may be misspelt."""
    wanted = {*conditions["iterations"], *(number for number, _ in conditions["batches"])}
    lines = store.iterations(run.id, narrow=True) if wanted else []
    numbers = {line.iteration_number for line in lines}
    workers = store.workers()
    unknown = [f"run {run.name} has no iteration {n}" for n in sorted(wanted - numbers)]
    for kind, names in (("worker", {w.name for w in workers}), ("host", {w.host for w in workers})):
        name = conditions[kind]
        if name is not None and name not in names:
            unknown.append(f"no {kind} {name!r} has ever played for this database")
    if unknown:
        raise NothingToDo(f"{'; '.join(unknown)}: nothing is purged")


def _outdated(store: Store, before: Run) -> Iterator[str]:
    """The matches that measured a theta of the run before the purge, and none that it has now."""
    now = store.run(before.name)
    for it in store.iterations(before.id, purpose=Purpose.VALIDATE):
        if measured(before, it) and not measured(now, it):
            yield (
                f"iteration {it.iteration_number} was a match of theta before this purge: "
                "it no longer speaks of the present theta"
            )


def _refuse_vague(is_selective: bool, *, ask: bool, as_json: bool) -> None:
    if not is_selective:
        raise click.UsageError(
            "give a condition: --worker, --host, --iteration, --batch, --since, --until or "
            "--suggested"
        )
    if ask and (as_json or not sys.stdin.isatty()):
        raise click.UsageError("there is no terminal to ask on: give --yes or --dry-run")


def _is_given(option: str) -> bool:
    source = click.get_current_context().get_parameter_source(option)
    return source is not ParameterSource.DEFAULT


def _suspect(store: Store, run: Run) -> MachineReport:
    """The machine that stands out most by its results or faults.

    Raises:
        NothingToDo: none does.
    """
    for report in machine_reports(worker_parts(store, run)):
        if report.is_suspect:
            return report
    raise NothingToDo(f"no machine of run {run.name} stands out: `spsa-master workers list`")


def _selection(
    store: Store, *, since: Moment | None, until: Moment | None, **where: Any
) -> Selection:
    now = store.clock()
    first, last = resolved(since, now), resolved(until, now)
    if first is not None and last is not None and first >= last:
        raise click.UsageError(f"--since {_utc(first)} is not before --until {_utc(last)}")
    return Selection(since=first, until=last, **where)


def _utc(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def _show(plan: PurgePlan) -> None:
    for sentence in sentences(plan):
        echo(sentence)
    if plan.after is not None:
        terminal().print(TextTable(MOVES, moves(plan)))


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
        echo(f"cannot write theta to params.toml, the next `run` will: {error}", err=True)
