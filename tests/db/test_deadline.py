"""Every call to PostgreSQL ends within its deadline, even if a proxy acknowledges what it is sent.

The limits are the product's own, and a faster clock measures them where only their end is awaited.
"""

import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg2
import pytest
import sqlalchemy as sa
from asking import Store
from console import environment, master, worker, write_project
from proxy import Proxy

from spsa.db import postgresql
from spsa.db.database import create_engine, translated
from spsa.db.url import parse_url
from spsa.errors import DatabaseUnreachable


@pytest.fixture
def proxy(postgresql_url: str) -> Iterator[Proxy]:
    with Proxy(parse_url(postgresql_url).port or 5432) as made:
        yield made


@pytest.fixture
def url(postgresql_url: str, proxy: Proxy) -> str:
    """The database behind the proxy."""
    parsed = parse_url(postgresql_url).set(host="127.0.0.1", port=proxy.port)
    return parsed.render_as_string(hide_password=False)


class Clock:
    """Measures the deadlines: as the real clock, and faster while `is_fast`.

    So a response that has to come has all the time that the product gives it, on any machine.
    """

    def __init__(self) -> None:
        self._since = (0.0, time.monotonic(), 1.0)

    def __call__(self) -> float:
        shown, at, speed = self._since
        return shown + (time.monotonic() - at) * speed

    def run(self, *, fast: bool) -> None:
        self._since = (self(), time.monotonic(), FAST if fast else 1.0)


FAST = 40.0
CONNECTING = rf"no response within {postgresql.CONNECT_SECONDS:g} s"
RESPONDING = rf"no response within {postgresql.RESPONSE_SECONDS:g} s"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(postgresql, "monotonic", made)
    return made


@pytest.mark.parametrize("way", ["stall", "swallow"])
def test_a_silent_server_is_given_up_on_old_and_new_connections(
    proxy: Proxy, url: str, way: str, clock: Clock
) -> None:
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


def test_a_server_that_is_silent_in_the_middle_of_a_transaction(
    proxy: Proxy, url: str, clock: Clock
) -> None:
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


def test_the_server_itself_ends_a_long_statement(
    postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_a_program_that_is_stopping_waits_less(
    proxy: Proxy, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql, "STOPPING_SECONDS", 0.2)
    stopping = threading.Event()
    with Store(url, is_stopping=stopping.is_set) as store:
        proxy.stall()
        threading.Timer(0.3, stopping.set).start()
        with pytest.raises(DatabaseUnreachable, match=r"no response within 0\.2 s"):
            store.runs()


def test_a_server_that_only_reads_now_may_soon_write(postgresql_url: str) -> None:
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


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Children take Ctrl-C, also where these tests run in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("messages", [1, 6], ids=["connecting", "asking"])
@pytest.mark.parametrize("name", COMMANDS)
def test_ctrl_c_ends_a_command_whose_server_is_silent(
    name: str, messages: int, proxy: Proxy, url: str, tmp_path: Path
) -> None:
    """Well within any of the product's own deadlines, of which none is shortened here."""
    write_project(tmp_path)
    silence = SilenceAt(proxy, messages)
    process = subprocess.Popen(
        COMMANDS[name],
        cwd=tmp_path,
        env=environment(DATABASE_URL=url),
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    assert silence.began.wait(240)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=240)
    assert process.returncode == 130, said
    assert "Traceback" not in said and "defect" not in said
    assert time.monotonic() - began < 0.9 * postgresql.RESPONSE_SECONDS


class SilenceAt:
    """The server gets nothing from the n-th message on."""

    def __init__(self, proxy: Proxy, message: int) -> None:
        self.began = threading.Event()
        self._proxy, self._left = proxy, message
        proxy.decide = self._hear

    def _hear(self, _said: bytes) -> None:
        self._left -= 1
        if self._left == 0:
            self._proxy.swallow()
            self.began.set()
