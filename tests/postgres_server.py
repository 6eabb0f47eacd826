"""A PostgreSQL server for the tests, from the machine's own binaries, gone when they are.

It listens on a free port of 127.0.0.1 only, keeps nothing safe from a power cut, and never runs as
root. A shell that reads a pipe of ours stops it: the pipe ends with this process, whatever ends it.
"""

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

import psycopg2

START_SECONDS = 60
ROOM = 1 << 30
_WATCHED = '"$@" & server=$!; cat >/dev/null; kill -INT $server; wait $server; rm -rf "$FOLDER"'
_CRASHED = '"$@" & server=$!; cat >/dev/null; kill -QUIT $server; wait $server'
_SETTINGS = (
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "fsync=off",
    "full_page_writes=off",
    "max_connections=100",
    "log_min_messages=fatal",
)


def binaries() -> Path | None:
    """The folder of the newest server on this machine."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    installed = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    return max(installed, key=lambda path: float(path.parent.name), default=None)


@contextmanager
def running_server(folder_of_binaries: Path) -> Iterator[str]:
    """The URL of a fresh server, without a database's name."""
    folder = Path(tempfile.mkdtemp(prefix="spsa-postgresql-", dir=_memory()))
    data, port, account = folder / "data", _free_port(), _account()
    _make_cluster(folder_of_binaries, folder, data)
    watched = subprocess.Popen(
        ["sh", "-c", _WATCHED, "sh", *_command(folder_of_binaries, data, port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={"PATH": os.defpath, "FOLDER": str(folder)},
        cwd="/",
        start_new_session=True,  # Ctrl-C is for the tests; the server ends after their clean-up
        **account,
    )
    try:
        _await_answer(port)
        yield f"postgresql://postgres@127.0.0.1:{port}"
    finally:
        watched.stdin.close()
        watched.wait(START_SECONDS)
        shutil.rmtree(folder, ignore_errors=True)


class CrashingServer:
    """A server of one's own that is started and crashed at will; its folder is the caller's.

    A crash is PostgreSQL's immediate shutdown: no process of it writes another byte. Ends with the
    process that made it, whatever ends that.
    """

    def __init__(self, folder_of_binaries: Path, folder: Path, *settings: str) -> None:
        self._binaries, self._data, self._settings = folder_of_binaries, folder / "data", settings
        self.port = _free_port()
        self._watched: subprocess.Popen[bytes] | None = None
        _make_cluster(folder_of_binaries, folder, self._data, "--wal-segsize=1")

    @property
    def url(self) -> str:
        """Without a database's name."""
        return f"postgresql://postgres@127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start, and recover from the crash before; returns once it answers."""
        self.crash()
        command = _command(self._binaries, self._data, self.port, *self._settings)
        self._watched = subprocess.Popen(
            ["sh", "-c", _CRASHED, "sh", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"PATH": os.defpath},
            cwd="/",
            start_new_session=True,
            **_account(),
        )
        _await_answer(self.port)

    def crash(self) -> None:
        """End it at once, where it is running."""
        if self._watched is not None:
            self._watched.stdin.close()
            self._watched.wait(START_SECONDS)
            self._watched = None


def _make_cluster(folder_of_binaries: Path, folder: Path, data: Path, *options: str) -> None:
    account = _account()
    if account:
        shutil.chown(folder, account["user"], account["group"])
    initdb = [folder_of_binaries / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-N"]
    subprocess.run(
        [*initdb, "-E", "UTF8", "--locale=C", *options],
        cwd="/",
        check=True,
        capture_output=True,
        **account,
    )


def _command(folder_of_binaries: Path, data: Path, port: int, *more: str) -> list[str | Path]:
    settings = (*_SETTINGS, f"port={port}", *more)
    words = [word for setting in settings for word in ("-c", setting)]
    return [folder_of_binaries / "postgres", "-D", data, *words]


def _memory() -> str | None:
    """A file system in memory with room for it, where a new database takes a tenth of the time."""
    shared = Path("/dev/shm")
    roomy = os.access(shared, os.W_OK) and shutil.disk_usage(shared).free > ROOM
    return str(shared) if roomy else None


def _account() -> dict[str, str]:
    """Whom to run as: PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return {}
    names = {entry.pw_name for entry in pwd.getpwall()}
    user = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _await_answer(port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            psycopg2.connect(f"postgresql://postgres@127.0.0.1:{port}/postgres").close()
        except psycopg2.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return
