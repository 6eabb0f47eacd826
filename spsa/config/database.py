"""Which database: from the environment, or from config.toml, as an absolute URL."""

from pathlib import Path

from spsa.config.section import Section
from spsa.db.database_url import parsed
from spsa.db.url_source import anchored, url_beside
from spsa.errors import Fault, InvalidInput


def read_url(section: Section, folder: Path, variable: str) -> str:
    """`variable` (DATABASE_URL's value, "" when unset) or the section's url, driver named.

    A relative SQLite path is relative to `folder`, that of config.toml, so that two programs
    started in two places mean one database. In the variable it is relative to where the program
    was started, as a shell's user expects.
    """
    written = section.get("url")
    section.close()
    if not isinstance(written, str | None):
        section.fault("url", "url is not a text", 'write url = "sqlite:///spsa.db"')
        return ""
    url = anchored(variable.strip(), Path.cwd()) if variable else url_beside(folder, written)
    if (fault := _fault(variable or written or url)) is None:
        return url
    if variable:
        section.fault_elsewhere("DATABASE_URL or --database-url", fault.found, fault.remedy)
    else:
        section.fault("url", f"url {fault.found}", fault.remedy)
    return ""


def _fault(url: str) -> Fault | None:
    """What is wrong with a URL, in words that hold nothing of it."""
    try:
        parsed(url.strip())
    except InvalidInput as error:
        return error.faults[0]
    return None
