"""A PostgreSQL server that lives as long as a measurement, in memory where that is a disk."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benches.database.server import binaries, create, running
from spsa.db import migrate
from spsa.errors import TuningError

_MEMORY = Path("/dev/shm")


@contextmanager
def postgresql() -> Iterator[tuple[str, int]]:
    """A fresh database with its tables: its URL, and the process id of its server.

    Raises:
        TuningError: no server is installed here.
    """
    programs = binaries()
    if programs is None:
        raise TuningError("no PostgreSQL server is installed here: use --database sqlite")
    disk = _MEMORY if _MEMORY.is_dir() else Path(tempfile.gettempdir())
    with running(programs, disk) as (server, pid):
        url = create(server, "fleet")
        migrate.upgrade(url)
        yield url, pid
