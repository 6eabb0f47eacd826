"""`spsa-master grant` and `key`: logins with limited rights, and the keys that sign engines."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spsa.cli.common import FileToWrite, config_option, database_option, settings
from spsa.core import limits
from spsa.db.grants import Grant, GrantQueries, Role
from spsa.db.store import open_store
from spsa.errors import Fault, InvalidInput
from spsa.output import echo, echo_raw
from spsa.security.files import MAX_TEXT, content
from spsa.security.keys import SigningKey, public_file

if TYPE_CHECKING:
    from spsa.db.grants import Grant

_ROLES = ("worker", "builder", "viewer", "master")
_NAME_BYTES = 63
"""PostgreSQL's limit of a name."""


def _login(_context: click.Context, _option: click.Parameter, name: str | None) -> str | None:
    if name is not None and not 1 <= len(name.encode()) <= _NAME_BYTES:  # the server cuts it off
        raise click.BadParameter(f"a login's name has 1 to {_NAME_BYTES} bytes")
    return name


def _machine(_context: click.Context, _option: click.Parameter, name: str | None) -> str | None:
    least, most = limits.LENGTHS["spsa_machine"]["name"]
    if name is not None and not (least <= len(name) <= most and name.isprintable()):
        raise click.BadParameter(f"a machine's name has {least} to {most} printable characters")
    return name


@click.command()
@config_option
@database_option
@click.option("--role", type=click.Choice(_ROLES), required=True, help="What the login is for.")
@click.option(
    "--user",
    metavar="NAME",
    callback=_login,
    help="The login; default: spsa_worker and so on, with the name of its machine if it has one.",
)
@click.option(
    "--machine",
    metavar="NAME",
    callback=_machine,
    help="The machine that all workers of this login belong to.",
)
@click.option(
    "--password-file",
    metavar="FILE",
    help="Its first line is the login's password; - is standard input.",
)
@click.option(
    "--connections",
    type=click.IntRange(1, 100_000),
    help="Most connections at a time; default: 300 for workers, 50 for builders, 20 for others and "
    "for one machine, but at most 60% of the server's.",
)
@click.option("--print", "only_print", is_flag=True, help="Print the SQL and change nothing.")
def grant(
    config: str | None,
    database_url: str | None,
    role: str,
    user: str | None,
    machine: str | None,
    password_file: str | None,
    connections: int | None,
    only_print: bool,
) -> None:
    """Create a PostgreSQL login with the rights of one role and no others.

    A worker claims and reports through functions and sees no table, a builder may also publish the
    engines that it was asked to build (`compete --spsa --build`), a viewer reads everything but
    the ids of claims, a master tunes but changes no tables. All rights of PUBLIC are revoked. Run
    it as the owner of the tables; run it again after `db upgrade`, or to change a password. With
    --machine, the login is for one machine, and no other login can report for that machine.
    """
    if machine is not None and role not in ("worker", "builder"):
        raise click.UsageError(f"--machine is for --role worker or builder, and not for a {role}")
    password = None if password_file is None else _first_line(password_file)
    login = user or _usual_login(role, machine)
    url = settings(config, database_url).database_url
    with open_store(url) as store:
        if store.is_file:
            raise _files_have_modes(store.where)
    with GrantQueries(url) as queries:
        wanted = Grant(
            role=Role(role),
            user=login,
            machine=machine,
            connections=connections or queries.usual_connections(Role(role), machine),
            password=password,
        )
        if only_print:
            echo_raw("".join(f"{statement};\n" for statement in queries.grant_statements(wanted)))
            return
        queries.grant(wanted)
        echo(f"{queries.where}: {_told(wanted)}")


def _usual_login(role: str, machine: str | None) -> str:
    if machine is None:
        return f"spsa_{role}"
    user = f"spsa_{role}_{machine}"
    if len(user.encode()) > _NAME_BYTES:
        raise click.UsageError(f"give --user: the login {user!r} would be too long")
    return user


def _told(wanted: "Grant") -> str:
    name = f"{wanted.user} is a {wanted.role}, {wanted.connections} connections at most"
    if wanted.machine is not None:
        name = f"{name}, for the machine {wanted.machine}"
    return name if wanted.password else f"{name}; its password is what it was"


def _first_line(file: str) -> str:
    found, remedy = "its first line is empty", "write the password there"
    try:
        password = _text(file).partition("\n")[0].rstrip("\r")
    except OSError as error:
        password, found = "", error.strerror or str(error)
    except UnicodeDecodeError:
        password, found = "", "it is no text in UTF-8"
    if not password:
        raise InvalidInput([Fault(file=file, line=1, name="password", found=found, remedy=remedy)])
    return password


def _text(file: str) -> str:
    if file == "-":
        return sys.stdin.buffer.readline(MAX_TEXT).decode("utf-8")
    return content(Path(file), MAX_TEXT).decode("utf-8")


def _files_have_modes(where: str) -> InvalidInput:
    found = f"{where} is a file, which has no logins"
    remedy = "protect it by its file mode, or use PostgreSQL"
    return InvalidInput(
        [Fault(file="DATABASE_URL", line=None, name="database.url", found=found, remedy=remedy)]
    )


_FILE = FileToWrite()


@click.group()
def key() -> None:
    """Make the key that signs what workers execute, or show its public half."""


@key.command()
@click.argument("file", type=_FILE)
def new(file: Path) -> None:
    """Write a new key to FILE and FILE.pub.

    Prints the public half, which FILE.pub has too. Name FILE in config.toml as [trust]
    signing_key, and start every worker with --trust-key and what was printed. FILE itself stays on
    the master's machine.
    """
    made = SigningKey.new()
    made.write(file)
    echo(f"{file} signs; {public_file(file)} is for the workers' --trust-key:", err=True)
    echo(str(made.public))


@key.command()
@click.argument("file", type=_FILE)
def public(file: Path) -> None:
    """Print the public half of the key in FILE."""
    echo(str(SigningKey.read(file).public))
