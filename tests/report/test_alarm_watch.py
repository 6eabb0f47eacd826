"""Alarms are told once: to a real command, and by events in a real database."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from asking import Store
from builders import Stage, space_from, stage

from spsa.config import load_config
from spsa.config.settings import AlarmsSection, Config
from spsa.db.run_queries import ALARM, ALARM_OVER, VERDICT
from spsa.master.verdict import Filters
from spsa.report import alarm_watch
from spsa.report.alarm_watch import AlarmWatch, changes, message, run_command
from spsa.report.events import Alarm, AlarmKey, AlarmKind, told_alarms
from spsa.report.status import status

SPACE = space_from("[margin]\nvalue = 200\nmin = 0\nmax = 400\nstep = 20\n")


def alarm(subject: str = "margin") -> Alarm:
    return Alarm(AlarmKind.AT_BOUND, subject, "theta is 400, at its max 400")


def test_an_alarm_counts_once_it_has_lasted_and_is_over_once_it_is_gone_for_as_long() -> None:
    since: dict[AlarmKey, float] = {}
    told: dict[AlarmKey, Alarm] = {}
    one = alarm()

    def look(now: float, *alarms: Alarm) -> list[tuple[str, Alarm]]:
        found = changes(since, told, alarms, now, after=10.0)
        for kind, each in found:
            told.pop(each.key, None)
            if kind == ALARM:
                told[each.key] = each
        return found

    assert not look(0.0, one) and not look(9.0, one)
    assert look(10.0, one) == [(ALARM, one)]
    assert not look(11.0, replace(one, found="theta is 399")), "the same alarm"
    assert not look(20.0) and not look(25.0, one) and not look(26.0), "it came back"
    assert look(36.0) == [(ALARM_OVER, one)]
    assert not look(37.0, one) and not look(40.0) and not look(47.0, one), "never for long enough"


def test_a_message_fits_whatever_it_is_about() -> None:
    text = message("nightly", [(ALARM, alarm("a\n\x1b[2J")), (ALARM_OVER, alarm("b"))])
    assert text.splitlines() == [
        "run nightly",
        rf"alarm: a\n\x1b[2J: theta is 400, at its max 400; {alarm().advice}",
        "over: b: theta is 400, at its max 400",
    ]
    many = message("r" * 999, [(ALARM, alarm("x" * 999)) for _ in range(50)])
    assert len(many) < 2000 and many.splitlines()[-1].startswith("45 more")


def test_a_command_gets_the_message_and_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_command(f"cat > '{tmp_path}/got'", "run x\nalarm: ½") == ""
    assert (tmp_path / "got").read_text() == "run x\nalarm: ½\n"
    failure = run_command("printf 'no\\033[2Jmail' >&2; exit 3", "text")
    assert failure == r"exit code 3 no\x1b[2Jmail"
    assert run_command("exit 0", "text" * 99_999) == "", "it reads nothing"
    monkeypatch.setattr(alarm_watch, "COMMAND_SECONDS", 0.3)
    os.mkfifo(tmp_path / "alive")
    reader = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)
    failure = run_command(f"sleep 90 > '{tmp_path}/alive' & sleep 90", "text")
    assert "killed after 0.3 s" in failure

    def has_no_writer() -> bool:
        with suppress(BlockingIOError):
            return os.read(reader, 1) == b""
        return False

    until(has_no_writer, seconds=60)  # its children are killed too
    os.close(reader)


def config(folder: Path, url: str) -> Config:
    (folder / "config.toml").write_text(f"[database]\nurl = '{url}'\n[build]\nsource_path = 'x'\n")
    found = load_config(folder / "config.toml", {})
    return found.model_copy(update={"alarms": AlarmsSection(after=0.0)})


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


def until(is_so: Callable[[], object], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_verdict_to_stop_is_an_event_that_later_ones_lean_on(
    sqlite_store: Store, sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged = stage(sqlite_store, SPACE, 6, planned=9)

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


def test_machines_are_seldom_compared(
    sqlite_store: Store, sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged, compared = stage(sqlite_store), list[object]()
    monkeypatch.setattr(
        alarm_watch, "compared_machines", lambda *given: compared.append(given) or ()
    )
    section = {"alarms": AlarmsSection(after=60.0)}
    wanted = config(tmp_path, sqlite_url).model_copy(update=section)
    watch = AlarmWatch(sqlite_store, wanted, staged.master, threading.Event())
    for now in (1e6, 1e6 + 1, 1e6 + 2, 2e6):
        watch._machines_at(staged.run, now)
    assert len(compared) == 2


def test_masters_of_a_paused_run_tell_it_once(
    sqlite_store: Store, sqlite_url: str, tmp_path: Path
) -> None:
    staged, told = stage(sqlite_store, SPACE, 1, planned=9), tmp_path / "told"
    section = AlarmsSection(after=0.0, command=f"cat >> '{told}'")
    wanted = config(tmp_path, sqlite_url).model_copy(update={"alarms": section})
    sqlite_store.pause("first", "me", "lunch")
    with watched(staged, wanted):
        until(told.exists)
    with watched(staged, wanted):
        time.sleep(0.5)
        sqlite_store.resume("first", "me")
        until(lambda: "over" in told.read_text())
    assert told_alarms(sqlite_store, staged.run) == {}
    run, begun, again, over = told.read_text().splitlines()
    assert run == again == "run first"
    assert begun.startswith("alarm: first: it is paused: lunch; continue it with")
    assert over == "over: first: it is paused: lunch"
    kinds = [event.kind for event in sqlite_store.events(staged.run.id)]
    assert kinds[-4:] == ["paused", "alarm", "running", "alarm_over"]
