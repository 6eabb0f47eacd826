"""Watches a run beside its master: records alarms and news as events, and sends messages.

A thread with a database connection of its own: whatever it waits for, the master's loop goes on.
What has been told is in the events, so another master of the run does not tell it again.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from shlex import quote

from spsa.config.settings import Config
from spsa.db import Store
from spsa.db.run_queries import ALARM, ALARM_OVER, NEWS, VERDICT
from spsa.db.run_view import MasterLease
from spsa.db.tables import Run
from spsa.errors import DatabaseUnreachable, MasterLeaseLost, TuningError
from spsa.lifecycle import IterationStatus
from spsa.master.session import master_of
from spsa.master.verdict import Advice
from spsa.report.alarms import look
from spsa.report.events import ALARMS, Alarm, AlarmKey, AlarmKind, News, told_alarms
from spsa.report.matches import ThetaChoice
from spsa.report.notify import Address, Message, Notifier
from spsa.report.status import Status, progress
from spsa.report.table import record
from spsa.report.workers import MachineReport, compared_machines
from spsa.text import FAILURE_LENGTH, plural, printable

_LOOK_SECONDS = 15.0
_MACHINE_SECONDS = 300.0
_SELDOM = 5.0  # times as long as an alarm has to last, if that is shorter
_MAX_EVENTS = 10_000
_COST = 10.0  # looks take a tenth of the time at most
_LEAVE_SECONDS = 5.0
_LONG_SECONDS = 3_600.0  # for a worker to come back

_LINES, _LINE = 5, 270  # of a message, and characters of each

log = logging.getLogger("spsa.watch")


def changes(
    since: dict[AlarmKey, float],
    told: Mapping[AlarmKey, Alarm],
    alarms: Sequence[Alarm],
    now: float,
    after: float,
) -> list[tuple[str, Alarm]]:
    """The alarms of a look that have begun, as `ALARM`, and those told that are over.

    A change counts once it has lasted `after` seconds, the lack of workers an hour; `since` has
    when each was seen first, until then.
    """
    present = {alarm.key: alarm for alarm in alarms}
    differ = present.keys() ^ told.keys()
    changed = {key: since.get(key, now) for key in (*present, *told) if key in differ}
    seldom = {key: max(after, _LONG_SECONDS) for key in present if key[0] == AlarmKind.NO_WORKER}
    due = [key for key, first in changed.items() if now - first >= seldom.get(key, after)]
    since.clear()
    since.update({key: first for key, first in changed.items() if key not in due})
    return [(ALARM, present[k]) if k in present else (ALARM_OVER, told[k]) for k in due]


def news_of(
    status: Status, *, is_ending: bool, follows: int = 0, against: str = "the start"
) -> Iterator[News]:
    """What each of the last validations of a run measured, then that it has ended.

    `is_ending`: nothing more is played, so a sequential test that is not decided stays so.
    Otherwise a match of `follows` games `against` this may follow the end of the tuning.
    """
    run, (measured, verdict, *_) = status.run, status.answer_lines()
    for match in status.validations:
        is_last = match is status.validations[-1] and run.finished_at is None
        goes_on = match.iteration.is_background and is_last
        is_open = match.test is not None and match.test["accepted"] is None and not is_ending
        if match.iteration.status is IterationStatus.COMPLETE and not is_open and not goes_on:
            number = str(match.iteration.iteration_number)
            yield News("validation", number, "; ".join(match.sentences()), verdict)
    if run.finished_at is not None and run.tunes:
        reason = f", {run.reason}" if run.reason else ""
        ended = (one for one in status.validations if not one.iteration.is_open)
        its = (ThetaChoice.FINAL, run.applied)
        is_played = any((m.iteration.asked.theta, m.iteration.opened_on) == its for m in ended)
        if follows and not is_ending and not is_played:
            then = f"a match of {plural(follows, 'game')} against {against} follows"
            measured = then if status.measured.elo is None else f"{measured}; {then}"
        found = f"{progress(run)}, {plural(status.totals.tally.games, 'game')}{reason}; {measured}"
        advice = "; ".join(status.ends())
        yield News(str(run.status), run.finished_at.isoformat(), found, advice or verdict)


def text_of(run: str, lines: Sequence[str]) -> str:
    """The run, the lines, and what shows more, in less than 2,000 characters."""
    told, more = [*lines], len(lines) - _LINES
    if more > 0:
        told[_LINES:] = [f"{more} more"]
    last = f"see `spsa-master status --run {quote(run)}`"
    return "\n".join(printable(line, _LINE) for line in (f"run {run}", *told, last))


@dataclass(slots=True)
class RunWatch:
    """Looks at a run again and again until `stopping` is set or another master holds the run."""

    store: Store
    config: Config
    master_lease: MasterLease
    stopping: threading.Event
    tell: Callable[[Message], None]
    _since: dict[AlarmKey, float] = field(default_factory=dict)
    _machines: Sequence[MachineReport] = ()
    _compared_at: float = -_MACHINE_SECONDS

    def run(self, name: str) -> None:
        """Look until the end and once more; no defect of an alarm ends the master's run."""
        seconds = min(_LOOK_SECONDS, max(0.2, self.config.notify.after / 2))
        is_ending = False
        while not is_ending:
            is_ending, began = self.stopping.is_set(), time.monotonic()
            try:
                self._look(self.store.run(name), began, is_ending=is_ending)
            except MasterLeaseLost:
                return
            except DatabaseUnreachable:
                log.debug("the database is not reachable")  # the master says so
            except Exception as error:  # noqa: BLE001 - see above
                log.warning("the run could not be looked at: %s: %s", type(error).__name__, error)
            self.stopping.wait(max(seconds, _COST * (time.monotonic() - began)))

    def _look(self, run: Run, now: float, *, is_ending: bool) -> None:
        machines = self._machines if is_ending else self._machines_at(run, now)
        found = look(self.store, run, machines)
        verdict = found.verdict
        if verdict.more is not None and (verdict.advice is Advice.STOP) != found.said_stop:
            detail = {"advice": verdict.advice, "results": run.applied, "reason": verdict.reason}
            self.store.record(self.master_lease, [(VERDICT, detail)])
        self._tell_alarms(run, now, found.alarms)
        wanted = self.config.validation
        told = {} if wanted.against is None else {"against": wanted.against.name}
        self._tell_news(run, news_of(found, is_ending=is_ending, follows=wanted.games, **told))

    def _machines_at(self, run: Run, now: float) -> Sequence[MachineReport]:
        """The last comparison of the machines, which is seldom."""
        if now - self._compared_at >= min(_MACHINE_SECONDS, _SELDOM * self.config.notify.after):
            self._machines = compared_machines(self.store, run)
            self._compared_at = now
            if self.config.fleet.set_aside:
                set_aside(self.store, run, self._machines)
        return self._machines

    def _tell_alarms(self, run: Run, now: float, alarms: Sequence[Alarm]) -> None:
        told, after = told_alarms(self.store, run), self.config.notify.after
        if found := changes(self._since, told, alarms, now, after):
            lines = [
                f"alarm: {alarm}" if kind == ALARM else f"over: {alarm.subject}: {alarm.found}"
                for kind, alarm in found
            ]
            first = next((str(alarm.kind) for kind, alarm in found if kind == ALARM), "over")
            self._record(run, found, first, lines)

    def _tell_news(self, run: Run, found: Iterator[News]) -> None:
        events = self.store.events(run.id, _MAX_EVENTS, kinds=[NEWS])
        told = [(event.detail.get("kind"), event.detail.get("subject")) for event in events]
        for one in found:
            if (one.kind, one.subject) not in told:
                lines = [f"{one.kind}: {one.found}", one.advice]
                self._record(run, [(NEWS, one)], one.kind, lines)

    def _record(
        self, run: Run, events: Sequence[tuple[str, Alarm | News]], kind: str, lines: list[str]
    ) -> None:
        """Write events first: what cannot be sent is not sent again and again."""
        details = [(event, record(ALARMS, one)) for event, one in events]
        self.store.record(self.master_lease, details)
        self.tell(Message(run=run.name, kind=kind, text=text_of(run.name, lines)))


