"""Connections: an SQLite file that others use, a silent server, and a pooler with few connections.

Every call to PostgreSQL ends within its deadline, even if a proxy acknowledges what it is sent. The
limits are the product's own, and a faster clock measures them where only their end is awaited.
A real pgbouncer in transaction mode loses nothing: whatever a client left in its session the next
client would find there, and itself would miss.
"""

import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import psycopg2
import pytest
import sqlalchemy as sa
from asking import Store
from builders import LEASE, new_worker, result_of, stage
from console import FIXTURES, Running, master, worker, write_project
from engines.faulty import wait_until
from shell import Shell

from benches.cluster import account, await_answer, free_port
from spsa.db import database, postgresql
from spsa.db.database import create_engine, translated
from spsa.db.migrate import upgrade
from spsa.db.url import parse_url
from spsa.errors import DatabaseUnreachable
from spsa.history.doctor import check_run


class Proxy:
    """Passes on what is said to the server at `port`; `self.port` is where to say it.

    While it is silent it goes on accepting and acknowledging, as a NAT or a pooler does whose other
    side is gone: no client is ever told. `heard` is called with everything that clients say.
    """

    def __init__(self, port):
        self._server, self._swallows, self.heard = port, False, lambda _said: None
        self._hears = threading.Event()
        self._hears.set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def stall(self):
        """Keep everything to oneself, to be passed on when it ends: commits that come late."""
        self._hears.clear()

    def swallow(self):
        """Take everything and pass nothing on, ever, of the connections there are."""
        self._swallows = True

    def end_silence(self):
        self._swallows = False
        self._hears.set()

    def close(self):
        self.end_silence()
        self._listener.close()

    def _accept(self):
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client):
        server = socket.create_connection(("127.0.0.1", self._server))
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        answers = (server, client, lambda _said: None)
        threading.Thread(target=self._pass_on, args=answers, daemon=True).start()
        self._pass_on(client, server, lambda said: self.heard(said))

    def _pass_on(self, source, target, heard):
        is_lost = False
        with suppress(OSError):
            while said := source.recv(65536):
                heard(said)
                is_lost = is_lost or self._swallows
                self._hears.wait()
                if not is_lost:
                    target.sendall(said)
        # what follows a lost piece would be nonsense to the server: it hears nothing more
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)


@pytest.fixture
def proxy(postgresql_url):
    with closing(Proxy(parse_url(postgresql_url).port or 5432)) as made:
        yield made


@pytest.fixture
def url(postgresql_url, proxy):
    """The database behind the proxy."""
    parsed = parse_url(postgresql_url).set(host="127.0.0.1", port=proxy.port)
    return parsed.render_as_string(hide_password=False)


def test_a_new_file_waits_for_the_process_that_creates_it(tmp_path):
    """That is in its first transaction, and the file is not in WAL yet."""
    path = tmp_path / "spsa.db"
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("CREATE TABLE theirs (x)")
        other.execute("BEGIN IMMEDIATE")
        leaving = threading.Timer(0.3, other.execute, ["COMMIT"])
        leaving.start()
        engine = create_engine(parse_url(f"sqlite:///{path}"), durable=False)
        with engine.begin() as connection:
            assert connection.scalar(sa.text("PRAGMA journal_mode")) == "wal"
            assert connection.scalar(sa.text("PRAGMA synchronous")) == 1, "NORMAL"
        engine.dispose()
        leaving.join()


def test_a_claim_and_a_report_are_four_round_trips_each(url, proxy):
    """What begins the transaction, two statements, and the commit."""
    heard: list[bytes] = []
    proxy.heard = heard.append
    with Store(url, durable=False) as store:
        on = stage(store)
        on.open(target_games=12)
        store.report(first := on.claim("first"), result_of(first))
        assert b"hstore" not in b"".join(heard)
        heard.clear()
        store.report(claim := on.claim("second"), result_of(claim))
        assert len(heard) == 8, heard
        assert [said[5:11] for said in heard][::4] == [b"BEGIN;"] * 2, heard


