"""A real pgbouncer in transaction mode, with fewer connections than clients, loses nothing.

Whatever a client leaves in its session the next client would find there, and itself would miss.
"""

import os
import shutil
import subprocess
import tempfile
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa
from asking import Store
from builders import LEASE, new_worker, result_of, stage
from engines.faulty import wait_until

from benches.cluster import account, await_answer, free_port
from spsa.db.migrate import upgrade
from spsa.db.url import parse_url
from spsa.errors import DatabaseUnreachable
from spsa.history.doctor import check_run

RESTARTS = 30 if os.environ.get("SPSA_TEST_LONG") else 2
SETTINGS = ("statement_timeout", "synchronous_commit", "TimeZone", "DateStyle", "search_path")


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

    def __init__(self, url, folder, connections):
        program = shutil.which("pgbouncer", path=os.environ.get("PATH", "") + ":/usr/sbin")
        if program is None:
            (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("no pgbouncer")
        server, self._port = parse_url(url), free_port()
        (folder / "users.txt").write_text('"postgres" ""\n')
        facts = {"server": server.port, "port": self._port, "users": folder / "users.txt"}
        file = folder / "pgbouncer.ini"
        file.write_text(_CONFIGURATION.format(connections=connections, **facts))
        self._command = [program, "-q", str(file)]
        self.url = server.set(port=self._port).render_as_string(hide_password=False)

    def start(self):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen(self._command, cwd="/", **quiet, **account())
        await_answer(self._port)

    def kill(self):
        self._process.kill()
        self._process.wait()


@contextmanager
def pooling(url, connections):
    with tempfile.TemporaryDirectory(prefix="spsa-pooler-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        pooler = Pooler(url, folder, connections)
        pooler.start()
        try:
            yield pooler
        finally:
            pooler.kill()


def settings_of(url):
    """Those of a session, outside of any transaction."""
    engine = sa.create_engine(parse_url(url), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with engine.connect() as connection:
        return {
            name: connection.scalar(sa.text("SELECT current_setting(:name)"), {"name": name})
            for name in SETTINGS
        }


def insistent(call):
    """The response to a call that is repeated until there is one."""
    while True:
        try:
            return call()
        except DatabaseUnreachable:
            time.sleep(0.05)


def play(url, name, stopping):
    """A worker that plays whatever is free until it is stopped."""
    with insistent(lambda: Store(url, durable=False)) as store:
        worker = insistent(lambda: store.register_worker(new_worker(name)))
        while not stopping.is_set():
            claim_id = uuid.uuid4().hex
            claim = insistent(partial(store.claim, claim_id, worker, LEASE))
            if claim is None:
                time.sleep(0.01)
            else:
                insistent(partial(store.report, claim, result_of(claim)))


def test_four_workers_share_two_connections(postgresql_url):
    """Also if the pooler is killed and started again while they play."""
    stopping = threading.Event()
    with (
        Store(postgresql_url) as master,
        pooling(postgresql_url, connections=2) as pooler,
        ThreadPoolExecutor(4) as pool,
    ):
        on = stage(master)
        on.open(target_games=160)
        workers = [pool.submit(play, pooler.url, f"machine-{n}", stopping) for n in range(2, 6)]
        for _ in range(RESTARTS):
            time.sleep(0.3)
            pooler.kill()
            time.sleep(0.1)
            pooler.start()
        wait_until(lambda: all(found.is_played for found in master.open_iterations(on.run.id)))
        stopping.set()
        for worker in workers:
            worker.result()
        on.apply()
        assert master.totals(on.run.id).tally.games == 160
        assert check_run(master, on.now()) == []


def test_nothing_stays_in_a_session(postgresql_url):
    """One connection for a client whose commits wait for the disk and one whose do not."""
    untouched = settings_of(postgresql_url)
    with pooling(postgresql_url, connections=1) as pooler:
        for durable in (False, True):
            with Store(pooler.url, durable=durable) as store:
                assert [run.name for run in store.runs()] == ([] if not durable else ["first"])
                if not durable:
                    stage(store).whole_iteration()
            assert settings_of(pooler.url) == untouched


def test_a_new_database_gets_its_tables_through_a_pooler(empty_postgresql_url):
    with pooling(empty_postgresql_url, connections=1) as pooler:
        assert upgrade(pooler.url)
        with Store(pooler.url) as store:
            assert store.runs() == []
