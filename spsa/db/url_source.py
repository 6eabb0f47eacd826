"""Where the URL of a database is written, and who else can read it there."""

import re
from pathlib import Path

from spsa.db.database_url import parsed
from spsa.errors import Fault, InvalidInput
from spsa.security.regular_file import MOST_TEXT, content

DEFAULT_URL = "sqlite:///spsa.db"
"""The database where config.toml names none: a file beside it."""

_SQLITE = re.compile(r"sqlite(?:\+pysqlite)?:///(?P<path>[^?]*)(?P<query>\?.*)?", re.DOTALL)
_POSTGRESQL = re.compile(r"postgres(?:ql)?(?:\+psycopg2)?://(?P<rest>.+)", re.DOTALL)


def anchored(url: str, folder: Path) -> str:
    """The URL with its driver named; a relative SQLite path is relative to `folder`."""
    if found := _POSTGRESQL.fullmatch(url):
        return f"postgresql+psycopg2://{found['rest']}"
    found = _SQLITE.fullmatch(url)
    if found is None or found["path"].startswith("file:"):
        return url
    return f"sqlite:///{(folder / found['path']).resolve().as_posix()}{found['query'] or ''}"


def url_beside(folder: Path, written: str | None) -> str:
    """The database of a config.toml in `folder`; `written` is the url of its [database], if any."""
    return anchored(DEFAULT_URL if written is None else written.strip(), folder)


def url_in(path: Path) -> str:
    """The URL in a file of one line, the form in which services receive secrets.

    Raises:
        InvalidInput: the file cannot be read or has not one line.
    """
    try:
        text = content(path, MOST_TEXT).decode("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise _unusable(path, f"cannot be read: {reason}") from None
    if not text or "\n" in text:
        raise _unusable(path, "does not have exactly one line")
    return text


def _unusable(path: Path, found: str) -> InvalidInput:
    remedy = "write the database's URL into it, and nothing else"
    return InvalidInput(
        [Fault(file=str(path), line=None, name="database.url", found=found, remedy=remedy)]
    )


def command_line_warning(text: str) -> str | None:
    """The warning about a URL on a command line; None where it holds no password."""
    if parsed(text).password is None:
        return None
    return (
        "every user of this machine can read a command line, and the password in it: use "
        "DATABASE_URL, --database-url-file or ~/.pgpass"
    )
