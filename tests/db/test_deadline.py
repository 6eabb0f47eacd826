"""Every call to PostgreSQL ends within its deadline, also where somebody acknowledges for a hole.

The limits are the product's own, and time flies where only their end is waited for.
"""

import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg2
import pytest
import sqlalchemy as sa
from builders import LEASE, stage
from console import environment, master, worker, write_project
from proxy import Proxy

from spsa.db import deadline
from spsa.db.connection import create_engine, parse_url, translated
from spsa.db.migrate import upgrade
from spsa.db.store import open_store
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
    """Measures the deadlines. It is the real one, and a faster one once it `flies`.

    So whatever has to be answered has all the time that the product gives it, on any machine.
    """

    def __init__(self) -> None:
        self._since = (0.0, time.monotonic(), 1.0)

    def __call__(self) -> float:
        shown, at, speed = self._since
        return shown + (time.monotonic() - at) * speed

    def fly(self) -> None:
        self._since = (self(), time.monotonic(), FLIGHT)

    def walk(self) -> None:
        self._since = (self(), time.monotonic(), 1.0)


FLIGHT = 40.0
CONNECTING = rf"no response within {deadline.CONNECT_SECONDS:g} s"
ANSWERING = rf"no response within {deadline.RESPONSE_SECONDS:g} s"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(deadline, "monotonic", made)
    return made


def in_the_dark(proxy: Proxy, way: str) -> None:
    (proxy.stall if way == "stall" else proxy.swallow)()


@pytest.mark.parametrize("way", ["stall", "swallow"])
def test_a_hole_is_given_up_on_old_and_new_connections_and_left_behind(
    proxy: Proxy, url: str, way: str, clock: Clock
) -> None:
    with open_store(url) as store:
        assert store.runs() == []
        in_the_dark(proxy, way)
        clock.fly()
        for _ in range(3):  # a connection that rested, then new ones
            with pytest.raises(DatabaseUnreachable, match=CONNECTING):
                store.runs()
        clock.walk()
        proxy.end_silence()
        assert store.runs() == []


def test_a_hole_in_the_middle_of_a_transaction(proxy: Proxy, url: str, clock: Clock) -> None:
    engine = create_engine(parse_url(url), durable=True)
    refused = pytest.raises(DatabaseUnreachable, match=ANSWERING)
    with refused, translated(parse_url(url)), engine.begin() as connection:
        connection.execute(sa.text("SELECT 1"))
        proxy.swallow()
        clock.fly()
        connection.execute(sa.text("SELECT 2"))
    clock.walk()
    proxy.end_silence()
    with engine.begin() as connection:
        assert connection.scalar(sa.text("SELECT 3")) == 3
    engine.dispose()


def test_a_hole_under_a_worker_that_asks_again_with_the_same_identifiers(
    proxy: Proxy, url: str, clock: Clock
) -> None:
    """Whatever word of the conversation is the first that is not answered."""
    with open_store(url) as store:
        on = stage(store)
        on.open()
        for word in range(1, 4):
            holes = Holes(proxy, word, clock)
            claim_id = f"claim {word}"
            with suppress(DatabaseUnreachable):
                store.claim(claim_id, on.worker, LEASE)
            holes.end()
            claim = store.claim(claim_id, on.worker, LEASE)
            assert claim is not None
            store.release(claim)


def test_a_worker_asks_for_work_in_one_round_trip(proxy: Proxy, url: str) -> None:
    """And in another one finds out that a connection that rested is still there."""
    with open_store(url, durable=False) as store:
        on = stage(store)
        on.open()
        store.release(on.claim("before"))
        heard: list[bytes] = []
        proxy.decide = heard.append
        on.claim("a")
        assert len(heard) == 2, heard


