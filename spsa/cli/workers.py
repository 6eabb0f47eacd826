"""`spsa-master workers`: lists the workers, invites machines, and says which play no more."""

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from urllib.parse import urlsplit

import click

from spsa.cli.common import actor, chosen_run, json_option, run_option, with_store
from spsa.core.json_values import Text
from spsa.db import Store
from spsa.db.tables import Machine
from spsa.lifecycle import MachineRole
from spsa.live_display import working
from spsa.output import echo, echo_json
from spsa.protocol import is_loopback
from spsa.report.table import TextTable, View, records, terminal, values
from spsa.report.workers import MACHINES, WORKERS, compared_machines, fleet
from spsa.text import FAILURE_LENGTH, NAME_LENGTH, plural

_PLACEHOLDER = "https://YOUR-SERVER"
_URL = re.compile(r"https?://[^\s/?#]+(?:/[^\s?#]*)?")


@click.group()
def workers() -> None:
    """The workers, who may be one, and which machines are given no batches."""


@workers.command("list")
@with_store
@run_option
@json_option
def list_(store: Store, run: str | None, as_json: bool) -> None:
    """Every worker with its machine, and its games of the run.

    The worker that was heard of last is first. Then each machine's results, faults and speed in the
    run, against the other machines. One that stands out comes first, with the reason.
    """
    with working("comparing the machines"):
        has_run = run is not None or bool(store.run_overviews())
        chosen = chosen_run(store, run) if has_run else None
        compared = compared_machines(store, chosen) if chosen else ()
        shares = store.worker_shares(chosen.id) if chosen else ()
        found, machines = fleet(store, shares, compared), store.machines()
    if as_json:
        echo_json({"workers": records(WORKERS, found), "machines": records(_MACHINES, machines)})
        return
    terminal().print(TextTable(WORKERS, found) if found else WORKERS.empty)
    if chosen and len(compared) > 1:
        terminal().print(TextTable(MACHINES, compared))
        echo(*(str(replace(it, run=chosen.name)) for one in compared for it in one.alarms))
    echo(*_without_workers(machines, {one.worker.host for one in found}))


_MACHINES = View("machines", values("name", "role", "invited_by", "created_at", "revoked_at"))


def _without_workers(machines: Sequence[Machine], seen: set[str]) -> Iterator[str]:
    """The machines that were revoked, and those that were invited and have not come."""
    for one in machines:
        if one.revoked_at is not None:
            again = f"`spsa-master workers invite {one.name}` lets it return"
            yield f"{one.name} was revoked {one.revoked_at:%Y-%m-%d %H:%M} UTC; {again}"
        elif one.invited_by is not None and one.name not in seen:
            yield f"{one.name} was invited {one.created_at:%Y-%m-%d %H:%M} UTC: no worker yet"


def _text(most: int) -> Callable[[click.Context, click.Parameter, str], str]:
    """Check a name or a reason as the database does."""

    def checked(_context: click.Context, parameter: click.Parameter, text: str) -> str:
        if (refusal := Text(1, most).refusal(text)) is not None:
            raise click.BadParameter(f"the {parameter.name} {refusal}")
        return text

    return checked


def _server_url(_context: click.Context, _option: click.Parameter, url: str | None) -> str | None:
    if url is not None and not _URL.fullmatch(url):
        raise click.BadParameter(f"{url!r} is no address: write https://tuner.example.org")
    return url and url.rstrip("/")


@workers.command()
@with_store
@click.argument("name", callback=_text(NAME_LENGTH))
@click.option("--may-build", is_flag=True, help="It may also build engines for other machines.")
@click.option(
    "--url", callback=_server_url, metavar="URL", help="Where the machine reaches the server."
)
def invite(store: Store, name: str, may_build: bool, url: str | None) -> None:
    """Print the line to paste on a new machine.

    NAME is how the machine is called from now on. The line has its token, which is shown only now.
    """
    role = MachineRole.BUILDER if may_build else MachineRole.WORKER
    token = store.invite_machine(name, role, actor())
    address = url or _PLACEHOLDER
    server, parts = shlex.quote(address), urlsplit(address)
    echo(f"paste this on {name}; its token is not shown again:", err=True)
    if url is None:
        echo(f"put the address of your server in place of {_PLACEHOLDER}", err=True)
    flags = " --build" if may_build else ""
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        flags += " --plain-http"  # the token crosses a network unencrypted
    echo(
        f"curl -fO {server}/worker.pyz && "
        f"SPSA_TOKEN={token} python3 worker.pyz --server {server}{flags}"
    )


@workers.command()
@with_store
@click.argument("name")
def revoke(store: Store, name: str) -> None:
    """End the token of a machine, and take back all that it plays.

    NAME is the name of a machine or of one of its workers. `invite` gives it a new token.
    """
    machine = store.machine_named(name)
    taken = store.revoke_machine(machine, actor())
    echo(f"{machine} may no longer play; {plural(taken, 'batch', 'es')} can be claimed again")


@workers.command()
@with_store
@click.argument("machine")
def release(store: Store, machine: str) -> None:
    """Give MACHINE batches again, and forget what it has failed.

    MACHINE is the name of a machine or of one of its workers.
    """
    name = store.machine_named(machine)
    was = store.release_machine(name, actor())
    again = "is given batches again" if was else "was not set aside"
    echo(f"{name} {again}; its failures are forgotten")


@workers.command()
@with_store
@click.argument("machine")
@click.option(
    "--reason",
    default="by its owner",
    show_default=True,
    callback=_text(FAILURE_LENGTH),
    help="Shown in the list, and to the machine.",
)
@click.option(
    "--withdraw", is_flag=True, help="Take back the batches that it plays now: others play them."
)
def exclude(store: Store, machine: str, reason: str, withdraw: bool) -> None:
    """Give MACHINE no more batches.

    What it plays now still counts, unless it is withdrawn.

    MACHINE is the name of a machine or of one of its workers.
    """
    name = store.machine_named(machine)
    new = store.set_aside(name, reason, actor())
    echo(f"{name} {'is given no more batches' if new else 'was set aside already'}")
    if withdraw:
        taken = store.withdraw_batches(name, actor())
        echo(f"{plural(taken, 'batch', 'es')} of {name} can be claimed by others")
