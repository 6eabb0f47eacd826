"""Alarms and news of a run are told once, by messages and by events in a real database."""

import threading
import time
from contextlib import contextmanager
from dataclasses import replace

from builders import space_from, stage
from engines.faulty import wait_until

from spsa.algorithms.mixture import Mixture
from spsa.config import load_config
from spsa.config.settings import FleetSection, NotifySection
from spsa.db.run_queries import ALARM, ALARM_OVER, NEWS, VERDICT
from spsa.db.tables import Compared
from spsa.report import run_watch
from spsa.report.events import Alarm, AlarmKey, AlarmKind, told_alarms
from spsa.report.events import told as told_in
from spsa.report.notify import Message
from spsa.report.run_watch import RunWatch, changes, news_of, text_of
from spsa.report.status import status

OTHERS = {*AlarmKind, "over"}
SPACE = space_from("[margin]\nvalue = 200\nmin = 0\nmax = 400\nstep = 20\n")


def alarm(subject="margin"):
    return Alarm(AlarmKind.AT_BOUND, subject, "theta is 400, at its max 400")


def test_an_alarm_counts_once_it_has_lasted_and_is_over_once_it_is_gone_for_as_long():
    since: dict[AlarmKey, float] = {}
    told: dict[AlarmKey, Alarm] = {}
    one = alarm()

    def look(now, *alarms):
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
    missing = Alarm(AlarmKind.NO_WORKER, "first", "no worker plays")
    assert not look(100.0, missing) and not look(3_690.0, missing), "a worker may come back"
    assert look(3_701.0, missing) == [(ALARM, missing)]


def test_a_message_fits_whatever_it_is_about():
    text = text_of("night ly", ["alarm: a\n\x1b[2J: theta is 400", "over: b"])
    assert text.splitlines() == [
        "run night ly",
        r"alarm: a\n\x1b[2J: theta is 400",
        "over: b",
        "see `spsa-master status --run 'night ly'`",
    ]
    many = text_of("r" * 999, ["x" * 999] * 50)
    assert len(many) < 2000 and many.splitlines()[-2] == "45 more"
    assert text_of("r", ["x"] * 6).splitlines()[-2] == "1 more"


def config(folder, url, more=""):
    text = f"[database]\nurl = '{url}'\n[build]\nsource_path = 'x'\n{more}"
    (folder / "config.toml").write_text(text)
    found = load_config(folder / "config.toml", {})
    return found.model_copy(update={"notify": NotifySection(after=0.0)})


@contextmanager
def watched(staged, wanted, tell=lambda _: None):
    stopping = threading.Event()
    watch = RunWatch(staged.store, wanted, staged.master, stopping, tell)
    thread = threading.Thread(target=watch.run, args=(staged.run.name,))
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join(120)


def test_a_verdict_to_stop_is_an_event_that_later_ones_lean_on(
    sqlite_store, sqlite_url, tmp_path, monkeypatch
):
    staged = stage(sqlite_store, SPACE, 7, planned=9)

    def said():
        told = sqlite_store.events(staged.run.id, kinds=[VERDICT])
        return [event.detail["advice"] for event in told]

    monkeypatch.setattr("spsa.master.verdict.misfit", lambda *_: 1.0)
    with watched(staged, config(tmp_path, sqlite_url)):
        for more, expected in ((2.0, []), (0.9, ["stop"]), (1.4, ["stop"]), (1.6, ["go on"])):
            monkeypatch.setattr(Mixture, "elo_of", lambda *_, more=more: more)
            wait_until(lambda expected=expected: said()[-1:] == expected)
            assert status(sqlite_store, staged.now()).verdict.advice == (expected or ["go on"])[0]
    assert said() == ["stop", "go on"]


def test_a_master_that_leaves_does_not_wait_for_the_next_look(
    sqlite_store, sqlite_url, tmp_path, monkeypatch
):
    monkeypatch.setattr(run_watch, "_LEAVE_SECONDS", 60.0)
    began = time.monotonic()
    with run_watch.watching(config(tmp_path, sqlite_url), stage(sqlite_store).master, "first", ()):
        pass
    assert time.monotonic() < began + 30


