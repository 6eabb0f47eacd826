"""A PostgreSQL server of the bench's own, on a disk of known slowness."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from benches.database.slowness import variables
from spsa.connection import parse_url

START_SECONDS = 60
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "400",
    "shared_buffers": "512MB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "1h",
    "log_min_messages": "fatal",
}


def binaries() -> Path | None:
    """The folder of the newest server on this machine."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    installed = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    return max(installed, key=lambda path: float(path.parent.name), default=None)


@contextmanager
def fresh_copy(url: str, template: str) -> Iterator[str]:
    """The URL of a database that is just as `template` of the same server, while it is used."""
    engine = sa.create_engine(
        parse_url(f"{url}/postgres"), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool
    )
    with engine.connect() as connection:
        words = f"CREATE DATABASE cell TEMPLATE {template} STRATEGY FILE_COPY"
        connection.exec_driver_sql(words)
        try:
            yield f"{url}/cell"
        finally:
            connection.exec_driver_sql("DROP DATABASE cell WITH (FORCE)")


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
def running(
    programs: Path, disk: Path, fsync_milliseconds: float, shim: Path | None
) -> Iterator[tuple[str, int]]:
    """A fresh server with its data on `disk`: its URL without a database's name, and its pid."""
    folder = Path(tempfile.mkdtemp(prefix="spsa-bench-", dir=disk))
    account = _account()
    if account:
        shutil.chown(folder, account["user"], account["group"])
    data, port = folder / "data", _free_port()
    initdb: list[Any] = [programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-N"]
    subprocess.run(
        [*initdb, "-E", "UTF8", "--locale=C"], cwd="/", check=True, capture_output=True, **account
    )
    given = {**_SETTINGS, "port": str(port)}
    words = [word for name, value in given.items() for word in ("-c", f"{name}={value}")]
    environment = {"PATH": os.defpath, **variables(shim, fsync_milliseconds)}
    server = subprocess.Popen(
        [programs / "postgres", "-D", data, *words], env=environment, cwd="/", **account
    )
    try:
        url = f"postgresql://postgres@127.0.0.1:{port}"
        _await_answer(url)
        yield url, server.pid
    finally:
        server.send_signal(2)  # a fast shutdown
        server.wait(START_SECONDS)
        shutil.rmtree(folder, ignore_errors=True)


def _account() -> dict[str, Any]:
    """Whom to run as: PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return {}
    names = {entry.pw_name for entry in pwd.getpwall()}
    user = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _await_answer(url: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    engine = sa.create_engine(parse_url(f"{url}/postgres"), poolclass=sa.NullPool)
    while True:
        try:
            engine.connect().close()
            return
        except sa.exc.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
