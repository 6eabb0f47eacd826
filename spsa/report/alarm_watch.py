"""Watches the alarms of a run beside its master: records them as events, and tells a command.

A thread with a database connection of its own: whatever it waits for, the master's loop goes on.
What has been told is in the events, so another master of the run does not tell it again.
"""

import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from spsa.config.settings import Config
from spsa.db import Store
from spsa.db.run_queries import ALARM, ALARM_OVER, VERDICT
from spsa.db.run_view import MasterLease
from spsa.db.tables import Run
from spsa.errors import DatabaseUnreachable, MasterLeaseLost, TuningError
from spsa.master.session import master_of
from spsa.master.verdict import Advice, Verdict
from spsa.report.alarms import with_alarms
from spsa.report.events import ALARMS, Alarm, AlarmKey, told_alarms
from spsa.report.machines import COMPARED, MachineReport, compared_machines
from spsa.report.status import said_stop, status
from spsa.report.table import record
from spsa.text import FAILURE_LENGTH, printable

_LOOK_SECONDS = 15.0
_MACHINE_SECONDS = 300.0
_SELDOM = 5.0  # times as long as an alarm has to last, if that is shorter
_MAX_EVENTS = 10_000
_COST = 10.0  # looks take a tenth of the time at most
_LEAVE_SECONDS = 5.0

COMMAND_SECONDS = 20.0
"""For the command that gets a message; it is then killed."""

_LINES, _LINE = 5, 300  # of a message, and characters of each

log = logging.getLogger("spsa.alarms")


def changes(
    since: dict[AlarmKey, float],
    told: Mapping[AlarmKey, Alarm],
    alarms: Sequence[Alarm],
    now: float,
    after: float,
) -> list[tuple[str, Alarm]]:
    """The alarms of a look that have begun, as `ALARM`, and those told that are over.

    A change counts once it has lasted `after` seconds; `since` has when each
    was seen first, until then.
    """
    present = {alarm.key: alarm for alarm in alarms}
    changed = {key: since.get(key, now) for key in present.keys() ^ told.keys()}
    due = [key for key, first in changed.items() if now - first >= after]
    since.clear()
    since.update({key: first for key, first in changed.items() if key not in due})
    return [(ALARM, present[k]) if k in present else (ALARM_OVER, told[k]) for k in due]


def message(run: str, changed: Sequence[tuple[str, Alarm]]) -> str:
    """The run, and a line for each alarm, in less than 2,000 characters."""
    lines = [
        f"alarm: {alarm}" if kind == ALARM else f"over: {alarm.subject}: {alarm.found}"
        for kind, alarm in changed
    ]
    if (more := len(lines) - _LINES) > 0:
        lines[_LINES:] = [f"{more} more: see `spsa-master status`"]
    return "\n".join(printable(line, _LINE) for line in (f"run {run}", *lines))


class AlarmWatch:
    """Looks at a run again and again until `stopping` is set or another master holds the run."""

    def __init__(
        self, store: Store, config: Config, master_lease: MasterLease, stopping: threading.Event
    ) -> None:
        self._store = store
        self._config = config
        self._master_lease = master_lease
        self._stopping = stopping
        self._since: dict[AlarmKey, float] = {}
        self._machines: Sequence[MachineReport] = ()
        self._compared_at = -_MACHINE_SECONDS

    def run(self, name: str) -> None:
        """Look until the end; no defect of an alarm ends the master's run."""
        seconds = min(_LOOK_SECONDS, max(0.2, self._config.alarms.after / 2))
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                self._look(self._store.run(name), began)
            except MasterLeaseLost:
                return
            except DatabaseUnreachable:
                log.debug("the database is not reachable")  # the master says so
            except Exception as error:  # noqa: BLE001 - see above
                log.warning("alarms could not be looked at: %s: %s", type(error).__name__, error)
            self._stopping.wait(max(seconds, _COST * (time.monotonic() - began)))

    def _look(self, run: Run, now: float) -> None:
        look = with_alarms(self._store, status(self._store, run), self._machines_at(run, now))
        self._record_verdict(run, look.verdict)
        self._record(run, now, look.alarms)

    def _record_verdict(self, run: Run, found: Verdict) -> None:
        """Write an event when it begins to say that the run should stop, and when it ends to."""
        stops = found.advice is Advice.STOP
        if found.more is not None and stops != said_stop(self._store, run):
            detail = {"advice": found.advice, "results": run.applied, "reason": found.reason}
            self._store.record(self._master_lease, [(VERDICT, detail)])

    def _machines_at(self, run: Run, now: float) -> Sequence[MachineReport]:
        """The last comparison of the machines, which is seldom."""
        if now - self._compared_at >= min(_MACHINE_SECONDS, _SELDOM * self._config.alarms.after):
            self._machines = compared_machines(self._store, run, COMPARED)
            self._compared_at = now
            if self._config.fleet.set_aside:
                set_aside(self._store, run, self._machines)
        return self._machines

    def _record(self, run: Run, now: float, alarms: Sequence[Alarm]) -> None:
        """Write events first: what cannot be sent is not sent again and again."""
        told, after = told_alarms(self._store, run), self._config.alarms.after
        found = changes(self._since, told, alarms, now, after)
        if not found:
            return
        told_now = [(kind, record(ALARMS, alarm)) for kind, alarm in found]
        self._store.record(self._master_lease, told_now)
        command = self._config.alarms.command
        if command and (failure := run_command(command, message(run.name, found))):
            log.warning("the command of [alarms] failed: %s", failure)


def run_command(command: str, text: str) -> str:
    """Run a shell command with the text as its input; why it failed, empty if it did not."""
    line, pipe = ["/bin/sh", "-c", command], subprocess.PIPE
    with subprocess.Popen(
        line, stdin=pipe, stdout=subprocess.DEVNULL, stderr=pipe, start_new_session=True
    ) as process:
        try:
            _, said = process.communicate(
                f"{text}\n".encode(errors="replace"), timeout=COMMAND_SECONDS
            )
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # with all that it started
            return f"it was killed after {COMMAND_SECONDS:g} s"
    if process.returncode == 0:
        return ""
    told = f"exit code {process.returncode} {said.decode(errors='replace').strip()}"
    return printable(told.strip(), _LINE)


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
def watching_alarms(config: Config, master_lease: MasterLease, run: str) -> Iterator[None]:
    """Watch the alarms of a run in a thread while its master moves it."""
    stopping = threading.Event()

    def watch() -> None:
        try:
            with Store(config.database.url, is_stopping=stopping.is_set) as store:
                AlarmWatch(store, config, master_lease, stopping).run(run)
        except TuningError as error:
            log.warning("alarms are not watched: %s", error)

    thread = threading.Thread(target=watch, name="alarms", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join(_LEAVE_SECONDS)