def test_machines_are_seldom_compared(sqlite_store, sqlite_url, tmp_path, monkeypatch):
    staged, compared = stage(sqlite_store), list[object]()
    for name in ("compared_machines", "set_aside"):
        monkeypatch.setattr(run_watch, name, lambda *given: compared.append(given) or ())
    for after, looks in ((60.0, 4), (10.0, 6), (600.0, 4)):
        section = {"notify": NotifySection(after=after), "fleet": FleetSection(set_aside=True)}
        wanted = config(tmp_path, sqlite_url).model_copy(update=section)
        watch = RunWatch(sqlite_store, wanted, staged.master, threading.Event(), lambda _: None)
        compared.clear()
        for now in (1e6, 1e6 + 20, 1e6 + 51, 1e6 + 352):
            watch._machines_at(staged.run, now)
        assert len(compared) == looks


def test_masters_of_a_paused_run_tell_it_once(sqlite_store, sqlite_url, tmp_path, transcript):
    staged, told = stage(sqlite_store, SPACE, 1, planned=9), list[Message]()
    wanted = config(tmp_path, sqlite_url)
    sqlite_store.pause("first", "me", "lunch")
    with watched(staged, wanted, told.append):
        wait_until(lambda: told)
    with watched(staged, wanted, told.append):
        time.sleep(0.5)
        sqlite_store.resume("first", "me")
        wait_until(lambda: told[1:])
    assert told_alarms(sqlite_store, staged.run) == {}
    assert [(one.run, one.kind) for one in told] == [("first", "paused"), ("first", "over")]
    transcript.shows("a run is paused and resumed", "\n--\n".join(one.text for one in told))
    kinds = [event.kind for event in sqlite_store.events(staged.run.id)]
    assert kinds[-4:] == ["paused", "alarm", "running", "alarm_over"]


def test_the_end_and_each_measurement_are_told_once_by_all_masters_together(
    sqlite_store, sqlite_url, tmp_path, transcript
):
    staged, told = stage(sqlite_store, SPACE, 2, planned=2), list[Message]()
    wanted = config(tmp_path, sqlite_url)

    def news():
        return [(one.kind, one.text.splitlines()[1:]) for one in told if one.kind not in OTHERS]

    staged.validate(games=8, compared=Compared(theta="1", background=True))
    staged.validate(games=8, compared=Compared(sprt=(0.0, 5.0)))  # not decided
    with watched(staged, wanted, told.append):
        wait_until(news)
    now = news_of(status(sqlite_store, staged.now()), is_ending=True)
    assert [one.kind for one in now] == ["validation", "validation"]
    sqlite_store.finish(staged.master)
    ended = news_of(status(sqlite_store, staged.now()), is_ending=True)
    assert [one.kind for one in ended] == ["validation", "validation", "finished"]
    with watched(staged, wanted, told.append):
        pass
    lines = [line for _, text in news() for line in (*text, "--")]
    transcript.shows("a run ends with a match that is not decided", "\n".join(lines))
    for _ in "12":
        with watched(staged, wanted, told.append):
            time.sleep(0.3)
    assert len(news()) == 3
    written = sqlite_store.events(staged.run.id, kinds=[NEWS])
    assert [told_in(event)[:99] for event in written] == [lines[0][:99] for _, lines in news()]


def test_the_end_says_that_a_match_follows_until_it_has_measured(
    sqlite_store, sqlite_url, tmp_path
):
    staged, told = stage(sqlite_store, SPACE, 1, planned=1), list[Message]()
    sqlite_store.finish(staged.master)
    wanted = config(tmp_path, sqlite_url, "[validation]\ngames = 8\n")
    with watched(staged, wanted, told.append):
        wait_until(lambda: told)
    assert "a match of 8 games against the start follows" in told[0].text

    def ended(games, *, is_ending=False):
        now = status(sqlite_store, staged.now())
        return [*news_of(now, is_ending=is_ending, follows=games, against="r")][-1].found

    assert ended(8).endswith("8 games; a match of 8 games against r follows")
    for found in (ended(0), ended(8, is_ending=True)):
        assert "not measured: `spsa-master validate --run first` plays" in found
    staged.validate(games=8, compared=Compared(theta="1", background=True))
    assert ended(8).endswith("theta 1; a match of 8 games against r follows")
    staged.validate(games=8)
    assert ended(8).endswith("by 16 games of theta after 1 result")
