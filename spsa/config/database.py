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
    url, base = (variable, Path.cwd()) if variable else (written, folder)
    normal = _normalised(url.strip(), base)
    # the URL itself stays out of the messages: it may hold a password
    if normal is None and variable:
        found = "names no database that can be used"
        section.fault_elsewhere("DATABASE_URL or --database-url", found, _REMEDY)
    elif normal is None:
        section.fault("url", "url names no database that can be used", _REMEDY)
    return normal or ""


def _normalised(url: str, base: Path) -> str | None:
    if found := _POSTGRESQL.fullmatch(url):
        return f"postgresql+psycopg2://{found['rest']}"
    found = _SQLITE.fullmatch(url)
    if found is None or found["path"] in ("", ":memory:") or "\0" in url:
        return None  # a database in memory is no meeting place for two processes
    if found["path"].startswith("file:"):
        return url
    return f"sqlite:///{(base / found['path']).resolve().as_posix()}{found['query'] or ''}"
