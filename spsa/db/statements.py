"""Reads `protocol.sql`: named statements with their fragments put in, for either database."""

import re
from functools import cache
from importlib.resources import files
from typing import Any

import sqlalchemy as sa
from sqlalchemy import bindparam

_COMMENT = re.compile(r" *--(?! (?:name|fragment):).*$", re.MULTILINE)
_HEAD = re.compile(r"^-- (name|fragment): (\S+)\n", re.MULTILINE)
_PLACE = re.compile(r"\{([a-z_]+)(?: of (\w+))?\}")
_LOCK = re.compile(r"\s+FOR (?:NO KEY )?UPDATE(?: OF \w+)?(?: SKIP LOCKED)?")
_TIME = re.compile(r"spsa_time\(([^()]*(?:\([^()]*\))?[^()]*)\)")
_LIST = re.compile(r"IN :(\w+)")


def execute(connection: sa.Connection, name: str, /, **values: Any) -> sa.CursorResult[Any]:
    """Run a statement of protocol.sql by its name."""
    return connection.execute(statement(name, connection.dialect.name), values)


@cache
def statement(name: str, dialect: str) -> sa.TextClause:
    """A statement of protocol.sql; a parameter after IN takes a list."""
    text = in_dialect(_expanded(_texts()["name", name]), dialect)
    lists: list[sa.BindParameter[Any]] = [
        bindparam(found, expanding=True) for found in _LIST.findall(text)
    ]
    return sa.text(text).bindparams(*lists)


def in_dialect(text: str, dialect: str) -> str:
    """The same text for one of the two databases.

    SQLite locks no rows, and calls a function of Python for the time. PostgreSQL gets an
    expression, because it would parse a function of SQL anew for each statement.
    """
    return _LOCK.sub("", text) if dialect == "sqlite" else _TIME.sub(_time, text)


def _time(call: re.Match[str]) -> str:
    return f"(statement_timestamp() + make_interval(secs => {call[1]}))"


def named_texts(file: str) -> dict[tuple[str, str], str]:
    """The texts of a file in this folder by kind and name, without comments."""
    text = _COMMENT.sub("", files("spsa.db").joinpath(file).read_text(encoding="utf-8"))
    _, *parts = _HEAD.split(text)
    found = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    return {(kind, name): body.strip().rstrip(";") for kind, name, body in found}


@cache
def _texts() -> dict[tuple[str, str], str]:
    return named_texts("protocol.sql")


def _expanded(text: str) -> str:
    """Put fragments in; `{suited of w2}` is the fragment `suited` about w2 instead of w."""
    while _PLACE.search(text):
        text = _PLACE.sub(_fragment, text)
    return text


def _fragment(place: re.Match[str]) -> str:
    body = _texts()["fragment", place[1]]
    about = re.sub(r"\bw\.", f"{place[2]}.", body) if place[2] else body
    return f"({about})"
