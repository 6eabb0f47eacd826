"""The processes of a fleet, and what may be done to them; and what has to be true afterwards.

Whoever disturbs them is a test's own; every chance comes from SPSA_TEST_SEED.
"""

import multiprocessing
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

from fleet import ENDLESS, NAME, ProcessSettings, is_over, lead, play, start, undisturbed
from invariants import broken
from shell import Shell

from spsa.db.store import Store, open_store
from spsa.errors import DatabaseUnreachable, IllegalTransition
from spsa.history.doctor import check_run
from spsa.lifecycle import RunStatus

LONG = bool(os.environ.get("SPSA_TEST_LONG"))
SEED = int(os.environ.get("SPSA_TEST_SEED", 1))

context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(["fleet", "pytest"])

Kind = tuple[Callable[..., None], tuple[Any, ...]]


def _have_them_forked() -> None:
    """Start the server that forks them, with all loaded that they need: it looks for it here."""
    before = dict(os.environ)
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    try:
        forkserver.ensure_running()
    finally:
        os.environ.clear()
        os.environ.update(before)


def of_six(post: ProcessSettings) -> list[Kind]:
    """Four workers and two masters that compete."""
    return [(play, (post,))] * 4 + [(lead, (post, "m1")), (lead, (post, "m2"))]


class Processes:
    """Whoever is killed is replaced by another; nobody dies but by our hand."""

    def __init__(self, kinds: list[Kind], context: Any = context) -> None:
        _have_them_forked()
        self._context, self._kinds = context, kinds
        self._crew = [self._hired(kind) for kind in kinds]
        self.deaths = 0

    def __len__(self) -> int:
        return len(self._crew)

    def _hired(self, kind: Kind) -> Any:
        target, arguments = kind
        process = self._context.Process(target=target, args=arguments, daemon=True)
        process.start()
        return process

    def kill(self, place: int) -> None:
        """End somebody without a word (SIGKILL), and hire another."""
        if self._crew[place].is_alive():
            self._crew[place].kill()
            self._crew[place].join()
            self.deaths += 1
        self.check()
        self._crew[place] = self._hired(self._kinds[place])

    @contextmanager
    def held_up(self, places: list[int]) -> Iterator[None]:
        """Some who stand still meanwhile (SIGSTOP), and then go on as if nothing had been."""
        pids = [self._crew[place].pid for place in places]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def check(self) -> None:
        codes = [process.exitcode for process in self._crew]
        assert set(codes) <= {None, 0, -signal.SIGKILL}, codes

    def end(self) -> None:
        for process in self._crew:
            process.kill()
            process.join()


@dataclass(frozen=True, slots=True)
class RunningProcesses:
    """A fleet at work on a run, seen over a connection that nobody disturbs."""

    store: Store
    sql: Shell
    processes: Processes
    chance: random.Random

    def somebody(self) -> int:
        return self.chance.randrange(len(self.processes))

    def kill_somebody(self, within: float = 0.1) -> None:
        """After so many seconds at most."""
        time.sleep(self.chance.uniform(0, within))
        self.processes.kill(self.somebody())

    def kill_until(self, deaths: int) -> None:
        while self.processes.deaths < deaths:
            self.kill_somebody()

    def await_everybody(self, journal: Path, since: float) -> None:
        """Wait until each has had an answer after a moment; where nobody is ever replaced."""
        while not all_answered_since(journal, since, len(self.processes)):
            self.processes.check()
            time.sleep(0.05)

    def await_refusals(self, journal: Path, since: float, processes: int = 1) -> None:
        """Wait until so many have been told after a moment that the database does not answer."""
        while len(given_up_since(journal, since)) < processes:
            self.processes.check()
            time.sleep(0.05)

    def finish(self) -> None:
        """Let the run end with what is open by now, and everybody leave."""
        while insist(lambda: self.store.run(NAME)).max_iterations == ENDLESS:
            insist(lambda: _shorten(self.store))
        while not insist(lambda: is_over(self.store)):
            self.processes.check()
            time.sleep(0.02)


def _shorten(store: Store) -> None:
    opened = max((it.iteration_number for it in store.iterations(store.run(NAME).id)), default=0)
    with suppress(IllegalTransition):  # more were opened just now: asked again
        store.extend(NAME, "test", opened + 3)


def insist(ask: Callable[[], Any]) -> Any:
    """Ask until the database answers, which after a crash takes a moment."""
    while True:
        with suppress(DatabaseUnreachable):
            return ask()
        time.sleep(0.02)


@contextmanager
def working(url: str, kinds: list[Kind]) -> Iterator[RunningProcesses]:
    """A run that has no end yet, and its fleet; nobody is left of it afterwards."""
    with open_store(url) as store, closing(Shell(url)) as sql:
        start(store)
        processes = Processes(kinds)
        try:
            yield RunningProcesses(store, sql, processes, random.Random(SEED))
        finally:
            processes.end()


def assert_undisturbed(works: RunningProcesses) -> int:
    """That nothing was lost or doubled, and theta is what it had to be, to the bit; the games."""
    now = works.store.run(NAME)
    theta, tally = undisturbed(now.applied)
    told = f"SPSA_TEST_SEED={SEED}"
    assert now.status is RunStatus.FINISHED, told
    assert (now.theta, works.store.totals(now.id).tally) == (theta, tally), told
    assert broken(works.sql) == [], told
    assert [str(finding) for finding in check_run(works.store, now)] == [], told
    return tally.games


@dataclass(frozen=True, slots=True)
class Entry:
    """One call of the database by one process, as `fleet.Journal` wrote it down; seconds."""

    name: str
    began: float
    ended: float
    method: str
    outcome: str
    accepted: str

    @property
    def seconds(self) -> float:
        return self.ended - self.began


def entries(journal: Path) -> list[Entry]:
    """All that was written down; a line that a killed process did not finish is left out."""
    return [entry for path in journal.iterdir() for entry in _written(path.read_text())]


def all_answered_since(journal: Path, moment: float, processes: int) -> bool:
    """Whether so many have had an answer after a moment."""
    ends = [_written(path.read_text()[-2000:]) for path in journal.iterdir()]
    return processes == sum(
        any(e.ended > moment and e.outcome != "DatabaseUnreachable" for e in end) for end in ends
    )


def given_up_since(journal: Path, moment: float) -> set[str]:
    """Who was told after a moment that the database does not answer."""
    return {
        entry.name
        for path in journal.iterdir()
        for entry in _written(path.read_text()[-2000:])
        if entry.ended > moment and entry.outcome == "DatabaseUnreachable"
    }


def _written(text: str) -> list[Entry]:
    lines = [line.split() for line in text.splitlines()]
    return [
        Entry(name, float(began), float(ended), method, outcome, accepted)
        for name, began, ended, method, outcome, accepted in (x for x in lines if len(x) == 6)
    ]
