"""A PostgreSQL server of the bench's own, with its data in memory."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa

from benches.cluster import (
    START_SECONDS,
    account,
    address,
    await_answer,
    binaries,
    command,
    free_port,
    make_cluster,
)
from spsa.db.url import parse_url

__all__ = ["binaries", "create", "running", "seconds_of_cpu"]

_SETTINGS = (
    "max_connections=400",
    "shared_buffers=512MB",
    "max_wal_size=8GB",
    "checkpoint_timeout=1h",
)


def create(url: str, name: str) -> str:
    """The URL of a new database of a server."""
    engine = sa.create_engine(
        parse_url(f"{url}/postgres"), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool
    )
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    return f"{url}/{name}"


def seconds_of_cpu(pid: int) -> float:
    """What a server and its processes have used of the CPU so far."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return sum(_ticks(process) for process in (str(pid), *children)) / os.sysconf("SC_CLK_TCK")


def _ticks(process: str) -> int:
    try:
        stat = Path("/proc", process, "stat").read_text()
    except FileNotFoundError:  # it has just ended, and its parent has its time
        return 0
    # of the words after the name: utime, stime, and those of children that have ended
    return sum(int(word) for word in stat.rpartition(")")[2].split()[11:15])


@contextmanager
def running(programs: Path, disk: Path) -> Iterator[tuple[str, int]]:
    """A fresh server with its data on `disk`: its URL without a database's name, and its pid."""
    folder = Path(tempfile.mkdtemp(prefix="spsa-bench-", dir=disk))
    data, port = make_cluster(programs, folder), free_port()
    environment = {"PATH": os.defpath}
    server = subprocess.Popen(
        command(programs, data, port, _SETTINGS), env=environment, cwd="/", **account()
    )
    try:
        await_answer(port)
        yield address(port), server.pid
    finally:
        server.send_signal(2)  # a fast shutdown
        server.wait(START_SECONDS)
        shutil.rmtree(folder, ignore_errors=True)
