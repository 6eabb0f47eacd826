"""Connections: how an SQLite file is opened while others use it, and what a server is sent."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from asking import Store
from builders import result_of, stage
from proxy import Proxy
from shell import Shell

from spsa.db.database import create_engine
from spsa.db.url import parse_url


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


def test_a_claim_and_a_report_are_four_round_trips_each(server_store: Store, proxy: Proxy) -> None:
    """What begins the transaction, two statements, and the commit."""
    on = stage(server_store)
    on.open(target_games=12)
    server_store.report(first := on.claim("first"), result_of(first))
    heard: list[bytes] = []
    proxy.decide = heard.append
    server_store.report(claim := on.claim("second"), result_of(claim))
    assert len(heard) == 8, heard
    assert [said[5:11] for said in heard][::4] == [b"BEGIN;"] * 2, heard


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
