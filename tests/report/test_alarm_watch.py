"""Alarms reach somebody: a real HTTP server, real commands, events in a real database."""

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest
from builders import Stage, stage
from tuned import space_from, tuned
from tuner import Tuner
from uci_tuner import uci_tuner

from spsa.config import Config, load_config
from spsa.config.settings import AlarmsSection
from spsa.db import Store
from spsa.db.run_queries import ALARM, ALARM_OVER, VERDICT
from spsa.master.verdict import Filters
from spsa.report import alarm_messages
from spsa.report.alarm import Alarm, AlarmKey, AlarmKind, told_alarms
from spsa.report.alarm_messages import AlarmChanges, message, send
from spsa.report.alarm_watch import AlarmWatch, changes, of_disks
from spsa.report.alarms import with_alarms
from spsa.report.status import status

SPACE = space_from("[margin]\nvalue = 200\nmin = 0\nmax = 400\nstep = 20\n")


def alarm(subject: str = "margin", kind: AlarmKind = AlarmKind.AT_BOUND) -> Alarm:
    return Alarm(
        kind=kind, subject=subject, found="theta is 400, at its max 400", advice="widen it"
    )


@dataclass
class Server:
    """Answers POSTs with a status, and keeps what it got."""

    url: str = ""
    status: int = 200
    posts: list[tuple[str, str, str]] = field(default_factory=list)  # path, type, body


@contextmanager
def listening(**over: object) -> Iterator[Server]:
    server = Server(**over)  # type: ignore[arg-type]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            server.posts.append((self.path, self.headers["Content-Type"], body))
            self.send_response(server.status)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def do_GET(self) -> None:
            raise AssertionError("a redirect was followed")

        def log_message(self, *_: object) -> None: ...

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listener.daemon_threads = True
    thread = threading.Thread(target=listener.serve_forever)
    thread.start()
    server.url = f"http://127.0.0.1:{listener.server_address[1]}/secret-topic"
    try:
        yield server
    finally:
        listener.shutdown()
        listener.server_close()
        thread.join()


def test_an_alarm_counts_once_it_has_lasted_and_is_over_once_it_is_gone_for_as_long() -> None:
    since: dict[AlarmKey, float] = {}
    told: dict[AlarmKey, Alarm] = {}
    one = alarm()

    def look(now: float, *alarms: Alarm) -> AlarmChanges:
        found = changes(since, told, alarms, now, after=10.0)
        told.update({begun.key: begun for begun in found.begun})
        for over in found.over:
            del told[over.key]
        return found

    assert not look(0.0, one) and not look(9.0, one)
    assert look(10.0, one) == AlarmChanges([one], [])
    assert not look(11.0, replace(one, found="theta is 399")), "the same alarm"
    assert not look(20.0) and not look(25.0, one) and not look(26.0), "it came back"
    assert look(36.0) == AlarmChanges([], [one])
    assert not look(37.0, one) and not look(40.0) and not look(47.0, one), "never for long enough"


def test_a_message_fits_whatever_it_is_about() -> None:
    text = message("nightly", AlarmChanges([alarm("a\n\x1b[2J")], [alarm("b")]))
    assert text.splitlines() == [
        "run nightly",
        r"alarm: a\n\x1b[2J: theta is 400, at its max 400; widen it",
        "over: b: theta is 400, at its max 400",
    ]
    many = message("r" * 999, AlarmChanges([alarm("x" * 999) for _ in range(50)]))
    assert len(many) < 1600 and many.splitlines()[-1].startswith("47 more")


@pytest.mark.parametrize(
    ("format_", "content", "expected"),
    [
        ("text", "text/plain; charset=utf-8", "run <!all> & ½"),
        ("slack", "application/json", {"text": "run &lt;!all&gt; &amp; ½"}),
        (
            "discord",
            "application/json",
            {"content": "run <!all> & ½", "allowed_mentions": {"parse": []}},
        ),
    ],
)
def test_a_post_has_the_body_that_the_service_takes(
    format_: str, content: str, expected: object
) -> None:
    with listening() as server:
        assert list(send(AlarmsSection(url=server.url, format=format_), "run <!all> & ½")) == []
    ((path, content_type, body),) = server.posts
    assert (path, content_type) == ("/secret-topic", content)
    assert (body if format_ == "text" else json.loads(body)) == expected


def test_what_fails_is_told_without_the_address() -> None:
    for code in (500, 302):
        with listening(status=code) as server:
            (failure,) = send(AlarmsSection(url=server.url), "text")
        assert failure == f"the POST to 127.0.0.1 failed: status {code}"
    (failure,) = send(AlarmsSection(url=server.url), "text")  # nobody listens any more
    assert failure == "the POST to 127.0.0.1 failed: NewConnectionError"


