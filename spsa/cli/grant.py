"""`spsa-master grant`: logins that may do their part and nothing else."""

from typing import TYPE_CHECKING, TextIO

import click

from spsa.cli.common import config_option, database_option, settings
from spsa.errors import Fault, InvalidInput
from spsa.output import echo, echo_raw

if TYPE_CHECKING:
    from spsa.store.roles import Grant

_ROLES = ("worker", "viewer", "master")


@click.command()
@config_option
@database_option
@click.option("--role", type=click.Choice(_ROLES), required=True, help="What the login is for.")
@click.option("--user", metavar="NAME", help="The login; default: spsa_worker and so on.")
@click.option(
    "--password-file",
    type=click.File("r", encoding="utf-8", lazy=False),
    help="Its first line is the login's password; - is standard input.",
)
@click.option(
    "--connections",
    type=click.IntRange(1, 100_000),
    help="How many it may have at a time; default: 300 for workers, 20 for others.",
)
@click.option("--print", "only_print", is_flag=True, help="Print the SQL and change nothing.")
def grant(
    config: str | None,
    database_url: str | None,
    role: str,
    user: str | None,
    password_file: TextIO | None,
    connections: int | None,
    only_print: bool,
) -> None:
    """Make a login of a PostgreSQL database that can do its part and nothing else.

    A worker claims and reports through functions and sees no table, a viewer reads everything but
    the ids of claims, a master tunes but changes no tables. Everybody else is shut out. Run it as
    the owner of the tables; run it again after `db upgrade`, or to change a password.
    """
    from spsa.store import open_store
    from spsa.store.roles import CONNECTIONS, Grant, GrantDesk, Role

    password = None if password_file is None else _first_line(password_file)
    wanted = Grant(
        role=Role(role),
        user=user or f"spsa_{role}",
        connections=connections or CONNECTIONS[Role(role)],
        password=password,
    )
    url = settings(config, database_url).database_url
    with open_store(url) as store:
        if store.is_file:
            raise _files_have_modes(store.where)
    with GrantDesk(url) as desk:
        if only_print:
            echo_raw("".join(f"{statement};\n" for statement in desk.granting(wanted)))
            return
        desk.grant(wanted)
        echo(f"{desk.where}: {_told(wanted)}")


def _told(wanted: "Grant") -> str:
    name = f"{wanted.user} is a {wanted.role}, {wanted.connections} connections at most"
    return name if wanted.password else f"{name}; its password is what it was"


def _first_line(file: TextIO) -> str:
    password = file.readline().rstrip("\r\n")
    if not password:
        found, remedy = "its first line is empty", "write the password there"
        raise InvalidInput(
            [Fault(file=str(file.name), line=1, name="password", found=found, remedy=remedy)]
        )
    return password


def _files_have_modes(where: str) -> InvalidInput:
    found = f"{where} is a file, which has no logins"
    remedy = "whoever may write the file may do all: protect it by its mode, or use PostgreSQL"
    return InvalidInput(
        [Fault(file="DATABASE_URL", line=None, name="database.url", found=found, remedy=remedy)]
    )
