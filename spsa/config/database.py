"""The database's URL, from the environment or from config.toml, as an absolute URL."""

from pathlib import Path

from spsa.config.section import Section
from spsa.db.database_url import parsed
from spsa.db.url_source import anchored, url_beside
from spsa.errors import Fault, InvalidInput


def read_url(section: Section, folder: Path, variable: str) -> str:
    """`variable` (DATABASE_URL's value, "" when unset) or the section's url, driver named.

    In config.toml, a relative SQLite path is relative to `folder`, the folder of config.toml, so
    that programs started in different folders use the same database. In the variable it is
    relative to the current folder, as users of a shell expect.
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
    """What is wrong with a URL; the text quotes nothing of it, as it may hold a password."""
    try:
        parsed(url.strip())
    except InvalidInput as error:
        return error.faults[0]
    return None
