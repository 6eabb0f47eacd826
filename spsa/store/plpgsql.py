"""Statements of the store as text for the body of a PostgreSQL function."""

from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

_POSTGRESQL = postgresql.dialect()  # type: ignore[no-untyped-call]


def variable(name: str) -> sa.ColumnElement[Any]:
    """A variable of a function, in the place of a value."""
    return sa.literal_column(name)


def sql(statement: sa.ClauseElement) -> str:
    """A statement with its values written out."""
    return str(statement.compile(dialect=_POSTGRESQL, compile_kwargs={"literal_binds": True}))


def typed(columns: Mapping[str, Any], prefix: str = "p_") -> str:
    """Names and types, as of arguments."""
    return ", ".join(f"{prefix}{name} {_type(column)}" for name, column in columns.items())


def listed(names: Iterable[str], record: str) -> str:
    """Fields of a record."""
    return ", ".join(f"{record}.{name}" for name in names)


def _type(column: Any) -> str:
    return str(column.type.compile(dialect=_POSTGRESQL))


LONGEST_LEASE_SECONDS = 86400

LEASE_IS_SANE = f"""
IF p_lease_seconds IS NULL OR p_lease_seconds NOT BETWEEN 0 AND {LONGEST_LEASE_SECONDS} THEN
    RAISE EXCEPTION USING ERRCODE = '22023',
        MESSAGE = 'a lease lasts at most {LONGEST_LEASE_SECONDS} seconds';
END IF;
"""
