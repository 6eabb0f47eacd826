"""Connections: how an SQLite file is opened while others use it, and what a server is sent.

Every call to PostgreSQL ends within its deadline, even if a proxy acknowledges what it is sent. The
limits are the product's own, and a faster clock measures them where only their end is awaited.
"""

import signal
import sqlite3
import subprocess
import threading
import time
from contextlib import closing

import psycopg2
import pytest
import sqlalchemy as sa
from asking import Store
from builders import result_of, stage
from console import environment, master, worker, write_project
from proxy import Proxy
from shell import Shell

from spsa.db import postgresql
from spsa.db.database import create_engine, translated
from spsa.db.url import parse_url
from spsa.errors import DatabaseUnreachable


@pytest.fixture
def proxy(postgresql_url):
    with Proxy(parse_url(postgresql_url).port or 5432) as made:
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
        engine = create_engine(parse_url(f"sqlite:///{path}"), durable=True)
        with engine.begin() as connection:
            assert connection.scalar(sa.text("PRAGMA journal_mode")) == "wal"
        engine.dispose()
        leaving.join()


def test_a_claim_and_a_report_are_four_round_trips_each(url, proxy):
    """What begins the transaction, two statements, and the commit."""
    heard: list[bytes] = []
    with Store(url, durable=False) as store:
        on = stage(store)
        on.open(target_games=12)
        store.report(first := on.claim("first"), result_of(first))
        proxy.decide = heard.append
        store.report(claim := on.claim("second"), result_of(claim))
        assert len(heard) == 8, heard
        assert [said[5:11] for said in heard][::4] == [b"BEGIN;"] * 2, heard


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

    proxy.decide = fall_silent
    process = subprocess.Popen(
        COMMANDS[name],
        cwd=tmp_path,
        env=environment(DATABASE_URL=url),
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    assert began_silence.wait(240)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=240)
    assert process.returncode == 130, said
    assert "Traceback" not in said and "defect" not in said
    assert time.monotonic() - began < 0.9 * postgresql.RESPONSE_SECONDS
