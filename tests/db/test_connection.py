"""Connections: how an SQLite file is opened while others use it, and what a server is sent."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from builders import result_of, stage
from proxy import Proxy
from shell import Shell

from spsa.db import Store, database, postgresql, sqlite_file
from spsa.db.database import create_engine, parse_url, translated
from spsa.errors import DatabaseUnreachable, IllegalTransition

LOG_LIMIT = 64 * 2**20


@contextmanager
def written_by_another(path: Path) -> Iterator[sqlite3.Connection]:
    """A process is in the first transaction of a new file, which is not in WAL yet."""
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("CREATE TABLE theirs (x)")
    other.execute("BEGIN IMMEDIATE")
    yield other
    other.close()


def mode_of(path: Path) -> str:
    engine = create_engine(parse_url(f"sqlite:///{path}"), durable=True)
    with engine.begin() as connection:
        mode = connection.execute(sa.text("PRAGMA journal_mode")).scalar_one()
    engine.dispose()
    return str(mode)


def test_a_new_file_waits_for_the_process_that_creates_it(tmp_path: Path) -> None:
    path = tmp_path / "spsa.db"
    with written_by_another(path) as other:
        leaving = threading.Timer(0.3, other.execute, ["COMMIT"])
        leaving.start()
        assert mode_of(path) == "wal"
        leaving.join()


def test_a_new_file_does_not_wait_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "spsa.db"
    monkeypatch.setattr(sqlite_file, "BUSY_SECONDS", 0.2)
    with written_by_another(path), pytest.raises(sa.exc.OperationalError, match="locked"):
        mode_of(path)


def test_the_log_of_a_file_stays_small_under_a_long_reader(sqlite_url: str, tmp_path: Path) -> None:
    """Two writers write twice the limit while one transaction reads, and one that begins later."""
    log, sizes = tmp_path / "spsa.db-wal", []
    reader, shell = create_engine(parse_url(sqlite_url), durable=False), Shell(sqlite_url)
    text = "INSERT INTO spsa_file (sha256, bytes) VALUES (:name, zeroblob(500000))"

    def write(writer: int) -> None:
        for n in range(LOG_LIMIT // 500_000):
            shell(text, name=f"{writer}{n:063}")
            sizes.append(log.stat().st_size)

    writers = [threading.Thread(target=write, args=(n,)) for n in range(2)]
    with reader.execution_options(reads_only=True).begin() as reading:
        assert reading.scalar(sa.text("SELECT count(*) FROM spsa_file")) == 0
        for writer in writers:
            writer.start()
        while max(sizes, default=0) < sqlite_file.LOG_BYTES:
            time.sleep(0.05)
        time.sleep(1.0)
        assert reading.scalar(sa.text("SELECT count(*) FROM spsa_file")) == 0
    for writer in writers:
        writer.join()
    assert len(sizes) == 2 * (LOG_LIMIT // 500_000)
    assert sqlite_file.LOG_BYTES < max(sizes) < LOG_LIMIT
    assert min(sizes[-20:]) <= sqlite_file.LOG_BYTES
    shell.close()
    reader.dispose()


@pytest.fixture
def proxy(postgresql_url: str) -> Iterator[Proxy]:
    with Proxy(parse_url(postgresql_url).port or 5432) as made:
        yield made


@pytest.fixture
def server_store(postgresql_url: str, proxy: Proxy) -> Iterator[Store]:
    """The store of a server behind the proxy."""
    parsed = parse_url(postgresql_url).set(host="127.0.0.1", port=proxy.port)
    with Store(parsed.render_as_string(hide_password=False), durable=False) as store:
        yield store


def test_a_claim_and_a_report_are_three_round_trips_each(server_store: Store, proxy: Proxy) -> None:
    """The first statement with what begins the transaction, the second one, and the commit."""
    on = stage(server_store)
    on.open(target_games=12)
    server_store.report(first := on.claim("first"), result_of(first))
    heard: list[bytes] = []
    proxy.decide = heard.append
    server_store.report(claim := on.claim("second"), result_of(claim))
    assert len(heard) == 6, heard
    assert [said[5:11] for said in heard] == [b"BEGIN;", b"UPDATE", b"COMMIT"] * 2, heard


def sessions_end(shell: Shell) -> int:
    """End all other sessions of the database, as a restart of the server does."""
    ended = shell(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        " AND backend_type = 'client backend'"
    )
    return int(ended[0][0])


def test_connections_that_the_server_closed_are_replaced(postgresql_url: str) -> None:
    shell = Shell(postgresql_url)
    with Store(postgresql_url) as store:
        for _ in range(3):
            assert store.runs() == []
            assert sessions_end(shell) == 1
            time.sleep(0.1)  # until this side has heard
        assert store.runs() == []
    shell.close()


def test_a_connection_that_was_idle_for_long_is_checked_first(
    server_store: Store, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Something on the way may have forgotten it without a word."""
    monkeypatch.setattr(postgresql, "CONNECT_SECONDS", 0.5)
    assert server_store.runs() == []
    proxy.swallow()
    monkeypatch.setattr(postgresql, "IDLE_SECONDS", 0.0)
    with pytest.raises(DatabaseUnreachable, match=r"no response within 0\.5 s"):
        server_store.runs()
    proxy.end_silence()
    assert server_store.runs() == []


def test_a_thread_that_waits_too_long_for_a_connection_may_ask_again(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "CONNECTIONS", 2)
    with Store(database_url) as store, ExitStack() as held:
        monkeypatch.setattr(store._engine.pool, "_timeout", 0.1)
        for _ in range(2):
            held.enter_context(store._read()).execute(sa.text("SELECT 1"))
        with pytest.raises(DatabaseUnreachable, match="all 2 connections of this program are in"):
            store.runs()
        held.close()
        assert store.runs() == []


def test_a_transaction_that_begins_with_many_rows_is_one(database_url: str) -> None:
    url = parse_url(database_url)
    engine = create_engine(url, durable=True)
    insert = sa.text("INSERT INTO spsa_file (sha256, bytes) VALUES (:name, '')")
    rows = [{"name": letter * 64} for letter in "ab"]
    with pytest.raises(IllegalTransition), translated(url), engine.begin() as connection:
        connection.execute(insert, rows)
        connection.execute(insert, rows[1:])
    with engine.begin() as connection:
        assert connection.scalar(sa.text("SELECT count(*) FROM spsa_file")) == 0
        connection.execute(insert, rows)
    with engine.begin() as connection:
        assert connection.scalar(sa.text("SELECT count(*) FROM spsa_file")) == 2
    engine.dispose()
