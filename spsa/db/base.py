"""What tables and statements are made of, on either database.

A mapped class is the table, its row and the value that other rooms read. CHECK constraints on
statuses come from `lifecycle`, those on what workers send from the limits in `spsa.protocol`. Every
time is UTC and comes from the database's own clock; the clocks of masters and workers decide
nothing. The SQL files hold named statements: `execute` runs one of them.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from importlib.resources import files
from inspect import get_annotations
from itertools import chain
from typing import Any, get_args

import sqlalchemy as sa
from sqlalchemy import CheckConstraint, ForeignKey, bindparam
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import DeclarativeBase, Mapped, MappedAsDataclass, mapped_column
from sqlalchemy.types import TypeDecorator

from spsa.core import Builds, Estimates
from spsa.core.game_settings import GameSettings, HashedFile
from spsa.core.json_values import limits_of, stored, to_json
from spsa.core.scoring import Tally
from spsa.errors import IllegalTransition
from spsa.lifecycle import BatchStatus
from spsa.protocol import ACTIVE_SECONDS, LONGEST_BATCH, LONGEST_BUILD, ClaimId, Measured

Identity = sa.BigInteger().with_variant(sa.Integer, "sqlite")
# json, not jsonb: text keeps every float to the bit, and the order of the parameters
Json = sa.JSON(none_as_null=True)


class UtcTime(TypeDecorator[datetime]):
    """An aware UTC time: timestamptz on PostgreSQL, sortable text in milliseconds on SQLite."""

    impl = sa.Text().with_variant(sa.TIMESTAMP(timezone=True), "postgresql")
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> Any:
        if value is None or dialect.name == "postgresql":
            return value
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> datetime | None:
        if value is None:
            return None
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


class Stored(TypeDecorator[Any]):
    """A JSON column of this name with values of one type, which are checked when they are read."""

    impl = sa.JSON
    cache_ok = True

    def __init__(self, kind: Any, column: str) -> None:
        super().__init__()
        self.kind, self.column = kind, column

    def process_bind_param(self, value: Any, dialect: sa.Dialect) -> Any:
        return to_json(value)

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> Any:
        return None if value is None else stored(self.kind, value, self.column)


Variants = Mapping[str, tuple[HashedFile, HashedFile]]
"""Plus and minus for other kinds of machines, by the words that these provide."""


class Base(MappedAsDataclass, DeclarativeBase, kw_only=True):
    """A row; the attributes of one that was read are not changed.

    A column whose annotation has a limit has a CHECK of its name.
    """

    type_annotation_map = {  # noqa: RUF012
        str: sa.Text,
        float: sa.Double,
        datetime: UtcTime,
        Builds: Stored(Builds, "builds"),
        Estimates: Stored(Estimates, "estimates"),
        GameSettings: Stored(GameSettings, "game_settings"),
        Mapping[str, HashedFile]: Stored(Mapping[str, HashedFile], "files"),
        Variants: Stored(Variants, "variants"),
        Mapping[str, Any]: Json,
        Mapping[str, str]: Json,
        Mapping[str, int]: Json,
        Mapping[str, float]: Json,
    }
    metadata = sa.MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        hints = chain.from_iterable(get_annotations(one).items() for one in cls.__mro__)
        for name, hint in hints:
            for limit in chain.from_iterable(map(limits_of, get_args(hint))):
                check = CheckConstraint(limit.condition(name), name=name)
                cls.__table__.append_constraint(check)  # type: ignore[attr-defined]


def status_column(words: type[StrEnum], first: StrEnum, name: str = "status") -> Any:
    """A word of an enumeration, as text with a CHECK; a row begins with `first`."""
    kind = sa.Enum(
        words, name=name, native_enum=False, create_constraint=True, values_callable=list
    )
    return mapped_column(kind, default=first, server_default=first)


def number_column(default: float = 0, *kind: Any) -> Any:
    """A number that is `default` unless it is given."""
    return mapped_column(*kind, default=default, server_default=str(default))


def now_column() -> Any:
    """A time that is the current one unless it is given."""
    current = sa.text("CURRENT_TIMESTAMP")
    return mapped_column(default=None, server_default=current)


def optional(*kind: Any, **options: Any) -> Any:
    """A column that is NULL unless it is given."""
    return mapped_column(*kind, default=None, **options)


def written_out(column: Any, *statuses: StrEnum) -> sa.ColumnElement[bool]:
    """The column has one of these values, with the values in the statement's text.

    SQLite uses a partial index only for a query that repeats the index's condition literally.
    """
    words = [sa.literal_column(f"'{status}'", sa.Text) for status in statuses]
    found: sa.ColumnElement[bool] = column.in_(words) if len(words) > 1 else column == words[0]
    return found


def partial_index(name: str, rows: sa.ColumnElement[bool], *columns: Any) -> None:
    """An index of some rows, the same on both databases."""
    sa.Index(name, *columns, sqlite_where=rows, postgresql_where=rows)


class Numbered(MappedAsDataclass, kw_only=True):
    """Rows with an id, which the database gives them."""

    id: Mapped[int] = mapped_column(Identity, primary_key=True, default=None, sort_order=-1)


class Leased(MappedAsDataclass, kw_only=True):
    """What a worker claims, and who holds it or held it last; each claim is another attempt."""

    status: Mapped[BatchStatus] = status_column(BatchStatus, BatchStatus.READY)
    attempt: Mapped[int] = number_column()
    max_attempts: Mapped[int] = mapped_column()
    claim_id: Mapped[ClaimId | None] = optional(unique=True)
    worker_id: Mapped[int | None] = optional(Identity, ForeignKey("spsa_worker.id"))
    leased_at: Mapped[datetime | None] = optional()
    lease_expires_at: Mapped[datetime | None] = optional()


HAS_LEASE = """status <> 'leased'
    OR (claim_id IS NOT NULL AND lease_expires_at IS NOT NULL AND worker_id IS NOT NULL)"""

COUNTS = ("plus_wins", "minus_wins", "draws", *(f"ptnml_{i}" for i in range(5)))
"""The columns of a tally."""


class Counts(MappedAsDataclass, kw_only=True):
    """The counts of a tally, and of void games; NOT NULL, because a CHECK over NULL passes."""

    plus_wins: Mapped[int] = number_column()
    minus_wins: Mapped[int] = number_column()
    draws: Mapped[int] = number_column()
    ptnml_0: Mapped[int] = number_column()
    ptnml_1: Mapped[int] = number_column()
    ptnml_2: Mapped[int] = number_column()
    ptnml_3: Mapped[int] = number_column()
    ptnml_4: Mapped[int] = number_column()
    void_games: Mapped[int] = number_column(0, sa.BigInteger)

    @property
    def tally(self) -> Tally:
        return tally_of(self)


def tally_of(row: Any) -> Tally:
    """The tally of a row with these columns."""
    return Tally.of(getattr(row, name) for name in COUNTS)


def counts_of(tally: Tally) -> Mapping[str, int]:
    """The values of these columns for a tally."""
    return dict(zip(COUNTS, tally.counts, strict=True))


def sums_of(table: type[Base], names: Iterable[str]) -> list[sa.Label[Any]]:
    """The sums of these columns, under the columns' names; 0 if there is no row."""
    return [sa.func.coalesce(sa.func.sum(getattr(table, n)), 0).label(n) for n in names]