def test_the_server_itself_ends_a_long_call(
    postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one of the owner, whose login has no limit of its own; its session keeps none."""
    monkeypatch.setattr(deadline, "STATEMENT_SECONDS", 3)  # enough for all but one on any machine
    with open_store(postgresql_url) as store:
        with pytest.raises(DatabaseUnreachable, match="statement timeout"), store._call() as call:
            call.execute(sa.text("SELECT pg_sleep(60)"))
        with store._call() as call:
            assert call.scalar(sa.text("SELECT current_setting('statement_timeout')")) == "3s"
            driver = call.connection.dbapi_connection
            with driver.cursor() as cursor:
                cursor.execute("SHOW statement_timeout")
                assert cursor.fetchone() == ("0",)


def test_a_server_that_never_says_a_word_is_no_server(clock: Clock) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        clock.fly()
        with pytest.raises(DatabaseUnreachable, match=CONNECTING):
            open_store(f"postgresql://u:hunter2@127.0.0.1:{port}/x")


def test_one_that_dribbles_is_given_up_too(url: str, clock: Clock) -> None:
    """The limit is on the answer, not on the silence before its next byte."""
    engine = create_engine(parse_url(url), durable=True)
    dribble = sa.text("SELECT repeat('x', 9000), pg_sleep(0.02) FROM generate_series(1, 500)")
    refused = pytest.raises(DatabaseUnreachable, match=ANSWERING)
    with refused, translated(parse_url(url)), engine.begin() as connection:
        clock.fly()
        connection.execute(dribble)
    engine.dispose()


def test_who_wants_to_leave_does_not_wait_as_long(
    proxy: Proxy, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadline, "STOPPING_SECONDS", 0.2)
    leaving = threading.Event()
    with open_store(url, is_stopping=leaving.is_set) as store:
        proxy.stall()
        threading.Timer(0.3, leaving.set).start()
        with pytest.raises(DatabaseUnreachable, match=r"no response within 0\.2 s"):
            store.runs()


def test_an_answer_in_time_is_waited_for_by_those_who_leave(url: str) -> None:
    with open_store(url, is_stopping=lambda: True) as store:
        assert store.runs() == []


@pytest.mark.slow
def test_an_upgrade_may_take_its_time_but_not_the_question_whether_it_is_due(
    proxy: Proxy, url: str, clock: Clock
) -> None:
    engine = create_engine(parse_url(url), durable=True)
    too_long = sa.text(f"SELECT pg_sleep({1.5 * deadline.RESPONSE_SECONDS / FLIGHT})")
    with engine.begin() as connection:
        connection.connection.dbapi_connection.timeout = 3600
        clock.fly()
        connection.execute(too_long)
        clock.walk()
    refused = pytest.raises(DatabaseUnreachable, match=ANSWERING)
    with refused, translated(parse_url(url)), engine.begin() as connection:
        clock.fly()
        connection.execute(sa.text("SELECT pg_sleep(60)"))
    engine.dispose()
    proxy.stall()
    with pytest.raises(DatabaseUnreachable, match=CONNECTING):
        upgrade(url)


def test_other_peoples_connections_wait_as_they_like(url: str, proxy: Proxy) -> None:
    open_store(url).close()
    theirs = psycopg2.connect(url.replace("+psycopg2", ""))
    assert deadline._limit(theirs) == float("inf")
    with theirs.cursor() as cursor:
        cursor.execute("SELECT 1")
    theirs.close()


def test_a_server_that_only_reads_now_is_waited_for(postgresql_url: str) -> None:
    """As a standby is, until it is the primary."""
    engine = create_engine(parse_url(postgresql_url), durable=True)
    refused = pytest.raises(DatabaseUnreachable, match="read-only")
    with refused, translated(parse_url(postgresql_url)), engine.begin() as connection:
        connection.execute(sa.text("SET TRANSACTION READ ONLY"))
        connection.execute(sa.text("DELETE FROM spsa_event"))
    engine.dispose()


COMMANDS = {
    "run": (master("run"), 130),
    "status": (master("status"), 130),
    "compete": (worker("--spsa", "-c", "1"), 130),
}


@pytest.fixture
def heard() -> Iterator[None]:
    """Children that hear Ctrl-C, also where these tests run in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("when", ["connecting", "asking"])
@pytest.mark.parametrize("name", COMMANDS)
def test_ctrl_c_ends_a_command_that_looks_into_a_hole(
    name: str, when: str, proxy: Proxy, url: str, tmp_path: Path
) -> None:
    """Well within any of the product's own deadlines, of which none is shortened here."""
    command, code = COMMANDS[name]
    write_project(tmp_path)
    hole = Hole(proxy, when)
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment(DATABASE_URL=url),
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    hole.wait()
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=240)
    assert process.returncode == code, said
    assert "Traceback" not in said and "defect" not in said
    assert time.monotonic() - began < 0.9 * deadline.RESPONSE_SECONDS


class Holes:
    """One that opens at the n-th thing that is said from now on."""

    def __init__(self, proxy: Proxy, word: int, clock: Clock) -> None:
        self._proxy, self._left, self._clock = proxy, word, clock
        proxy.decide = self._hear

    def _hear(self, said: bytes) -> None:
        self._left -= 1
        if self._left == 0:
            self._proxy.swallow()
            self._clock.fly()

    def end(self) -> None:
        self._clock.walk()
        self._proxy.decide = lambda said: None
        self._proxy.end_silence()


class Hole:
    """Opens under whoever has come as far as to connect, or to ask for something."""

    def __init__(self, proxy: Proxy, when: str) -> None:
        self._fell = threading.Event()
        self._proxy = proxy
        self._questions = 0
        self._enough = 1 if when == "connecting" else 12
        proxy.decide = self._hear

    def _hear(self, said: bytes) -> None:
        self._questions += 1
        if self._questions >= self._enough:
            self._proxy.swallow()
            self._proxy.stall()
            self._fell.set()

    def wait(self) -> None:
        assert self._fell.wait(240)
