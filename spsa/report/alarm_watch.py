"""Watches the alarms of a run beside its master: records them as events, and tells a command.

A thread with a database connection of its own: whatever it waits for, the master's loop goes on.
What has been told is in the events, so another master of the run does not tell it again.
"""

import logging
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from spsa.config import Config
from spsa.db import Store
from spsa.db.run_queries import ALARM, ALARM_OVER, VERDICT
from spsa.db.run_view import MasterLease
from spsa.db.tables import Run
from spsa.db.url import parsed
from spsa.errors import DatabaseUnreachable, MasterLeaseLost, TuningError
from spsa.master.session import master_of
from spsa.master.verdict import Advice, Verdict
from spsa.report.alarms import with_alarms
from spsa.report.events import ALARMS, Alarm, AlarmKey, AlarmKind, told_alarms
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
_MIN_FREE, _SHARE_FREE = 5 * 10**9, 0.05

COMMAND_SECONDS = 20.0
"""For the command that gets a message; it is then killed."""

_LENGTH, _LINE = 1_500, 300  # characters of a message, and of a line: Discord takes 2,000

log = logging.getLogger("spsa.alarms")


@dataclass(frozen=True, slots=True)
class AlarmChanges:
    """The alarms that have begun, and those that are over."""

    begun: Sequence[Alarm] = ()
    over: Sequence[Alarm] = ()

    def __bool__(self) -> bool:
        return bool(self.begun or self.over)

    def message(self, run: str) -> str:
        """The run, and a line for each alarm as far as they fit."""
        lines = [
            *(f"alarm: {alarm}" for alarm in self.begun),
            *(f"over: {alarm.subject}: {alarm.found}" for alarm in self.over),
        ]
        text = f"run {printable(run, _LINE)}"
        for i, line in enumerate(lines):
            longer = f"{text}\n{printable(line, _LINE)}"
            if len(longer) > _LENGTH:
                return f"{text}\n{len(lines) - i} more: see `spsa-master status`"
            text = longer
        return text


def changes(
    since: dict[AlarmKey, float],
    told: Mapping[AlarmKey, Alarm],
    alarms: Sequence[Alarm],
    now: float,
    after: float,
) -> AlarmChanges:
    """What has begun and what is over, by the alarms of a look, and those that have been told.

    A change counts once it has lasted `after` seconds; `since` has when each
    was seen first, until then.
    """
    present = {alarm.key: alarm for alarm in alarms}
    changed = {key: since.get(key, now) for key in present.keys() ^ told.keys()}
    due = [key for key, first in changed.items() if now - first >= after]
    since.clear()
    since.update({key: first for key, first in changed.items() if key not in due})
    return AlarmChanges(
        begun=[present[key] for key in due if key in present],
        over=[told[key] for key in due if key in told],
    )


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
        seen = {alarm.key: alarm for alarm in look.alarms if alarm.kind is not AlarmKind.DISK}
        self._record(run, now, (*seen.values(), *of_disks(run.name, self._folders())))

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

    def _folders(self) -> list[Path]:
        """Where the master writes: its files, the binaries, and the database if it is a file."""
        config, url = self._config, parsed(self._config.database.url)
        file = [Path(str(url.database)).parent] if self._store.is_file else []
        return [config.path.resolve().parent, config.build.engines_path, *file]

    def _record(self, run: Run, now: float, alarms: Sequence[Alarm]) -> None:
        """Write events first: what cannot be sent is not sent again and again."""
        told, after = told_alarms(self._store, run), self._config.alarms.after
        found = changes(self._since, told, alarms, now, after)
        if not found:
            return
        begun = ((ALARM, record(ALARMS, alarm)) for alarm in found.begun)
        over = ((ALARM_OVER, record(ALARMS, alarm)) for alarm in found.over)
        self._store.record(self._master_lease, (*begun, *over))
        command = self._config.alarms.command
        if command and (failure := run_command(command, found.message(run.name))):
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


def of_disks(run: str, folders: Sequence[Path]) -> Iterator[Alarm]:
    """The first of these folders whose disk is nearly full: less than 5% and 5 GB are free."""
    for folder in folders:
        try:
            disk = shutil.disk_usage(folder)
        except OSError:
            continue
        if disk.free < min(_MIN_FREE, _SHARE_FREE * disk.total):
            found = f"{disk.free / 10**9:.2f} GB are free on the master's disk of {folder}"
            yield Alarm(AlarmKind.DISK, run, found)
            return


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