def test_a_program_has_so_many_connections(database_url, monkeypatch):
    monkeypatch.setattr(database, "CONNECTIONS", 1)
    with Store(database_url) as store:
        store._engine.pool._timeout = 0.01
        with store._read(), pytest.raises(DatabaseUnreachable, match="all 1 connections"):
            store.runs()
    assert not Path(f"{parse_url(database_url).database}-wal").exists(), "a file is still open"


def test_connections_that_the_server_closed_are_replaced(postgresql_url):
    """As a restart of the server does."""
    shell = Shell(postgresql_url)
    with Store(postgresql_url) as store:
        for _ in range(3):
            assert store.runs() == []
            ended = shell(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                " AND backend_type = 'client backend'"
            )
            assert ended == [(1,)]
            time.sleep(0.1)  # until this side has heard
        assert store.runs() == []
    shell.close()


class Clock:
    """Measures the deadlines: as the real clock, and faster while `is_fast`.

    So a response that has to come has all the time that the product gives it, on any machine.
    """

    def __init__(self):
        self._since = (0.0, time.monotonic(), 1.0)

    def __call__(self):
        shown, at, speed = self._since
        return shown + (time.monotonic() - at) * speed

    def run(self, *, fast):
        self._since = (self(), time.monotonic(), FAST if fast else 1.0)


FAST = 40.0
CONNECTING = rf"no response within {postgresql.CONNECT_SECONDS:g} s"
RESPONDING = rf"no response within {postgresql.RESPONSE_SECONDS:g} s"


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(postgresql, "monotonic", made)
    return made


@pytest.mark.parametrize("way", ["stall", "swallow"])
def test_a_silent_server_is_given_up_on_old_and_new_connections(proxy, url, way, clock):
    with Store(url) as store:
        assert store.runs() == []
        getattr(proxy, way)()
        clock.run(fast=True)
        for _ in range(2):  # on the connection that was in use and on new ones
            with pytest.raises(DatabaseUnreachable, match=CONNECTING):
                store.runs()
        clock.run(fast=False)
        proxy.end_silence()
        assert store.runs() == []


def test_a_server_that_is_silent_in_the_middle_of_a_transaction(proxy, url, clock):
    engine = create_engine(parse_url(url), durable=True)
    refused = pytest.raises(DatabaseUnreachable, match=RESPONDING)
    with refused, translated(parse_url(url)), engine.begin() as connection:
        connection.execute(sa.text("SELECT 1"))
        proxy.swallow()
        clock.run(fast=True)
        connection.execute(sa.text("SELECT 2"))
    clock.run(fast=False)
    proxy.end_silence()
    with engine.begin() as connection:
        assert connection.scalar(sa.text("SELECT 3")) == 3
    engine.dispose()


def test_the_server_itself_ends_a_long_statement(postgresql_url, monkeypatch):
    """A session, which a pooler gives to others, keeps nothing of a transaction."""
    monkeypatch.setattr(postgresql, "STATEMENT_SECONDS", 3)  # enough for all but one on any machine
    names = ("statement_timeout", "synchronous_commit")
    settings = sa.select(*(sa.func.current_setting(name) for name in names))
    with Store(postgresql_url, durable=False) as store:
        with pytest.raises(DatabaseUnreachable, match="statement timeout"), store._write() as call:
            call.execute(sa.text("SELECT pg_sleep(60)"))
        with store._write() as call:
            assert tuple(call.execute(settings).one()) == ("3s", "off")
            driver = call.connection.dbapi_connection
        with psycopg2.extensions.cursor(driver) as cursor:
            cursor.execute("SELECT current_setting(%s), current_setting(%s)", names)
            assert cursor.fetchone() == ("0", "on")


