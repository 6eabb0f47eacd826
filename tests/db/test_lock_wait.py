"""An upgrade that another process keeps waiting: it says for whom, and ends."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg2
import pytest
from engines.faulty import wait_until

from spsa.cli import execute as master
from spsa.db import lock_wait, migrate, sqlite_file
from spsa.errors import DatabaseUnreachable

SECONDS = 1.5
SERVER_SECONDS = 4.0
"""In which a busy machine asks a server at least once who holds the lock."""
LOCKS = {
    "an upgrade": f"SELECT pg_advisory_lock({migrate._UPGRADE_LOCK})",
    "a table": "LOCK TABLE alembic_version IN ACCESS EXCLUSIVE MODE",
}


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(lock_wait, "WAIT_SECONDS", SERVER_SECONDS)
    monkeypatch.setattr(lock_wait, "_POLL_SECONDS", 0.1)
    monkeypatch.setattr(sqlite_file, "BUSY_SECONDS", SECONDS)


@contextmanager
def holding(url: str, statement: str) -> Iterator[int]:
    """A transaction of another program that holds a lock; its process in the server."""
    plain = url.replace("postgresql+psycopg2", "postgresql")
    with closing(psycopg2.connect(plain, application_name="night\x1bly dump")) as connection:
        connection.cursor().execute(statement)
        yield connection.get_backend_pid()


def needs_an_upgrade(url: str) -> None:
    plain = url.replace("postgresql+psycopg2", "postgresql")
    with psycopg2.connect(plain) as connection, connection.cursor() as cursor:
        cursor.execute("DROP VIEW spsa_progress")
    connection.close()


@pytest.mark.slow
@pytest.mark.parametrize("lock", LOCKS)
def test_who_holds_a_lock_is_named_while_it_waits_and_when_it_gives_up(
    lock, postgresql_url, tmp_path, monkeypatch, capsys
):
    needs_an_upgrade(postgresql_url)
    (tmp_path / "config.toml").write_text('[delivery]\nkind = "uci"\nengine = "x"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATABASE_URL", postgresql_url)
    began = time.monotonic()
    with holding(postgresql_url, LOCKS[lock]) as pid:
        assert master(["db", "upgrade"]) == 5
    assert SERVER_SECONDS <= time.monotonic() - began < 15 * SERVER_SECONDS
    heard = capsys.readouterr()
    assert heard.out == ""
    waiting, given_up = heard.err.splitlines()
    for line, words in ((waiting, "waiting for"), (given_up, "waited too long for")):
        assert f"{words} process {pid} of user " in line
        assert "application 'night" in line and "idle in transaction" in line
    assert master(["db", "upgrade"]) == 0
    assert capsys.readouterr().out == "upgraded\n"


def test_who_waits_goes_on_when_the_lock_is_free(postgresql_url, monkeypatch, capsys):
    monkeypatch.setattr(lock_wait, "WAIT_SECONDS", 60.0)
    needs_an_upgrade(postgresql_url)
    done = []
    with holding(postgresql_url, LOCKS["an upgrade"]):
        upgrade = threading.Thread(target=lambda: done.append(migrate.upgrade(postgresql_url)))
        upgrade.start()
        told = [""]
        wait_until(lambda: told.append(capsys.readouterr().err) or "waiting" in "".join(told))
        assert done == []
    upgrade.join(120)
    assert done == [True]
    told.append(capsys.readouterr().err)
    assert "".join(told).count("waiting for process") == 1


def test_nobody_is_told_of_a_wait_that_is_none(postgresql_url, capsys):
    needs_an_upgrade(postgresql_url)
    assert migrate.upgrade(postgresql_url) is True
    assert capsys.readouterr().err == ""


def test_an_sqlite_file_that_another_process_writes(sqlite_url, capsys):
    path = sqlite_url.removeprefix("sqlite:///")
    with sqlite3.connect(path, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        with pytest.raises(DatabaseUnreachable, match="waited too long for another process that"):
            migrate.upgrade(sqlite_url)
        assert SECONDS <= time.monotonic() - began < 40 * SECONDS
        assert capsys.readouterr().err.count("waiting for another process that writes it") == 1
        other.execute("ROLLBACK")
    other.close()
    assert migrate.upgrade(sqlite_url) is False
