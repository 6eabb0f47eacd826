"""The rights of logins on a PostgreSQL server, by role.

A worker calls functions of sql/worker_functions.sql and reads no table; a builder is a worker that
may also publish the engines that it was asked to build. A viewer reads
everything except the ids of claims and the secrets of machines. A master changes rows, but not the
schema. The login that created the tables owns them and may do everything.
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
from spsa.db.sql_files import builder_functions, functions, worker_functions
from spsa.errors import NotPermitted

_PREPARER = postgresql.dialect().identifier_preparer  # type: ignore[no-untyped-call]
_LIMITS = {
    "statement_timeout": "15s",
    "idle_in_transaction_session_timeout": "10s",
    "lock_timeout": "10s",
}
_REVISION_TABLE = "alembic_version"
_LARGE_OBJECT_FUNCTIONS = "lo_create(oid), lo_creat(integer), lo_from_bytea(oid, bytea)"


class Role(StrEnum):
    WORKER = "worker"
    BUILDER = "builder"
    VIEWER = "viewer"
    MASTER = "master"


CONNECTIONS = {Role.WORKER: 300, Role.BUILDER: 50, Role.VIEWER: 20, Role.MASTER: 20}
"""How many connections a role may have at a time by default, if the server has so many."""

_MACHINE_CONNECTIONS = 20
"""Of a login for one machine."""

_PART = 0.6
"""The part of the server's connections that one login may have by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A login and its role; without a password it can log in only where the server asks for none.

    Every worker that a login with a `machine` registers belongs to that machine.
    """

    role: Role
    user: str
    connections: int
    password: str | None = None
    machine: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Location:
    database: str
    schema: str


class GrantQueries(Database):
    """The query with which the owner of the tables gives rights to others."""

    def usual_connections(self, role: Role, machine: str | None) -> int:
        """How many connections a login has by default; always fewer than the server has."""
        with self._read() as connection:
            most = int(connection.exec_driver_sql("SHOW max_connections").scalar_one())
        wanted = CONNECTIONS[role] if machine is None else _MACHINE_CONNECTIONS
        return max(1, min(wanted, int(_PART * most)))

    def grant_statements(self, grant: Grant) -> list[str]:
        """The statements that `grant` runs; a password is in them only as its SCRAM verifier."""
        with self._read() as connection:
            verifier = None
            if grant.password is not None:
                verifier = _verifier(connection, grant.user, grant.password)
            return list(_statements(grant, _location(connection), verifier))

    def grant(self, grant: Grant) -> None:
        """Create the login if it does not exist, and give it the rights of its role and no others.

        Raises:
            NotPermitted: the login has more rights than any role, or the name of the machine
                belongs to another login.
        """
        statements = self.grant_statements(grant)
        with self._write() as connection:
            _refuse_superuser(connection, grant.user)
            _refuse_taken_machine(connection, grant)
            for statement in statements:
                connection.exec_driver_sql(statement)


def _location(connection: sa.Connection) -> _Location:
    row = connection.execute(sa.text("SELECT current_database(), current_schema()")).one()
    return _Location(database=_quoted(row[0]), schema=_quoted(row[1]))


def _verifier(connection: sa.Connection, user: str, password: str) -> str:
    driver: Any = connection.connection.dbapi_connection
    return str(encrypt_password(password, user, scope=driver, algorithm="scram-sha-256"))


def _refuse_superuser(connection: sa.Connection, user: str) -> None:
    """A superuser, the owner of the tables and their members would keep their rights."""
    is_superuser = connection.scalar(
        sa.text(
            "SELECT EXISTS (SELECT FROM pg_roles l"
            " JOIN pg_roles r ON pg_has_role(l.oid, r.oid, 'MEMBER')"
            " WHERE l.rolname = :user AND (r.rolsuper OR r.rolcreaterole OR EXISTS"
            " (SELECT FROM pg_class c WHERE c.relowner = r.oid AND c.relname = 'spsa_run')))"
        ),
        {"user": user},
    )
    if is_superuser:
        raise NotPermitted(
            f"{user} owns the tables or is a superuser, or is a member of such a role, and would "
            "stay so: choose another --user"
        )


def _refuse_taken_machine(connection: sa.Connection, grant: Grant) -> None:
    """A machine has one login, and the login of a machine has no other machine."""
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


def _statements(grant: Grant, location: _Location, verifier: str | None) -> Iterator[str]:
    user = _quoted(grant.user)
    yield (
        f"DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = {_literal(grant.user)})"
        f" THEN CREATE ROLE {user}; END IF; END $$"
    )
    yield f"ALTER ROLE {user} LOGIN CONNECTION LIMIT {grant.connections}"
    if verifier is not None:
        yield f"ALTER ROLE {user} PASSWORD {_literal(verifier)}"
    for name, value in _LIMITS.items():
        yield f"ALTER ROLE {user} IN DATABASE {location.database} SET {name} = '{value}'"
    yield from _revocations(user, location)
    yield f"GRANT CONNECT ON DATABASE {location.database} TO {user}"
    yield f"GRANT USAGE ON SCHEMA {location.schema} TO {user}"
    yield f"GRANT SELECT ON {_REVISION_TABLE} TO {user}"
    yield from (f"GRANT {right} TO {user}" for right in _RIGHTS[grant.role](location))
    if grant.role in (Role.WORKER, Role.BUILDER):  # for spsa_end_stalled_sessions
        yield f"GRANT {user} TO CURRENT_USER"
    if grant.machine is not None:
        yield (
            "INSERT INTO spsa_machine (name, login)"  # noqa: S608 - quoted
            f" VALUES ({_literal(grant.machine)}, {_literal(grant.user)})"
            " ON CONFLICT (name) DO UPDATE SET secret_sha256 = NULL"
            " WHERE spsa_machine.login = EXCLUDED.login"
        )


def _revocations(user: str, location: _Location) -> Iterator[str]:
    """Revoke the default rights of every login, and all earlier rights of this one."""
    tables = ", ".join((*metadata.tables, *VIEWS, *PRIVATE_VIEWS, _REVISION_TABLE))
    others = f"PUBLIC, {user}"
    yield f"REVOKE ALL ON DATABASE {location.database} FROM {others}"
    yield f"REVOKE ALL ON SCHEMA {location.schema} FROM {others}"
    yield f"REVOKE ALL ON {tables} FROM {others}"
    yield f"REVOKE ALL ON ALL SEQUENCES IN SCHEMA {location.schema} FROM {others}"
    yield f"REVOKE ALL ON FUNCTION {', '.join(functions())} FROM {others}"
    # by default every login may fill the disk with large objects; only a superuser can revoke
    # that, and PostgreSQL accepts the statement from others with a warning
    yield f"REVOKE EXECUTE ON FUNCTION {_LARGE_OBJECT_FUNCTIONS} FROM PUBLIC"


def _worker_rights(_location: _Location) -> list[str]:
    return [f"EXECUTE ON FUNCTION {', '.join(worker_functions())}"]


def _builder_rights(_location: _Location) -> list[str]:
    return [f"EXECUTE ON FUNCTION {', '.join(builder_functions())}"]


def _viewer_rights(_location: _Location) -> list[str]:
    columns = [
        f"SELECT ({', '.join(column.name for column in shown(table))}) ON {name}"
        for name, table in metadata.tables.items()
    ]
    return [*columns, f"SELECT ON {', '.join(VIEWS)}"]


def _master_rights(location: _Location) -> list[str]:
    return [
        f"SELECT, INSERT, UPDATE, DELETE ON {', '.join(metadata.tables)}",
        f"SELECT ON {', '.join((*VIEWS, *PRIVATE_VIEWS))}",
        f"USAGE ON ALL SEQUENCES IN SCHEMA {location.schema}",
        *_builder_rights(location),
        "EXECUTE ON FUNCTION spsa_end_stalled_sessions",
    ]


_RIGHTS = {
    Role.WORKER: _worker_rights,
    Role.BUILDER: _builder_rights,
    Role.VIEWER: _viewer_rights,
    Role.MASTER: _master_rights,
}


def _quoted(name: str) -> str:
    return str(_PREPARER.quote_identifier(name))


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
