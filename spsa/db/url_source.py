"""Where the URL of a database is written, and who else can read it there."""

import re
from pathlib import Path

from spsa.db.database_url import FileUrl, parsed
from spsa.errors import Fault, InvalidInput
from spsa.security.regular_file import MOST_TEXT, content

DEFAULT_URL = "sqlite:///spsa.db"
"""What every program takes where config.toml names no database: a file beside it."""

_SQLITE = re.compile(r"sqlite(?:\+pysqlite)?:///(?P<path>[^?]*)(?P<query>\?.*)?", re.DOTALL)
_POSTGRESQL = re.compile(r"postgres(?:ql)?(?:\+psycopg2)?://(?P<rest>.+)", re.DOTALL)


def anchored(url: str, folder: Path) -> str:
    """The URL with its driver named, and with a relative SQLite path meant from `folder`."""
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
    """The URL in a file of one line, as secrets are handed to services."""
    try:
        text = content(path, MOST_TEXT).decode("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise _unusable(path, f"cannot be read: {reason}") from None
    if not text or "\n" in text:
        raise _unusable(path, "is no file of one line")
    return text


def _unusable(path: Path, found: str) -> InvalidInput:
    remedy = "write the database's URL into it, and nothing else"
    return InvalidInput(
        [Fault(file=str(path), line=None, name="database.url", found=found, remedy=remedy)]
    )


def caution_of_command_line(text: str) -> str | None:
    """What to say of a URL that stands on a command line; None where nothing of it is secret."""
    url = parsed(text)
    if isinstance(url, FileUrl) or url.password is None:
        return None
    return (
        "everybody on this machine can read a command line, and the password in it: use "
        "DATABASE_URL, --database-url-file or ~/.pgpass"
    )
