"""The CHECK constraints of the busiest tables, as PostgreSQL gets them: a call of one function.

PostgreSQL parses the expression of a CHECK anew for every statement that changes a row; with those
of `schema` as they stand that is half the time of a claim and a report. A function is parsed once a
session. Its body is the very text of those constraints, which SQLite has one by one.
"""

import re
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from spsa.schema import batches, iterations

TABLES = (batches, iterations)
NAME = "sound"
_BY_THEMSELVES = ("_status", "_purpose")  # which say what words there are
_POSTGRESQL = postgresql.dialect()  # type: ignore[no-untyped-call]


def merged(table: sa.Table) -> list[sa.CheckConstraint]:
    """The constraints that the function of a table stands for, by name."""
    checks = (c for c in table.constraints if isinstance(c, sa.CheckConstraint))
    ours = (c for c in checks if not str(c.name).endswith((*_BY_THEMSELVES, f"_{NAME}")))
    return sorted(ours, key=lambda check: str(check.name))


def making(table: sa.Table) -> str:
    """The statement that makes the function of a table, or makes it anew."""
    arguments = ", ".join(f"{column.name} {_type(column)}" for column in _read(table))
    holds = "\n   AND ".join(f"({check.sqltext})" for check in merged(table))
    return (
        f"CREATE OR REPLACE FUNCTION {_function(table)}({arguments}) RETURNS BOOLEAN"
        f" LANGUAGE plpgsql IMMUTABLE AS $body$\nBEGIN\nRETURN {holds};\nEND\n$body$"
    )


def dropping(table: sa.Table) -> str:
    """The statement that removes it, after its constraint."""
    return f"DROP FUNCTION {_function(table)}"


def called(table: sa.Table) -> str:
    """The constraint: the function, with the columns of the row."""
    return f"{_function(table)}({', '.join(column.name for column in _read(table))})"


def attach() -> None:
    """Let who makes the tables from `schema` make just those that the migrations lead to."""
    for table in TABLES:
        for check in merged(table):
            check.ddl_if(dialect="sqlite")
        one = sa.CheckConstraint(called(table), name=NAME)
        table.append_constraint(one.ddl_if(dialect="postgresql"))
        made = sa.DDL(making(table).replace("%", "%%"))  # type: ignore[no-untyped-call]
        sa.event.listen(table.metadata, "before_create", made.execute_if(dialect="postgresql"))


def _function(table: sa.Table) -> str:
    return f"{table.name}_is_sound"


def _read(table: sa.Table) -> list[sa.Column[Any]]:
    """The columns that the constraints speak of."""
    words = set(re.findall(r"\w+", " ".join(str(check.sqltext) for check in merged(table))))
    return [column for column in table.c if column.name in words]


def _type(column: sa.Column[Any]) -> str:
    return str(column.type.compile(dialect=_POSTGRESQL))
