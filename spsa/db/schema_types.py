"""The types, column groups and constraints that the tables are made of.

CHECK constraints on statuses are computed from `lifecycle`, those on ranges from `limits`. Every
time is UTC and comes from the database's own clock; the clocks of masters and workers decide
nothing.
"""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from sqlalchemy import CheckConstraint, Column
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import GenericFunction
from sqlalchemy.types import TypeDecorator

from spsa.core import limits

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

Identity = sa.BigInteger().with_variant(sa.Integer, "sqlite")
# json, not jsonb: text keeps every float to the bit, and the order of the parameters
Json = sa.JSON(none_as_null=True)


class UtcTime(TypeDecorator[datetime]):
    """An aware UTC time: timestamptz on PostgreSQL, sortable text in milliseconds on SQLite."""

    impl = sa.Text
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> Any:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(sa.TIMESTAMP(timezone=True))
        return dialect.type_descriptor(sa.Text())

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> Any:
        if value is None or dialect.name == "postgresql":
            return value
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> datetime | None:
        if value is None:
            return None
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


class seconds_from_now(GenericFunction[datetime]):  # noqa: N801
    """The database's clock plus some seconds: `seconds_from_now(0)` is now."""

    type = UtcTime()
    inherit_cache = True


@compiles(seconds_from_now, "postgresql")
def _postgresql(element: Any, compiler: Any, **kw: Any) -> str:
    seconds = compiler.process(element.clauses, **kw)
    # not clock_timestamp(): it is volatile, so PostgreSQL would not use an index for it
    return f"(statement_timestamp() + make_interval(secs => CAST({seconds} AS double precision)))"


@compiles(seconds_from_now, "sqlite")
def _sqlite(element: Any, compiler: Any, **kw: Any) -> str:
    seconds = compiler.process(element.clauses, **kw)
    return f"strftime('%Y-%m-%d %H:%M:%f', 'now', {seconds} || ' seconds')"


def one_of(column: str, values: type[StrEnum], name: str) -> CheckConstraint:
    """A CHECK that allows only the values of an enumeration."""
    words = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({words})", name=name)


def limited(table: str) -> list[CheckConstraint]:
    """A CHECK for every column of a table that has limits, named after the column."""
    return [CheckConstraint(condition, name=column) for column, condition in limits.checks(table)]


def written_out(column: Column[str], *statuses: StrEnum) -> sa.ColumnElement[bool]:
    """The column has one of these values, with the values in the statement's text.

    SQLite uses a partial index only for a query that repeats the index's condition literally.
    """
    return column.in_([sa.literal_column(f"'{status}'", sa.Text) for status in statuses])


def counts() -> list[Column[Any]]:
    """The counts of a tally, and of void games."""
    # NOT NULL matters: a CHECK over a NULL count passes
    names = ("plus_wins", "minus_wins", "draws", *(f"ptnml_{i}" for i in range(5)))
    counts = [Column(name, sa.Integer, nullable=False, server_default="0") for name in names]
    return [*counts, Column("void_games", sa.BigInteger, nullable=False, server_default="0")]


def now(name: str) -> Column[Any]:
    """A time that is the current one unless it is given."""
    return Column(name, UtcTime, nullable=False, server_default=sa.text("CURRENT_TIMESTAMP"))


def created_at() -> Column[Any]:
    """When the row was written."""
    return now("created_at")


PAIRS = "(ptnml_0 + ptnml_1 + ptnml_2 + ptnml_3 + ptnml_4)"
GAMES = "(plus_wins + minus_wins + draws)"
NONE_NEGATIVE = (  # a negative number has the sign bit; one condition costs less than eight
    "(plus_wins | minus_wins | draws | ptnml_0 | ptnml_1 | ptnml_2 | ptnml_3 | ptnml_4) >= 0"
)
HALF_POINTS_AGREE = "plus_wins - minus_wins = 2 * (ptnml_4 - ptnml_0) + (ptnml_3 - ptnml_1)"
