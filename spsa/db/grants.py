"""Who may do what on a PostgreSQL server: the statements that give a login just its part.

A worker calls the functions of sql/worker_functions.sql and sees no table. A viewer reads
everything but the ids of claims and the secrets of machines. A master changes rows and no tables.
Whoever made the tables owns them and may do all.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from psycopg2.extensions import encrypt_password
from sqlalchemy import select
from sqlalchemy.dialects import postgresql

from spsa.db.database import Database
from spsa.db.schema import PRIVATE_VIEWS, VIEWS, machines, metadata, shown
from spsa.db.sql_files import functions, worker_functions
from spsa.errors import NotPermitted

_PREPARER = postgresql.dialect().identifier_preparer  # type: ignore[no-untyped-call]
_LIMITS = {
    "statement_timeout": "15s",
    "idle_in_transaction_session_timeout": "10s",
    "lock_timeout": "10s",
}
_REVISION_TABLE = "alembic_version"
_MAKING_LARGE_OBJECTS = "lo_create(oid), lo_creat(integer), lo_from_bytea(oid, bytea)"


class Role(StrEnum):
    WORKER = "worker"
    VIEWER = "viewer"
    MASTER = "master"


CONNECTIONS = {Role.WORKER: 300, Role.VIEWER: 20, Role.MASTER: 20}
"""How many connections a role may have at a time, unless it is told otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A login and its part; without a password it can log in only where none is asked for.

    All that a login with a `machine` registers belongs to that machine, whatever secret it has.
    """

    role: Role
    user: str
    connections: int
    password: str | None = None
    machine: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    database: str
    schema: str


class GrantQueries(Database):
    """Where the owner of the tables lets others in."""

    def granting(self, grant: Grant) -> list[str]:
        """The statements that `grant` runs; a password is in them only as its SCRAM verifier."""
        with self._read() as connection:
            verifier = None
            if grant.password is not None:
                verifier = _verifier(connection, grant.user, grant.password)
            return list(_statements(grant, _place(connection), verifier))

    def grant(self, grant: Grant) -> None:
        """Make the login if it is not there, and give it its part and nothing else.

        Raises:
            NotPermitted: the login is somebody who may do more than any part allows, or the name
                of the machine belongs to another login.
        """
        statements = self.granting(grant)
        with self._write() as connection:
            _refuse_the_mighty(connection, grant.user)
            _refuse_taken_machine(connection, grant)
            for statement in statements:
                connection.exec_driver_sql(statement)


def _place(connection: sa.Connection) -> _Place:
    row = connection.execute(sa.text("SELECT current_database(), current_schema()")).one()
    return _Place(database=_quoted(row[0]), schema=_quoted(row[1]))


def _verifier(connection: sa.Connection, user: str, password: str) -> str:
    driver: Any = connection.connection.dbapi_connection
    return str(encrypt_password(password, user, scope=driver, algorithm="scram-sha-256"))


def _refuse_the_mighty(connection: sa.Connection, user: str) -> None:
    """Rights on top would make nobody of a superuser or of who owns the tables."""
    mighty = connection.scalar(
        sa.text(
            "SELECT rolsuper OR rolcreaterole OR EXISTS (SELECT 1 FROM pg_class c"
            " WHERE c.relowner = r.oid AND c.relname = 'spsa_run')"
            " FROM pg_roles r WHERE rolname = :user"
        ),
        {"user": user},
    )
    if mighty:
        raise NotPermitted(
            f"{user} owns the tables or rules the server, and would go on to: choose another --user"
        )


def _refuse_taken_machine(connection: sa.Connection, grant: Grant) -> None:
    """A machine has one login, and a login of a machine has no other machine."""
    if grant.machine is None:
        return
    owner = connection.scalar(select(machines.c.login).where(machines.c.name == grant.machine))
    if owner is not None and owner != grant.user:
        raise NotPermitted(
            f"the machine name {grant.machine!r} belongs to the login {owner!r}: choose another "
            "--machine"
        )
    other = connection.scalar(
        select(machines.c.name).where(
            machines.c.login == grant.user,
            machines.c.secret_sha256.is_(None),
            machines.c.name != grant.machine,
        )
    )
    if other is not None:
        raise NotPermitted(
            f"the login {grant.user!r} belongs to the machine {other!r}: choose another --user"
        )


def _statements(grant: Grant, place: _Place, verifier: str | None) -> Iterator[str]:
    user = _quoted(grant.user)
    yield (
        f"DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = {_literal(grant.user)})"
        f" THEN CREATE ROLE {user}; END IF; END $$"
    )
    yield f"ALTER ROLE {user} LOGIN CONNECTION LIMIT {grant.connections}"
    if verifier is not None:
        yield f"ALTER ROLE {user} PASSWORD {_literal(verifier)}"
    for name, value in _LIMITS.items():
        yield f"ALTER ROLE {user} IN DATABASE {place.database} SET {name} = '{value}'"
    yield from _nothing(user, place)
    yield f"GRANT CONNECT ON DATABASE {place.database} TO {user}"
    yield f"GRANT USAGE ON SCHEMA {place.schema} TO {user}"
    yield f"GRANT SELECT ON {_REVISION_TABLE} TO {user}"
    yield from (f"GRANT {part} TO {user}" for part in _PARTS[grant.role](place))
    if grant.machine is not None:
        yield (
            "INSERT INTO spsa_machine (name, login)"  # noqa: S608 - quoted
            f" VALUES ({_literal(grant.machine)}, {_literal(grant.user)})"
            " ON CONFLICT (name) DO UPDATE SET secret_sha256 = NULL"
            " WHERE spsa_machine.login = EXCLUDED.login"
        )


def _nothing(user: str, place: _Place) -> Iterator[str]:
    """Take away what everybody has by default, and what this login was given before."""
    tables = ", ".join((*metadata.tables, *VIEWS, *PRIVATE_VIEWS, _REVISION_TABLE))
    others = f"PUBLIC, {user}"
    yield f"REVOKE ALL ON DATABASE {place.database} FROM {others}"
    yield f"REVOKE ALL ON SCHEMA {place.schema} FROM {others}"
    yield f"REVOKE ALL ON {tables} FROM {others}"
    yield f"REVOKE ALL ON ALL SEQUENCES IN SCHEMA {place.schema} FROM {others}"
    yield f"REVOKE ALL ON FUNCTION {', '.join(functions())} FROM {others}"
    # everybody may fill the disk with large objects otherwise; only the server's superuser can
    # forbid that, and of others PostgreSQL takes this statement with a warning
    yield f"REVOKE EXECUTE ON FUNCTION {_MAKING_LARGE_OBJECTS} FROM PUBLIC"


def _workers_part(_place: _Place) -> list[str]:
    return [f"EXECUTE ON FUNCTION {', '.join(worker_functions())}"]


def _viewers_part(_place: _Place) -> list[str]:
    columns = [
        f"SELECT ({', '.join(column.name for column in shown(table))}) ON {name}"
        for name, table in metadata.tables.items()
    ]
    return [*columns, f"SELECT ON {', '.join(VIEWS)}"]


def _masters_part(place: _Place) -> list[str]:
    return [
        f"SELECT, INSERT, UPDATE, DELETE ON {', '.join(metadata.tables)}",
        f"SELECT ON {', '.join((*VIEWS, *PRIVATE_VIEWS))}",
        f"USAGE ON ALL SEQUENCES IN SCHEMA {place.schema}",
        *_workers_part(place),
    ]


_PARTS = {Role.WORKER: _workers_part, Role.VIEWER: _viewers_part, Role.MASTER: _masters_part}


def _quoted(name: str) -> str:
    return str(_PREPARER.quote_identifier(name))


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
