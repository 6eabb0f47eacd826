"""A real pgbouncer in transaction mode before a PostgreSQL server, on a free port of loopback.

It never runs as root, takes no startup parameter that it does not know, and ends with the test.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benches.cluster import account, await_answer, free_port
from spsa.db.database import parse_url

_CONFIGURATION = """
[databases]
* = host=127.0.0.1 port={server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {users}
pool_mode = transaction
default_pool_size = {connections}
max_client_conn = 200
server_login_retry = 1
"""


class Pooler:
    """Passes what clients say to the server of a URL, over so few `connections`."""

    def __init__(self, url: str, folder: Path, connections: int) -> None:
        program = shutil.which("pgbouncer", path=os.environ.get("PATH", "") + ":/usr/sbin")
        if program is None:
            (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("no pgbouncer")
        server, self._port = parse_url(url), free_port()
        listed = folder / "users.txt"
        listed.write_text('"postgres" ""\n')
        self._file = folder / "pgbouncer.ini"
        self._file.write_text(
            _CONFIGURATION.format(
                server=server.port, port=self._port, users=listed, connections=connections
            )
        )
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None
        self.url = server.set(port=self._port).render_as_string(hide_password=False)

    def start(self) -> None:
        self._process = subprocess.Popen(
            [self._program, "-q", str(self._file)],
            cwd="/",
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **account(),
        )
        await_answer(self._port)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextmanager
def pooling(url: str, connections: int) -> Iterator[Pooler]:
    with tempfile.TemporaryDirectory(prefix="spsa-pooler-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        pooler = Pooler(url, folder, connections)
        pooler.start()
        try:
            yield pooler
        finally:
            pooler.kill()