def set_aside(store: Store, run: Run, reports: Sequence[MachineReport]) -> None:
    """Give suspect machines no more batches, each once in a run: a person may release it."""
    actor = master_of(run)
    events = store.events(run.id, _MAX_EVENTS, kinds=["set_aside"])
    known = {
        event.detail.get("machine")
        for event in events
        if event.actor == actor and event.detail.get("sha256") is None
    }
    for one in reports:
        if one.is_suspect and one.machine not in known:
            reason = printable(f"it stands out: {one.reason}", FAILURE_LENGTH)
            if store.set_aside(one.machine, reason, actor):
                log.warning("machine %s is set aside: %s", one.machine, reason)


@contextmanager
def watching(
    config: Config, master_lease: MasterLease, run: str, told: Sequence[Address]
) -> Iterator[None]:
    """Watch a run in a thread while its master moves it, or plays a match."""
    stopping = threading.Event()

    def watch() -> None:
        try:
            with Store(config.database.url, is_stopping=stopping.is_set) as store:
                RunWatch(store, config, master_lease, stopping, notifier.tell).run(run)
        except TuningError as error:
            log.warning("the run is not watched: %s", error)

    with Notifier(told, _LEAVE_SECONDS) as notifier:
        thread = threading.Thread(target=watch, name="watch", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stopping.set()
            thread.join(_LEAVE_SECONDS)