GAMES, PAIRS = f"({' + '.join(COUNTS[:3])})", f"({' + '.join(COUNTS[3:])})"
# a negative number has the sign bit; one condition costs less than eight
NONE_NEGATIVE = f"({' | '.join(COUNTS)}) >= 0"
HALF_POINTS_AGREE = "plus_wins - minus_wins = 2 * (ptnml_4 - ptnml_0) + (ptnml_3 - ptnml_1)"


def not_registered(worker_id: int) -> IllegalTransition:
    return IllegalTransition(f"worker {worker_id} is not registered")


def execute(connection: sa.Connection, name: str, /, **values: Any) -> sa.CursorResult[Any]:
    """Run a statement of one of the SQL files; a parameter after IN takes a list."""
    return connection.execute(_statement(name, connection.dialect.name), values)


def named_texts(file: str) -> dict[tuple[str, str], str]:
    """The texts of a file in this folder by kind and name, without comments."""
    text = _COMMENT.sub("", files("spsa.db").joinpath(file).read_text(encoding="utf-8"))
    _, *parts = _HEAD.split(text)
    found = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    return {(kind, name): body.strip().rstrip(";") for kind, name, body in found}


def time_from_now(seconds: float = 0) -> sa.ColumnElement[datetime]:
    """The database's clock, plus some seconds."""
    return _TimeFromNow(sa.literal(seconds, sa.Double))


