"""`spsa-master workers`: lists the workers, and the machines that get no batches."""

from typing import TYPE_CHECKING

import click

from spsa.cli.common import actor, config_option, database_option, opened, run_option
from spsa.core import limits
from spsa.live_display import working
from spsa.output import echo, echo_json
from spsa.report.history import Played, played
from spsa.report.status import plain
from spsa.report.text import terminal
from spsa.report.workers import fleet, fleet_table, machines_text, to_json
from spsa.text import plural

if TYPE_CHECKING:
    from spsa.db.store import Store


@click.group()
def workers() -> None:
    """The workers, and which machines are given no batches."""


@workers.command("list")
@config_option
@database_option
@run_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
def list_(config: str | None, database_url: str | None, run: str | None, as_json: bool) -> None:
    """Every worker with its machine, and its games of the run.

    The worker that was heard of last is first. Then each machine's results, faults and speed in the
    run, against the other machines. One that stands out comes first, with the reason.
    """
    with opened(config, database_url) as store, working("comparing the machines"):
        known = _played(store, run)
        found = fleet(store, known.machines)
    if as_json:
        echo_json(plain(to_json(found)))
        return
    terminal().print(fleet_table(found, known.workers))
    if len(known.machines) > 1:
        aside = {one.worker.host for one in found if one.is_set_aside}
        terminal().print(machines_text(known.machines, aside))


def _played(store: "Store", run: str | None) -> Played:
    """Of the run, or of the newest one; nothing before the first run."""
    if run is None and not store.run_overviews():
        return Played(workers=(), machines=())
    return played(store, store.run(run))


@workers.command()
@config_option
@database_option
@click.argument("machine")
def release(config: str | None, database_url: str | None, machine: str) -> None:
    """Give MACHINE batches again, and forget what it has failed.

    MACHINE is the name of a machine or of one of its workers.
    """
    with opened(config, database_url) as store:
        name = store.machine_named(machine)
        was = store.release_machine(name, actor())
        again = "is given batches again" if was else "was not set aside"
        echo(f"{name} {again}; its failures are forgotten")


def _reason(_context: click.Context, _option: click.Parameter, reason: str) -> str:
    least, most = limits.LENGTHS["spsa_set_aside"]["reason"]
    if not (least <= len(reason) <= most and reason.isprintable()):
        raise click.BadParameter(f"a reason has {least} to {most} printable characters")
    return reason


@workers.command()
@config_option
@database_option
@click.argument("machine")
@click.option("--binary", metavar="SHA256", help="Batches of this binary only; default: all.")
@click.option(
    "--reason",
    default="by its owner",
    show_default=True,
    callback=_reason,
    help="Shown in the list, and to the machine.",
)
@click.option(
    "--withdraw", is_flag=True, help="Take back the batches that it plays now: others play them."
)
def exclude(
    config: str | None,
    database_url: str | None,
    machine: str,
    binary: str | None,
    reason: str,
    withdraw: bool,
) -> None:
    """Give MACHINE no more batches.

    What it plays now still counts, unless it is withdrawn.

    MACHINE is the name of a machine or of one of its workers.
    """
    with opened(config, database_url) as store:
        name = store.machine_named(machine)
        sha256 = None if binary is None else _binary(store, binary)
        new = store.set_aside(name, reason, actor(), sha256=sha256)
        which = "any binary" if sha256 is None else f"the binary {sha256}"
        done = "is given no more batches" if new else "was set aside already: no batches"
        echo(f"{name} {done} of {which}")
        if withdraw:
            taken = store.withdraw_batches(name, actor())
            echo(f"{plural(taken, 'batch', 'es')} of {name} can be claimed by others")


def _binary(store: "Store", start: str) -> str:
    """The hash of the one binary that begins so."""
    found = store.binaries_starting(start)
    if len(found) != 1:
        what = "no binary" if not found else "more than one binary"
        raise click.BadParameter(f"{what} of this database begins with {start!r}")
    return found[0]
