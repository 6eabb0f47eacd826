"""Reaching a database: what its URL means, and what becomes of one that does not answer."""

import socket
import threading

import pytest
import sqlalchemy as sa
from psycopg2 import extensions

from spsa import connection
from spsa.connection import create_engine, displayed, parse_url, translated
from spsa.errors import DatabaseUnreachable, IllegalTransition, InvalidInput, TablesMissing
from spsa.store import open_store


@pytest.mark.parametrize(
    ("text", "driver"),
    [
        ("postgres://u:p@box/tunes", "postgresql+psycopg2"),
        ("postgresql://u:p@box:5433/tunes", "postgresql+psycopg2"),
        ("sqlite:////somewhere/spsa.db", "sqlite"),
    ],
)
def test_a_url_names_its_driver(text, driver):
    assert parse_url(text).drivername == driver


@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        "mysql://u:hunter2@box/x",
        "sqlite://",
        "sqlite:///:memory:",
        "postgresql://u:hun@ter2@x/y",
    ],
)
def test_a_wrong_url_is_refused_and_not_quoted(text):
    with pytest.raises(InvalidInput) as refused:
        parse_url(text)
    assert "hun" not in str(refused.value)
    assert refused.value.exit_code == 2


def test_a_url_is_shown_without_its_secrets():
    shown = displayed(parse_url("postgresql://u:hunter2@box/x?sslpassword=hunter2"))
    assert "hunter2" not in shown
    assert "box" in shown


class Proxy:
    """Between a client and a server, until it is a hole: it takes everything and passes nothing."""

    def __init__(self, port: int) -> None:
        self._server = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.is_hole = False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._server))
            for way in ((client, server), (server, client)):
                threading.Thread(target=self._pass_on, args=way, daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                if not self.is_hole:
                    target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            return

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def proxied(postgresql_url):
    url = parse_url(postgresql_url)
    proxy = Proxy(url.port or 5432)
    yield proxy, url.set(host="127.0.0.1", port=proxy.port)
    proxy.close()


def test_a_server_that_vanished_behind_a_proxy_is_given_up_and_found_again(proxied, monkeypatch):
    proxy, url = proxied
    monkeypatch.setattr(connection, "ANSWER_SECONDS", 0.2)
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 0.2)
    text = url.render_as_string(hide_password=False)
    with open_store(text) as store:
        assert store.runs() == []
        proxy.is_hole = True
        for _ in range(2):  # on the connection there was, and on a new one
            with pytest.raises(DatabaseUnreachable, match=r"no answer within 0\.2 s"):
                store.runs()
        proxy.is_hole = False
        monkeypatch.setattr(connection, "ANSWER_SECONDS", 30)
        monkeypatch.setattr(connection, "CONNECT_SECONDS", 30)
        assert store.runs() == []


def test_an_upgrade_may_take_its_time(proxied, monkeypatch):
    _, url = proxied
    monkeypatch.setattr(connection, "ANSWER_SECONDS", 0.1)
    engine = create_engine(url, durable=True, create=True)
    with translated(url), engine.begin() as opened:
        assert opened.scalar(sa.text("SELECT 1 FROM pg_sleep(0.3)")) == 1
    engine.dispose()
    hurried = create_engine(url, durable=True)
    with pytest.raises(DatabaseUnreachable), translated(url), hurried.begin() as opened:
        opened.execute(sa.text("SELECT pg_sleep(0.3)"))


def test_a_server_that_only_reads_now_is_waited_for(postgresql_url):
    """As a standby does, until it is the primary."""
    url = parse_url(postgresql_url)
    engine = create_engine(url, durable=True)
    refused = pytest.raises(DatabaseUnreachable, match="read-only")
    with refused, translated(url), engine.begin() as opened:
        opened.execute(sa.text("SET TRANSACTION READ ONLY"))
        opened.execute(sa.text("DELETE FROM spsa_event"))
    engine.dispose()


def test_a_server_that_is_not_there_is_unreachable():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(DatabaseUnreachable) as told:
        open_store(f"postgresql://u:hunter2@127.0.0.1:{port}/x")
    assert "hunter2" not in str(told.value)
    assert told.value.exit_code == 5


def test_what_a_constraint_refuses_is_no_silence(database_url, sql):
    url = parse_url(database_url)
    engine = create_engine(url, durable=True)
    refused = pytest.raises(IllegalTransition, match="refused")
    with refused, translated(url), engine.begin() as opened:
        opened.execute(sa.text("INSERT INTO spsa_event (kind) VALUES ('x')"))
    engine.dispose()
    assert sql("SELECT * FROM spsa_event") == []


def test_an_sqlite_file_that_is_not_there_is_not_made(tmp_path):
    with pytest.raises(TablesMissing, match="no such file"):
        open_store(f"sqlite:///{tmp_path / 'none.db'}")
    assert list(tmp_path.iterdir()) == []


def test_an_sqlite_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DatabaseUnreachable, match="no folder"):
        open_store(f"sqlite:///{tmp_path / 'none' / 'spsa.db'}")


@pytest.mark.parametrize(("durable", "level"), [(True, 2), (False, 1)])
def test_an_sqlite_file_is_opened_as_the_protocol_needs_it(sqlite_url, durable, level):
    engine = create_engine(parse_url(sqlite_url), durable=durable)
    with engine.begin() as opened:
        pragmas = {
            name: opened.scalar(sa.text(f"PRAGMA {name}"))
            for name in ("journal_mode", "foreign_keys", "synchronous")
        }
    assert pragmas == {"journal_mode": "wal", "foreign_keys": 1, "synchronous": level}
    engine.dispose()


def test_the_deadline_holds_for_every_connection_of_the_driver(postgresql_url):
    create_engine(parse_url(postgresql_url), durable=False)
    assert extensions.get_wait_callback() is connection._await_answer
