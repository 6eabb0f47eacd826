"""Which database: from the environment, or from config.toml, as an absolute URL."""

import re
from pathlib import Path

from spsa.config.section import Section

DEFAULT_URL = "sqlite:///spsa.db"

_SQLITE = re.compile(r"sqlite(?:\+pysqlite)?:///(?P<path>[^?]*)(?P<query>\?.*)?", re.DOTALL)
_POSTGRESQL = re.compile(r"postgres(?:ql)?(?:\+psycopg2)?://(?P<rest>.+)", re.DOTALL)
_REMEDY = "use sqlite:///spsa.db or postgresql://user@host:5432/database"


def read_url(section: Section, folder: Path, variable: str) -> str:
    """`variable` (DATABASE_URL's value, "" when unset) or the section's url, driver named.

    A relative SQLite path is relative to `folder`, that of config.toml, so that two programs
    started in two places mean one database. In the variable it is relative to where the program
    was started, as a shell's user expects.
    """
    written = section.text("url", DEFAULT_URL)
    section.close()
    url, base, origin = (
        (variable, Path.cwd(), "DATABASE_URL") if variable else (written, folder, "url")
    )
    normal = _normalised(url.strip(), base)
    if normal is None:
        # the URL itself stays out of the message: it may hold a password
        section.fault("url", f"{origin} names no database that can be used", _REMEDY)
        return ""
    return normal


def _normalised(url: str, base: Path) -> str | None:
    if found := _POSTGRESQL.fullmatch(url):
        return f"postgresql+psycopg2://{found['rest']}"
    found = _SQLITE.fullmatch(url)
    if found is None or found["path"] in ("", ":memory:") or "\0" in url:
        return None  # a database in memory is no meeting place for two processes
    if found["path"].startswith("file:"):
        return url
    return f"sqlite:///{(base / found['path']).resolve().as_posix()}{found['query'] or ''}"