def test_a_command_gets_the_message_and_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    got = tmp_path / "got"
    assert list(send(AlarmsSection(command=f"cat > '{got}'"), "run x\nalarm: ½")) == []
    assert got.read_text() == "run x\nalarm: ½\n"
    (failure,) = send(AlarmsSection(command="printf 'no\\033[2Jmail' >&2; exit 3"), "text")
    assert failure == r"the command of [alarms] failed: exit code 3 no\x1b[2Jmail"
    assert list(send(AlarmsSection(command="exit 0"), "text" * 99_999)) == [], "it reads nothing"
    monkeypatch.setattr(alarm_messages, "SECONDS", 0.3)
    os.mkfifo(tmp_path / "alive")
    reader = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)
    (failure,) = send(AlarmsSection(command=f"sleep 90 > '{tmp_path}/alive' & sleep 90"), "text")
    assert "killed after 0.3 s" in failure

    def has_no_writer() -> bool:
        with suppress(BlockingIOError):
            return os.read(reader, 1) == b""
        return False

    until(has_no_writer, seconds=60)  # its children are killed too
    os.close(reader)


def test_a_nearly_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = {"total": 10**12, "free": 5 * 10**9}

    def found() -> list[Alarm]:
        return list(of_disks("nightly", [tmp_path / "gone", tmp_path]))

    def measured(folder: Path) -> SimpleNamespace:
        folder.stat()
        return SimpleNamespace(**usage)

    monkeypatch.setattr("shutil.disk_usage", measured)
    assert found() == []
    usage["free"] -= 1
    (one,) = found()
    assert one.kind is AlarmKind.DISK and one.subject == "nightly" and "5.00 GB" in one.found
    usage["total"] = 10**10
    assert found() == [], "5% of a small disk is enough"


def config(folder: Path, url: str, **alarms: object) -> Config:
    (folder / "config.toml").write_text(f"[database]\nurl = '{url}'\n[build]\nsource_path = 'x'\n")
    found = load_config(folder / "config.toml", {})
    return found.model_copy(update={"alarms": AlarmsSection(after=0.0, **alarms)})  # type: ignore[arg-type]


@contextmanager
def watched(staged: Stage, wanted: Config) -> Iterator[None]:
    stopping = threading.Event()
    watch = AlarmWatch(staged.store, wanted, staged.master, stopping)
    thread = threading.Thread(target=watch.run, args=(staged.run.name,))
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join(120)


def until(is_so: object, seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not is_so():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_verdict_to_stop_is_an_event_that_later_ones_lean_on(
    sqlite_store: Store, sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged = tuned(sqlite_store, SPACE, 6, planned=9)

    def said() -> list[str]:
        told = sqlite_store.events(staged.run.id, kinds=[VERDICT])
        return [event.detail["advice"] for event in told]

    monkeypatch.setattr(Filters, "misfit", lambda *_: 1.0)
    with watched(staged, config(tmp_path, sqlite_url)):
        for more, expected in ((2.0, []), (0.9, ["stop"]), (1.4, ["stop"]), (1.6, ["go on"])):
            monkeypatch.setattr(Filters, "elo_of", lambda *_, more=more: more)
            until(lambda expected=expected: said()[-1:] == expected)
            assert status(sqlite_store, staged.now()).verdict.advice == (expected or ["go on"])[0]
    assert said() == ["stop", "go on"]


def test_what_only_the_master_sees_is_shown_by_every_status(sqlite_store: Store) -> None:
    staged = stage(sqlite_store, space=SPACE.to_json(), theta={"margin": 200.0})
    full = {"kind": "disk", "subject": "first", "found": "1.00 GB are free", "advice": "make room"}

    def shown() -> list[str]:
        found = with_alarms(sqlite_store, status(sqlite_store, staged.now()))
        return [str(alarm) for alarm in found.alarms if alarm.kind is AlarmKind.DISK]

    later = {"kind": "of a later version"}
    sqlite_store.record(staged.master, [(ALARM, full), (ALARM, later)])
    assert shown() == ["first: 1.00 GB are free; make room"]
    sqlite_store.record(staged.master, [(ALARM_OVER, full)])
    assert shown() == [] and told_alarms(sqlite_store, staged.now()) == {}


@pytest.mark.slow
def test_a_master_tells_of_a_run_that_is_paused(tmp_path: Path, sqlite_url: str) -> None:
    tuner = uci_tuner(tmp_path / "run", sqlite_url, iterations=200)
    with listening() as server, (tuner.folder / "config.toml").open("a") as file:
        file.write(f"[alarms]\nafter = 1\nurl = '{server.url}'\ncommand = 'cat >> told'\n")
        file.flush()
        try:
            _told_once(tuner, server)
        finally:
            tuner.kill_all()


def _told_once(tuner: Tuner, server: Server) -> None:
    def told() -> list[str]:
        return [line for _, _, body in server.posts for line in body.splitlines()[1:]]

    master = tuner.master()
    tuner.wait_for_work()
    assert tuner.ask("pause").returncode == 0
    until(lambda: told() != [])
    master.terminate()
    assert tuner.ended(master) == 130
    tuner.master()
    assert tuner.ask("resume").returncode == 0
    until(lambda: len(told()) == 2)
    assert told()[0].startswith("alarm: small: it is paused")
    assert told()[1].startswith("over: small: it is paused")
    assert (tuner.folder / "told").read_text().count("it is paused") == 2
    asked = json.loads(tuner.ask("status", "--events", "--json").stdout)["events"]
    assert [e["kind"] for e in asked if "it is paused" in str(e)] == ["alarm", "alarm_over"]
