"""How an SQLite file is opened while others open it."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

import spsa.db.sqlite_file
from spsa.db.connection import create_engine, parse_url


@contextmanager
def written_by_another(path: Path) -> Iterator[sqlite3.Connection]:
    """Somebody is in the first transaction of a new file, which is not in WAL yet."""
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


def test_a_file_that_another_process_is_just_making_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "spsa.db"
    with written_by_another(path) as other:
        leaving = threading.Timer(0.3, other.execute, ["COMMIT"])
        leaving.start()
        assert mode_of(path) == "wal"
        leaving.join()


def test_it_is_not_waited_for_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "spsa.db"
    monkeypatch.setattr(spsa.db.sqlite_file, "BUSY_SECONDS", 0.2)
    with written_by_another(path), pytest.raises(sa.exc.OperationalError, match="locked"):
        mode_of(path)
