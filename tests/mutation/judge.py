"""A pytest plugin that lets the collected tests judge mutants, each in a process of its own.

First every test is run once without a mutant: how long it takes and which of the mutated places it
executes. A test that fails then, or takes too long, judges nothing. A mutant meets the tests that
reach it, the quickest first, and is killed by the first one that fails or that takes ten times as
long as it should and five seconds.

The processes are forked when the tests have been collected, so that none begins from nothing.
"""

import contextlib
import hashlib
import json
import os
import select
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import inf
from pathlib import Path
from random import Random
from typing import Any

import psycopg2
import pytest

from spsa.db.database import parse_url

from . import targets
from .targets import Mutant

TESTS = Path(__file__).resolve().parent.parent

QUICK_SECONDS = 25.0
"""A test that takes longer judges nothing."""

WHOLE_SECONDS = 900.0
"""As long as the tests together may take that judge one mutant, without it.

On a busy machine all tests that claim a batch take 800 s; a limit below lets mutants survive whose
test comes last.
"""

LIMIT_FACTOR, LIMIT_SECONDS = 10.0, 5.0
AT_ONCE = 2


@dataclass(frozen=True, slots=True)
class Known:
    """What a test did without a mutant."""

    passed: bool
    seconds: float
    reached: Sequence[str]
    state: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a mutant.

    `killed`, `survived`, `equivalent` (not tried), or `invalid` where a database refuses it.
    """

    outcome: str
    by: str = ""
    why: str = ""
    seconds: float = 0.0
    state: str = ""


@dataclass
class _Child:
    """A process that runs tests and tells of each when it begins and how it ends."""

    pid: int
    pipe: int
    subject: Any
    began: float
    limit: float
    buffer: str = ""
    running: int | None = None
    lines: list[list[Any]] = field(default_factory=list)

    @property
    def late(self) -> bool:
        return time.monotonic() > self.limit


class Judge:
    """Takes the place of pytest's loop over the tests."""

    def __init__(
        self,
        folder: Path,
        wanted: Callable[[Mutant], bool],
        tell: Callable[[str], None],
        until: float = inf,
    ):
        self._folder = folder
        self._until = until
        shared = ["conftest.py", *sorted(f"support/{p.name}" for p in TESTS.glob("support/*.py"))]
        product = _of_all(TESTS.parent / name for name in ("spsa", "worker", "migrations"))
        self._shared = _digest(product, *shared)
        self._wanted = wanted
        self._tell = tell
        self._failure = ""
        self._kills: dict[str, Counter[str]] = {}
        self._template = ""
        self.verdicts: dict[str, Verdict] = {}
        self.mutants: list[Mutant] = []
        self.judges = 0

    # pytest

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._items = session.items
        self._databases()
        self._known = self._baseline()
        self.judges = sum(self._judges(item.nodeid) for item in self._items)
        self.mutants = [m for m in targets.sample() if self._wanted(m)]
        self._judge_all()
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Any:
        """Databases were made before the first process was forked."""
        ready = {
            "sqlite_template": self._sqlite,
            "postgresql_server": self._server,
            "postgresql_template": self._template,
        }
        if fixturedef.argname not in ready:
            return None
        fixturedef.cached_result = (ready[fixturedef.argname], fixturedef.cache_key(request), None)
        return fixturedef.cached_result[0]

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed or report.skipped:
            self._failure = f"{report.when}: {str(report.longrepr).strip().splitlines()[-1]}"

    # databases

    def _databases(self) -> None:
        from spsa.db.migrate import upgrade

        self._server = os.environ["SPSA_TEST_DATABASE_URL"]
        self._sqlite = self._folder / "template.db"
        self._sqlite.unlink(missing_ok=True)
        upgrade(f"sqlite:///{self._sqlite}")
        self._template = "spsa_mutants"
        self._ask("postgres", f"CREATE DATABASE {self._template}")
        upgrade(f"{self._server}/{self._template}")

    def _ask(self, database: str, text: str) -> None:
        url = parse_url(f"{self._server}/{database}")
        connection = psycopg2.connect(
            host=url.host, port=url.port, user=url.username, dbname=url.database
        )
        connection.autocommit = True
        with contextlib.closing(connection), connection.cursor() as cursor:
            cursor.execute(text)

    # the tests without a mutant

    def _baseline(self) -> dict[str, Known]:
        kept = self._folder / "tests.json"
        known = self._kept_tests(kept)
        waiting = [n for n, item in enumerate(self._items) if item.nodeid not in known]
        shares = [waiting[n : n + 20] for n in range(0, len(waiting), 20)]

        def finish(child: _Child) -> None:
            for number, failure, seconds, reached in child.lines:
                name = self._items[number].nodeid
                known[name] = Known(not failure, seconds, reached, self._state_of(name))
            done = {line[0] for line in child.lines} | {child.running}
            left = [number for number in child.subject if number not in done]
            if child.running is not None:
                name = self._items[child.running].nodeid
                known[name] = Known(False, 9e9, (), self._state_of(name))
            if left:
                shares.append(left)
            kept.write_text(json.dumps({n: asdict(k) for n, k in known.items()}))
            self._tell(f"  {len(known)} of {len(self._items)} tests run without a mutant")

        self._crowd(shares, lambda share: self._fork(share, share, None), finish)
        return known

    def _kept_tests(self, kept: Path) -> dict[str, Known]:
        """What is known of tests that have not changed since."""
        stored = json.loads(kept.read_text()) if kept.exists() else {}
        names = {item.nodeid for item in self._items}
        known = {name: Known(**k) for name, k in stored.items() if name in names}
        return {name: k for name, k in known.items() if k.state == self._state_of(name)}

    def _state_of(self, name: str) -> str:
        """What decides how a test goes: the product, what tests share, and its own file."""
        return _digest(self._shared, name.partition("::")[0].removeprefix("tests/"))

    def _judges(self, name: str) -> bool:
        known = self._known.get(name)
        return known is not None and known.passed and known.seconds <= QUICK_SECONDS

    # mutants

    def _judge_all(self) -> None:
        kept = self._folder / "verdicts.jsonl"
        for line in kept.read_text().splitlines() if kept.exists() else ():
            name, verdict = json.loads(line)
            if Verdict(**verdict).state == self._state_for(Verdict(**verdict)):
                self.verdicts[name] = Verdict(**verdict)
        for mutant in self.mutants:
            if (why := targets.why_equivalent(mutant)) is not None:
                self.verdicts[mutant.name] = Verdict("equivalent", "", why)
        waiting = [m for m in self.mutants if m.name not in self.verdicts]
        Random(1).shuffle(waiting)  # so that those of a run that is cut short are a fair sample

        def finish(child: _Child) -> None:
            mutant, verdict = child.subject, self._verdict(child)
            verdict = replace(verdict, state=self._state_for(verdict))
            self.verdicts[mutant.name] = verdict
            if verdict.outcome == "killed":
                self._kills.setdefault(mutant.place, Counter())[verdict.by] += 1
            with kept.open("a") as file:
                file.write(json.dumps([mutant.name, asdict(verdict)]) + "\n")
            self._tell(f"{verdict.outcome} {verdict.seconds:.1f} s {mutant.name} | {verdict.by}")

        self._crowd(waiting, lambda m: self._fork(m, self._panel(m), m), finish)

    def _state_for(self, verdict: Verdict) -> str:
        """What a verdict holds for: the test that has killed a mutant, or all tests."""
        if verdict.outcome == "killed":
            return self._state_of(verdict.by)
        return _digest(*sorted({self._state_of(item.nodeid) for item in self._items}))

    def _panel(self, mutant: Mutant) -> list[int]:
        """The tests that judge a mutant.

        First what has killed its neighbours, then each test function once, the quickest first, then
        their other parameters.
        """
        kills = self._kills.get(mutant.place, Counter())
        reaching = [
            (self._known[item.nodeid].seconds, number)
            for number, item in enumerate(self._items)
            if self._judges(item.nodeid)
            and not set(mutant.reached).isdisjoint(self._known[item.nodeid].reached)
        ]
        seen: Counter[str] = Counter()
        ordered = []
        for takes, number in sorted(reaching):
            name = self._items[number].nodeid
            ordered.append((-kills[name], seen[name.partition("[")[0]], takes, number))
            seen[name.partition("[")[0]] += 1
        chosen, seconds = [], 0.0
        for _, _, takes, number in sorted(ordered):
            seconds += takes
            if seconds > WHOLE_SECONDS:
                break
            chosen.append(number)
        return chosen

    def _verdict(self, child: _Child) -> Verdict:
        seconds = time.monotonic() - child.began
        for line in child.lines:
            if line[0] == "invalid":
                return Verdict("invalid", "", line[1], seconds)
            if line[1]:
                return Verdict("killed", self._items[line[0]].nodeid, line[1][:200], seconds)
        if child.running is not None:
            why = "took too long" if child.late else "the process ended"
            return Verdict("killed", self._items[child.running].nodeid, why, seconds)
        if not child.lines and self._panel(child.subject):
            return Verdict("invalid", "", "the process ended before any test", seconds)
        return Verdict("survived", "", f"{len(child.lines)} tests", seconds)

    # processes

    def _crowd(
        self,
        waiting: Iterable[Any],
        start: Callable[[Any], _Child],
        finish: Callable[[_Child], None],
    ) -> None:
        """Have the processes run, two at a time, until the time is over; `waiting` may grow."""
        queue = waiting if isinstance(waiting, list) else list(waiting)
        children: list[_Child] = []
        while queue or children:
            if time.monotonic() > self._until:
                queue.clear()
            while queue and len(children) < AT_ONCE:
                children.append(start(queue.pop(0)))
            readable, _, _ = select.select([child.pipe for child in children], [], [], 0.2)
            for child in list(children):
                ended = child.pipe in readable and not self._heard(child)
                if ended or child.late:
                    _end(child)
                    children.remove(child)
                    finish(child)

    def _heard(self, child: _Child) -> bool:
        """Read what a process tells; whether it still lives."""
        got = os.read(child.pipe, 1 << 16).decode()
        child.buffer += got
        *lines, child.buffer = child.buffer.split("\n")
        for line in lines:
            said = json.loads(line)
            if said[0] == "begins":
                child.running = said[1]
                child.limit = time.monotonic() + self._limit(said[1])
            else:
                child.running = None
                child.lines.append(said)
        return bool(got)

    def _limit(self, number: int) -> float:
        known = getattr(self, "_known", {}).get(self._items[number].nodeid)
        if known is None:
            return 3 * QUICK_SECONDS
        return LIMIT_SECONDS + LIMIT_FACTOR * known.seconds

    def _fork(self, subject: Any, numbers: list[int], mutant: Mutant | None) -> _Child:
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            try:
                self._child(writing, numbers, mutant)
            finally:
                os._exit(0)
        os.close(writing)
        now = time.monotonic()
        return _Child(pid, reading, subject, now, now + 120)

    def _child(self, pipe: int, numbers: list[int], mutant: Mutant | None) -> None:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)

        def tell(*said: Any) -> None:
            os.write(pipe, (json.dumps(said) + "\n").encode())

        if mutant is not None:
            mutant.make()
            if (why := targets.refusal(mutant, self._sqlite)) is not None:
                tell("invalid", why)
                return
        reached = targets.watch() if mutant is None else set[str]()
        items = [self._items[number] for number in numbers]
        for number, item, following in zip(numbers, items, [*items[1:], None], strict=True):
            tell("begins", number)
            began, self._failure = time.monotonic(), ""
            reached.clear()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            tell(number, self._failure, time.monotonic() - began, sorted(reached))
            if mutant is not None and self._failure:
                break


def _end(child: _Child) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child.pid, signal.SIGKILL)
    os.waitpid(child.pid, 0)
    os.close(child.pipe)


def _digest(*parts: str) -> str:
    """Of texts, and of the files of tests that are among them."""
    digest = hashlib.sha256()
    for part in parts:
        file = TESTS / part
        digest.update(file.read_bytes() if part.endswith(".py") else part.encode())
    return digest.hexdigest()[:16]


def _of_all(folders: Iterable[Path]) -> str:
    """A digest of the sources in folders."""
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".py", ".sql"):
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