class _TimeFromNow(sa.sql.functions.FunctionElement[datetime]):
    name = "spsa_time"
    type = UtcTime()
    inherit_cache = True


@compiles(_TimeFromNow)
def _compiled_time(element: Any, compiler: Any, **options: Any) -> str:
    call = f"spsa_time({compiler.process(element.clauses, **options)})"
    return _in_dialect(call, compiler.dialect.name)


_MEASURED = [one.name for one in fields(Measured)]
PLACES = {
    "ACTIVE_SECONDS": str(ACTIVE_SECONDS),
    "LONGEST_BATCH": str(LONGEST_BATCH),
    "LONGEST_BUILD": str(LONGEST_BUILD),
    "measured": ", ".join(f"{name} = coalesce(:{name}, {name})" for name in _MEASURED),
    "measured of w": ", ".join(f"w.{name}" for name in _MEASURED),
}
"""What `{name}` is in the SQL files, where it is no fragment."""

_FILES = ("protocol.sql", "builds.sql", "master.sql")
_COMMENT = re.compile(r" *--(?! (?:name|fragment):).*$", re.MULTILINE)
_HEAD = re.compile(r"^-- (name|fragment): (\S+)\n", re.MULTILINE)
_LOCK = re.compile(r"\s+FOR (?:NO KEY )?UPDATE(?: OF \w+)?(?: SKIP LOCKED)?")
_TIME = re.compile(r"spsa_time\(([^()]*(?:\([^()]*\))?[^()]*)\)")
_LIST = re.compile(r"IN :(\w+)")
_CLOCKS = {  # of SQLite in the form of `UtcTime`
    "sqlite": r"strftime('%Y-%m-%d %H:%M:%f', 'now', (\1) || ' seconds')",
    "postgresql": r"(statement_timestamp() + make_interval(secs => \1))",
}


@cache
def _statement(name: str, dialect: str) -> sa.TextClause:
    text = _in_dialect(_statements()[name], dialect)
    lists: list[sa.BindParameter[Any]] = [
        bindparam(found, expanding=True) for found in _LIST.findall(text)
    ]
    return sa.text(text).bindparams(*lists)


@cache
def _statements() -> dict[str, str]:
    """The statements, in which fragments stand that are written above them.

    `{suited of w2}` is the fragment `suited` about w2 instead of w.
    """
    found: dict[str, str] = {}
    places = dict(PLACES)
    for (kind, name), text in chain.from_iterable(named_texts(one).items() for one in _FILES):
        whole = text.format_map(places)
        if kind == "name":
            found[name] = whole
        else:
            places |= {name: f"({whole})", f"{name} of w2": re.sub(r"\bw\.", "w2.", f"({whole})")}
    return found


def _in_dialect(text: str, dialect: str) -> str:
    """The same text for one of the two databases; SQLite locks no rows."""
    timed = _TIME.sub(_CLOCKS[dialect], text)
    return _LOCK.sub("", timed) if dialect == "sqlite" else timed
