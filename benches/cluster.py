"""A PostgreSQL cluster of one's own, from the machine's binaries, at a free port of loopback."""

import os
import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg2

START_SECONDS = 60
_LOOPBACK_ONLY = (
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "log_min_messages=fatal",
)


def binaries() -> Path | None:
    """The folder of the newest server on this machine."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    installed = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    return max(installed, key=lambda path: float(path.parent.name), default=None)


def make_cluster(programs: Path, folder: Path, *options: str) -> Path:
    """Its data, in a folder that is given to whoever runs the server; nothing waits for a disk."""
    data, owner = folder / "data", account()
    if owner:
        shutil.chown(folder, owner["user"], owner["group"])
    initdb = [str(programs / "initdb"), "-D", str(data), "-U", "postgres", "-A", "trust", "-N"]
    subprocess.run(
        [*initdb, "-E", "UTF8", "--locale=C", *options],
        cwd="/",
        check=True,
        capture_output=True,
        **owner,
    )
    return data


def command(programs: Path, data: Path, port: int, settings: Iterable[str]) -> list[str]:
    """What starts its server, to be run as `account()`; settings as `name=value`."""
    given = (*_LOOPBACK_ONLY, *settings, f"port={port}")
    return [
        str(programs / "postgres"),
        *("-D", str(data)),
        *(word for setting in given for word in ("-c", setting)),
    ]


def address(port: int) -> str:
    """Its URL, without a database's name."""
    return f"postgresql://postgres@127.0.0.1:{port}"


def account() -> dict[str, Any]:
    """Whom to run as, for subprocess: PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return {}
    names = {entry.pw_name for entry in pwd.getpwall()}
    user = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def free_port() -> int:
    """A port of loopback that nobody listens at."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def await_answer(port: int) -> None:
    """Wait until the server of this port lets somebody in; OperationalError after a minute."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            psycopg2.connect(f"{address(port)}/postgres").close()
        except psycopg2.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return
