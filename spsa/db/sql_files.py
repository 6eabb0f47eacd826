"""Reads the SQL files of the folder `sql`.

`counting.*.sql` are the triggers that count games, for each database. `worker_functions.sql` are
the functions for workers on PostgreSQL, `worker_statements.sql` their statements on SQLite.
"""

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

_COMMENT = re.compile(r"^ *--.*\n", re.MULTILINE)
_NAME = re.compile(r"^-- name: (\S+)\n", re.MULTILINE)
_FUNCTION = re.compile(r"^CREATE OR REPLACE FUNCTION (\w+)\(", re.MULTILINE)
_STATEMENT = re.compile(r"^(?=DROP |CREATE )", re.MULTILINE)
_TRIGGER = re.compile(r"^CREATE (?:CONSTRAINT )?TRIGGER (\w+)", re.MULTILINE)
_DEFINITION = re.compile(
    r"^CREATE OR REPLACE (?P<function>FUNCTION) (\w+)\(.*?\$\$.*?\$\$;"
    r"|^CREATE (?:CONSTRAINT )?TRIGGER (\w+).*?(?:EXECUTE FUNCTION \w+\(\);|^END;)",
    re.MULTILINE | re.DOTALL,
)
_FOR_BUILDERS = "-- Part 2"  # where the functions begin that only workers call which build
_INTERNAL = "-- Part 3"  # and those that no worker calls


def text_of(file: str) -> str:
    """The text of one of the SQL files."""
    return (files("spsa.db") / "sql" / file).read_text(encoding="utf-8")


@cache
def named_statements(file: str) -> dict[str, str]:
    """The statements of a file that has a line `-- name: ...` before each, by name."""
    _, *parts = _NAME.split(text_of(file))
    return {
        name: _COMMENT.sub("", body).strip().removesuffix(";")
        for name, body in zip(parts[::2], parts[1::2], strict=True)
    }


def programs(dialect: str) -> Iterator[str]:
    """The scripts that create triggers and functions; each may be executed again."""
    if dialect == "postgresql":
        yield text_of("counting.postgresql.sql")
        yield text_of("worker_functions.sql")
    else:
        # SQLite's driver executes one statement at a time, and a trigger has semicolons inside
        yield from _STATEMENT.split(text_of("counting.sqlite.sql"))[1:]


def definitions(dialect: str) -> dict[tuple[str, str], str]:
    """The definition of every function and trigger, by its kind and name."""
    return {
        ("function", match[2]) if match["function"] else ("trigger", match[3]): match[0]
        for text in programs(dialect)
        for match in _DEFINITION.finditer(text)
    }


def triggers() -> tuple[str, ...]:
    """The triggers that both databases have."""
    return tuple(_TRIGGER.findall(text_of("counting.postgresql.sql")))


def functions() -> tuple[str, ...]:
    """All functions of the PostgreSQL schema."""
    files_with_functions = ("counting.postgresql.sql", "worker_functions.sql")
    return tuple(name for file in files_with_functions for name in _FUNCTION.findall(text_of(file)))


def worker_functions() -> tuple[str, ...]:
    """The functions that a worker's login may call."""
    return tuple(_FUNCTION.findall(text_of("worker_functions.sql").partition(_FOR_BUILDERS)[0]))


def builder_functions() -> tuple[str, ...]:
    """The functions that the login of a worker may call which also builds engines."""
    return tuple(_FUNCTION.findall(text_of("worker_functions.sql").partition(_INTERNAL)[0]))