def test_a_program_that_is_stopping_waits_less(proxy, url, monkeypatch):
    monkeypatch.setattr(postgresql, "STOPPING_SECONDS", 0.2)
    stopping = threading.Event()
    with Store(url, is_stopping=stopping.is_set) as store:
        proxy.stall()
        threading.Timer(0.3, stopping.set).start()
        with pytest.raises(DatabaseUnreachable, match=r"no response within 0\.2 s"):
            store.runs()


def test_a_server_that_only_reads_now_may_soon_write(postgresql_url):
    """As a standby does once it is the primary."""
    engine = create_engine(parse_url(postgresql_url), durable=True)
    refused = pytest.raises(DatabaseUnreachable, match="read-only")
    with refused, translated(parse_url(postgresql_url)), engine.begin() as connection:
        connection.execute(sa.text("SET TRANSACTION READ ONLY"))
        connection.execute(sa.text("DELETE FROM spsa_event"))
    engine.dispose()


COMMANDS = {
    "run": master("run"),
    "status": master("status"),
    "compete": worker("--spsa", "-c", "1"),
}


@pytest.mark.slow
@pytest.mark.parametrize("messages", [1, 6], ids=["connecting", "asking"])
@pytest.mark.parametrize("name", COMMANDS)
def test_ctrl_c_ends_a_command_whose_server_is_silent(name, messages, proxy, url, tmp_path):
    """Well within any of the product's own deadlines, of which none is shortened here."""
    write_project(tmp_path)
    heard, began_silence = iter(range(1, messages)), threading.Event()

    def fall_silent(_said):
        if next(heard, None) is None and not began_silence.is_set():
            proxy.swallow()
            began_silence.set()

    proxy.heard = fall_silent
    process = Running(COMMANDS[name], tmp_path, DATABASE_URL=url)
    assert began_silence.wait(240)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.ended() == 130, process.log
    assert time.monotonic() - began < 0.9 * postgresql.RESPONSE_SECONDS


RESTARTS = 30 if os.environ.get("SPSA_TEST_LONG") else 2
SETTINGS = ("statement_timeout", "synchronous_commit", "TimeZone", "DateStyle", "search_path")
_CONFIGURATION = (FIXTURES / "pgbouncer.ini").read_text()


class Pooler:
    """Passes what clients say to the server of a URL, over so few `connections`."""

    def __init__(self, url, connections):
        program = shutil.which("pgbouncer", path=os.environ.get("PATH", "") + ":/usr/sbin")
        if program is None:
            (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("no pgbouncer")
        self._folder = tempfile.TemporaryDirectory(prefix="spsa-pooler-")
        folder, server, self._port = Path(self._folder.name), parse_url(url), free_port()
        folder.chmod(0o755)
        (folder / "users.txt").write_text('"postgres" ""\n')
        facts = {"server": server.port, "port": self._port, "users": folder / "users.txt"}
        file = folder / "pgbouncer.ini"
        file.write_text(_CONFIGURATION.format(connections=connections, **facts))
        self._command = [program, "-q", str(file)]
        self.url = server.set(port=self._port).render_as_string(hide_password=False)
        self.start()

    def start(self):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen(self._command, cwd="/", **quiet, **account())
        await_answer(self._port)

    def kill(self):
        self._process.kill()
        self._process.wait()

    def close(self):
        self.kill()
        self._folder.cleanup()


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
        closing(Pooler(postgresql_url, connections=2)) as pooler,
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


def test_a_pooled_database_gets_its_tables_and_nothing_stays_in_a_session(empty_postgresql_url):
    """One connection for a client whose commits wait for the disk and one whose do not."""
    untouched = settings_of(empty_postgresql_url)
    with closing(Pooler(empty_postgresql_url, connections=1)) as pooler:
        assert upgrade(pooler.url)
        for durable in (False, True):
            with Store(pooler.url, durable=durable) as store:
                assert [run.name for run in store.runs()] == ([] if not durable else ["first"])
                if not durable:
                    stage(store).whole_iteration()
            assert settings_of(pooler.url) == untouched
