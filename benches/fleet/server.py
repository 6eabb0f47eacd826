"""A PostgreSQL server that lives as long as a measurement, in memory where that is a disk."""

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

from spsa import migrate
from spsa.errors import DatabaseUnreachable, TuningError

_START_SECONDS = 60
_MEMORY = Path("/dev/shm")
_SETTINGS = (
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "max_connections=400",
    "log_min_messages=panic",
)


@contextmanager
def postgresql() -> Iterator[tuple[str, int]]:
    """A fresh database with its tables: its URL, and the process id of its server.

    Raises:
        TuningError: no server is installed here.
    """
    programs = _programs()
    account = _account()
    place = _MEMORY if _MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="spsa-fleet-", dir=place) as folder:
        if account:
            shutil.chown(folder, account["user"], account["group"])
        data, port = Path(folder, "data"), _free_port()
        initdb = [str(programs / "initdb"), "-D", str(data), "-U", "postgres", "-A", "trust", "-N"]
        subprocess.run(initdb, cwd="/", check=True, capture_output=True, **account)
        words = [word for each in (*_SETTINGS, f"port={port}") for word in ("-c", each)]
        command = [str(programs / "postgres"), "-D", str(data), *words]
        server = subprocess.Popen(command, cwd="/", **account)
        try:
            url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
            _make_tables(url)
            yield url, server.pid
        finally:
            server.send_signal(2)  # a fast shutdown
            server.wait(_START_SECONDS)


def _programs() -> Path:
    """The folder of the newest server on this machine."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    installed = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    if not installed:
        raise TuningError("no PostgreSQL server is installed here: use --database sqlite")
    return max(installed, key=lambda path: float(path.parent.name))


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


def _make_tables(url: str) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            migrate.upgrade(url)
            return
        except DatabaseUnreachable:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
