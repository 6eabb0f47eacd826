"""A PostgreSQL server for the tests, from the machine's own binaries, gone when they are.

It listens on a free port of 127.0.0.1 only, keeps nothing safe from a power cut, and never runs as
root. A shell that reads a pipe of ours stops it: the pipe ends with this process, whatever ends it.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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

__all__ = ["CrashingServer", "account", "binaries", "running_server"]

ROOM = 1 << 30
_WATCHED = (
    '"$@" & server=$!; cat >/dev/null; kill -QUIT $server; wait $server; '
    'test -z "$FOLDER" || rm -rf "$FOLDER"'
)
_SETTINGS = (
    "fsync=off",
    "full_page_writes=off",
    "max_connections=100",
    "timezone=Asia/Kolkata",  # nothing may depend on a session's
    "autovacuum=off",  # nothing may depend on when it comes
)


@contextmanager
def running_server(folder_of_binaries: Path) -> Iterator[str]:
    """The URL of a fresh server, without a database's name."""
    folder = Path(tempfile.mkdtemp(prefix="spsa-postgresql-", dir=_memory()))
    server = CrashingServer(folder_of_binaries, folder, is_removed=True)
    try:
        server.start()
        yield server.url
    finally:
        server.crash()
        shutil.rmtree(folder, ignore_errors=True)


class CrashingServer:
    """A server of one's own that is started and crashed at will; its folder is the caller's.

    A crash is PostgreSQL's immediate shutdown: no process of it writes another byte. Ends with the
    process that made it, whatever ends that.
    """

    def __init__(
        self, folder_of_binaries: Path, folder: Path, *settings: str, is_removed: bool = False
    ) -> None:
        self._binaries, self._settings = folder_of_binaries, (*_SETTINGS, *settings)
        self._removed = str(folder) if is_removed else ""
        self._data = make_cluster(folder_of_binaries, folder, "--wal-segsize=1")
        self.port = free_port()
        self._watched: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Without a database's name."""
        return address(self.port)

    def start(self) -> None:
        """Start, and recover from the crash before; returns once it answers."""
        self.crash()
        words = command(self._binaries, self._data, self.port, self._settings)
        self._watched = subprocess.Popen(
            ["sh", "-c", _WATCHED, "sh", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"PATH": os.defpath, "FOLDER": self._removed},
            cwd="/",
            start_new_session=True,  # Ctrl-C is for the tests; the server ends after their clean-up
            **account(),
        )
        await_answer(self.port)

    def crash(self) -> None:
        """End it at once, where it is running."""
        if self._watched is not None:
            self._watched.stdin.close()
            self._watched.wait(START_SECONDS)
            self._watched = None


def _memory() -> str | None:
    """A file system in memory with room for it, where a new database takes a tenth of the time."""
    shared = Path("/dev/shm")
    roomy = os.access(shared, os.W_OK) and shutil.disk_usage(shared).free > ROOM
    return str(shared) if roomy else None
