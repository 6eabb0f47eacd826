"""How an engine is built by cargo: the dependencies once for a run, each side in a work copy."""

import json
import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from spsa.builds.cargo.build_key import BuildEnvironment, BuildSettings, Rendered
from spsa.builds.cargo.compiler import Compiled, Compiler
from spsa.builds.pinned import Pinned
from spsa.builds.subprocesses import Commands
from spsa.builds.tree import Entry, Tree, tree_at
from spsa.builds.work_copy import AHEAD_NS, WorkCopy

_STARTED = re.compile(r"^\s*Compiling \S+ v\S+(?: \((?P<place>[^)]*)\))?", re.MULTILINE)
_WAIT_SECONDS = 0.2


class SharedDependencies:
    """The target folder that new work copies of one run start from."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._first: tuple[WorkCopy, Path] | None = None
        self._compiled = threading.Event()

    @contextmanager
    def for_build(
        self, work_copy: WorkCopy, target: Path, rewritten: Mapping[str, str], commands: Commands
    ) -> Iterator[Callable[[], None]]:
        """Fill a new target folder if another build of the run can; yields what cargo's run calls.

        `rewritten` are the files that hold values, by path in the tree.
        """
        if target.exists():
            yield _nothing
        elif self._is_first(work_copy, target):
            try:
                yield lambda: self._look(work_copy, rewritten)
            finally:
                self._compiled.set()
        else:
            while not self._compiled.is_set():
                commands.wait(_WAIT_SECONDS)
            self._take_over(work_copy, target)
            yield _nothing

    def _is_first(self, work_copy: WorkCopy, target: Path) -> bool:
        with self._guard:
            if self._first is not None and self._first[0] != work_copy:
                return False
            self._first = work_copy, target
            return True

    def _look(self, work_copy: WorkCopy, rewritten: Mapping[str, str]) -> None:
        """Let the others go on when the dependencies are compiled."""
        logs = work_copy.home / "log"
        if not self._compiled.is_set() and dependencies_are_compiled(
            (logs / "stdout.log").read_text(encoding="utf-8", errors="replace"),
            (logs / "stderr.log").read_text(encoding="utf-8", errors="replace"),
            [str(work_copy.tree / name) for name in rewritten],
        ):
            self._compiled.set()

    def _take_over(self, work_copy: WorkCopy, target: Path) -> None:
        """Copy what is compiled, and give equal files the dates by which cargo knows them."""
        assert self._first is not None
        first, compiled = self._first
        for folder in sorted(compiled.rglob(".fingerprint")):
            # first, because one that is there vouches for what it names
            _copy(folder, target / folder.relative_to(compiled))
        _copy(compiled, target, ".fingerprint")
        _date(first.tree, work_copy.tree)


def dependencies_are_compiled(stdout: str, stderr: str, rewritten: list[str]) -> bool:
    """Whether cargo has begun with a crate that holds one of the files, and ended all others."""
    places = [found["place"] or "" for found in _STARTED.finditer(stderr)]
    own = [place for place in places if place and any(f.startswith(f"{place}/") for f in rewritten)]
    return bool(own) and len(_finished(stdout)) >= len(places) - len(own)


def _finished(stdout: str) -> set[str]:
    """The packages with a library; of those with a build script, that alone does not count."""
    finished = set()
    for line in stdout.splitlines():
        with suppress(ValueError):
            message = json.loads(line) if line.startswith('{"reason":"compiler-artifact"') else {}
            if message and "custom-build" not in message["target"]["kind"]:
                finished.add(str(message["package_id"]))
    return finished


def _nothing() -> None:
    pass


def _copy(source: Path, target: Path, *ignored: str) -> None:
    """Copy a folder, dates included; what cargo removes during the copy is left out."""
    with suppress(shutil.Error, FileNotFoundError):
        shutil.copytree(
            source,
            target,
            symlinks=True,
            ignore=shutil.ignore_patterns(*ignored),
            dirs_exist_ok=True,
        )


def _date(first: Path, own: Path) -> None:
    """Date the files of a tree as those of another that are equal, and the others later than all.

    A file with other content has to be younger than all that was compiled and copied.
    """
    later = time.time_ns() + AHEAD_NS
    known: dict[str, Entry] = {}
    with suppress(FileNotFoundError):  # another build may lay it out again at the same time
        known = tree_at(first)
    for name, entry in tree_at(own).items():
        if entry.link is not None:
            continue
        date = _date_of_equal(known.get(name), entry) or later
        os.utime(entry.path, ns=(date, date))


def _date_of_equal(other: Entry | None, own: Entry) -> int | None:
    """The date of a file of equal content, taken after that: a later file is younger."""
    if other is None or other.link is not None:
        return None
    with suppress(FileNotFoundError):
        if other.path.read_bytes() == own.path.read_bytes():
            return other.path.stat().st_mtime_ns
    return None


Wait = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class CargoRecipe:
    """Cargo for one run. Cargo runs in folders below `work`."""

    pinned: Pinned
    settings: BuildSettings
    commands: Commands
    work: Path
    _dependencies: SharedDependencies = field(default_factory=SharedDependencies)

    def key(self, rendered: Rendered) -> str:
        """The build key of an engine with these values."""
        return self._environment.key(rendered, self._environment.toolchain())

    def source(self, wait_for: Callable[[WorkCopy], Wait]) -> dict[str, Entry]:
        """The pinned source. If it has no Cargo.lock, the whole run shares a generated one."""
        source = self.pinned.tree()
        name = f"{self.pinned.prefix}Cargo.lock"
        if name not in source:
            source[name] = Entry(self._resolved(source, wait_for))
        return source

    def compile(self, work_copy: WorkCopy, rewritten: Mapping[str, str]) -> Compiled:
        """Build what is laid out in the work copy."""
        crate, logs = work_copy.tree / self.pinned.prefix, work_copy.home / "log"
        compiler = self._compiler
        binary = compiler.binary(crate, logs)
        with (
            work_copy.compiling() as target,
            self._dependencies.for_build(work_copy, target, rewritten, self.commands) as watch,
        ):
            executable, triple = compiler.build(binary, crate, target, logs, watch)
        environment = self._environment
        return Compiled(executable, triple or environment.toolchain().host, environment.level())

    @property
    def _compiler(self) -> Compiler:
        return Compiler(self.settings, self.commands)

    @property
    def _environment(self) -> BuildEnvironment:
        return BuildEnvironment(self.pinned, self.settings, self.commands, self.work)

    def _resolved(self, source: Tree, wait_for: Callable[[WorkCopy], Wait]) -> Path:
        lock = self.pinned.path.with_name(f"{self.pinned.sha256}.lock")
        work_copy = WorkCopy(self.work / "resolve")
        with work_copy.locked(wait_for(work_copy)):
            if not lock.exists():
                work_copy.lay_out(source, {})
                crate = work_copy.tree / self.pinned.prefix
                self._compiler.lock(crate, work_copy.home / "log")
                (crate / "Cargo.lock").replace(lock)
        return lock
