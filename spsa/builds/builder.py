"""From values to binaries: both sides built from a pinned copy of the source, each key once.

The checkout is never written to. What a build needs to know about cargo is in `spsa.builds.cargo`.
"""

import platform
import re
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import PriorityQueue

from spsa.builds.artifacts import sha256_of, verify
from spsa.builds.cargo.artifact_store import ArtifactStore, BuiltEngine
from spsa.builds.cargo.commands import BuildCancelled, Commands
from spsa.builds.cargo.compiler import Compiled, Compiler
from spsa.builds.cargo.key import BuildEnvironment, Toolchain
from spsa.builds.cargo.pinned import Pinned, pin, resume, source_sha256
from spsa.builds.cargo.settings import BuildSettings, Rendered
from spsa.builds.cargo.smoke import SmokeTimeouts, declared_options, examine
from spsa.builds.cargo.tree import Entry, Tree, disk_faults_told
from spsa.builds.cargo.work_copy import WorkCopy
from spsa.core.game_settings import Declarations
from spsa.errors import BuildFailed, Fault, InvalidInput

__all__ = [
    "BuildCancelled",
    "BuildSettings",
    "Builder",
    "BuiltEngine",
    "Pinned",
    "Rendered",
    "SmokeTimeouts",
    "adopt",
    "declared",
    "pin",
    "resume",
    "source_sha256",
]

_SECRET = re.compile(r"DATABASE_URL.*|SPSA_.*|PG[A-Z]+")


class Builder:
    """Makes the engines of one run, of several iterations at a time if the settings say so.

    `work` has the private copies `plus` and `minus`, then `plus-1` and so on, `engines_path` the
    published engines; several builders may share both. `environment` is passed on to cargo,
    RUSTFLAGS and all, without what gives access to the database: building an engine runs its build
    scripts.
    """

    def __init__(
        self,
        pinned: Pinned,
        settings: BuildSettings,
        work: Path,
        engines_path: Path,
        environment: Mapping[str, str],
    ) -> None:
        seen = {name: v for name, v in environment.items() if not _SECRET.fullmatch(name)}
        self._pinned = pinned
        self._settings = settings
        self._work = work.resolve()
        self._artifact_store = ArtifactStore(engines_path.resolve())
        self._commands = Commands(seen)
        self._workshop = BuildEnvironment(pinned, settings, self._commands, self._work)
        self._compiler = Compiler(settings, self._commands)
        self._free: PriorityQueue[int] = PriorityQueue()
        for bench in range(settings.at_once):
            self._free.put(bench)

    @property
    def at_once(self) -> int:
        """How many threads may call `build` at a time without one waiting for another."""
        return self._settings.at_once

    def build(self, plus: Rendered, minus: Rendered) -> tuple[BuiltEngine, BuiltEngine]:
        """Both engines, built side by side; one build if they are the same.

        Raises BuildFailed or SmokeTestFailed with the side, the values and the compiler's words,
        SourceChanged if the pinned copy was altered, BuildCancelled after `cancel`.
        """
        if self.build_key(plus) == self.build_key(minus):
            engine = self.build_one("plus", plus)
            return engine, engine
        with self._bench() as bench, ThreadPoolExecutor(2, thread_name_prefix="build") as pool:
            futures = (
                pool.submit(self.build_one, "plus", plus, bench),
                pool.submit(self.build_one, "minus", minus, bench),
            )
            return self._both(*futures)

    @contextmanager
    def _bench(self) -> Iterator[int]:
        """A place to build at that nobody has: the first one, whose caches are the warmest."""
        bench = self._free.get()
        try:
            yield bench
        finally:
            self._free.put(bench)

    def build_one(self, side: str, rendered: Rendered, bench: int = 0) -> BuiltEngine:
        """One side's engine: found by its key, or compiled, tried and published."""
        self._commands.wait(0)
        with disk_faults_told():
            self._pinned.verify()
            _refuse_unknown(self._pinned, rendered)
            toolchain = self._workshop.toolchain()
            key = self._workshop.key(rendered, toolchain)
            with _explained(_described(side, rendered)):
                return self._artifact_store.find(key) or self._make(
                    self._side(side, bench), key, rendered, toolchain
                )

    def build_key(self, rendered: Rendered) -> str:
        """The name under which the engine with these values is published."""
        with disk_faults_told():
            return self._workshop.key(rendered, self._workshop.toolchain())

    def cancel(self) -> None:
        """Kill every compiler that runs, from any thread; this builder builds nothing more."""
        self._commands.stop()

    def discard(self, keys: Collection[str]) -> None:
        """Remove published engines that nobody will ask for; they can be built again."""
        self._artifact_store.discard(keys)

    def _both(
        self, plus: Future[BuiltEngine], minus: Future[BuiltEngine]
    ) -> tuple[BuiltEngine, BuiltEngine]:
        """Wait for both; whatever interrupts the waiting stops the compilers as well."""
        try:
            return plus.result(), minus.result()
        except BuildFailed as failure:
            other = minus.exception()
            if isinstance(other, BuildFailed) and other is not failure:
                first_line = str(other).splitlines()[0]
                raise type(failure)(f"{failure}\nSo it is with {first_line}") from failure
            raise
        finally:
            if not (plus.done() and minus.done()):
                self.cancel()

    def _side(self, side: str, bench: int) -> WorkCopy:
        return WorkCopy(self._work / (f"{side}-{bench}" if bench else side))

    def _make(
        self, side: WorkCopy, key: str, rendered: Rendered, toolchain: Toolchain
    ) -> BuiltEngine:
        with side.locked(self._patience(side)):
            if found := self._artifact_store.find(
                key
            ):  # somebody has built it while this one waited
                return found
            side.lay_out(self._source(), self._placed(rendered))
            compiled = self._compile(side)
            return self._artifact_store.put(
                key, compiled.executable, compiled.target or toolchain.host, self._examine
            )

    def _compile(self, side: WorkCopy) -> Compiled:
        crate = side.tree / self._pinned.prefix
        binary = self._compiler.binary(crate, side.home / "log")
        with side.compiling() as target:
            return self._compiler.build(binary, crate, target, side.home / "log")

    def _examine(self, binary: Path) -> int | None:
        return examine(binary, self._settings.bench, self._settings.patience)

    def _placed(self, rendered: Rendered) -> dict[str, str]:
        return {self._pinned.prefix + name: text for name, text in rendered.files.items()}

    def _source(self) -> dict[str, Entry]:
        """The pinned source; with one Cargo.lock for the whole run where it came without."""
        source = self._pinned.tree()
        name = f"{self._pinned.prefix}Cargo.lock"
        if name not in source:
            source[name] = Entry(self._resolved(source))
        return source

    def _resolved(self, source: Tree) -> Path:
        lock = self._pinned.path.with_name(f"{self._pinned.sha256}.lock")
        side = WorkCopy(self._work / "resolve")
        with side.locked(self._patience(side)):
            if not lock.exists():
                side.lay_out(source, {})
                crate = side.tree / self._pinned.prefix
                self._compiler.lock(crate, side.home / "log")
                (crate / "Cargo.lock").replace(lock)
        return lock

    def _patience(self, side: WorkCopy) -> Callable[[float], None]:
        """Wait for another builder, but no longer than a build may take."""
        end = time.monotonic() + self._settings.timeout

        def wait(seconds: float) -> None:
            if time.monotonic() > end:
                raise BuildFailed(f"another builder has kept {side.home} all the time")
            self._commands.wait(seconds)

        return wait


def adopt(engine: Path, engines_path: Path, patience: SmokeTimeouts | None = None) -> BuiltEngine:
    """Publish a binary that is tuned by UCI options, as it is; its key is the hash of its bytes.

    Raises SmokeTestFailed if it does not answer as a UCI engine, TuningError if it is not there.
    """
    binary = engine.resolve()
    key = sha256_of(binary)
    artifact_store = ArtifactStore(engines_path.resolve())

    def tried(copy: Path) -> int | None:
        verify(copy, key)
        return examine(copy, None, patience or SmokeTimeouts())

    with disk_faults_told(), _explained(str(engine)):
        return artifact_store.find(key) or artifact_store.put(key, binary, _this_machine(), tried)


def declared(engine: Path, patience: SmokeTimeouts | None = None) -> Declarations:
    """The options that a binary declares; it is started for that.

    Raises SmokeTestFailed if it does not answer as a UCI engine.
    """
    with disk_faults_told(), _explained(str(engine)):
        return declared_options(engine.absolute(), patience or SmokeTimeouts())


def _this_machine() -> str:
    return f"{platform.machine()}-{sys.platform}"


@contextmanager
def _explained(subject: str) -> Iterator[None]:
    """Say of a failure whose it was."""
    try:
        yield
    except BuildFailed as failure:
        raise type(failure)(f"{subject}: {failure}") from failure


def _described(side: str, rendered: Rendered) -> str:
    values = ", ".join(f"{name} = {value}" for name, value in rendered.values.items())
    return f"the {side} engine, with {values}" if values else f"the {side} engine"


def _refuse_unknown(pinned: Pinned, rendered: Rendered) -> None:
    """A file that the source does not have cannot hold a constant."""
    faults = [
        Fault(
            file=name,
            line=None,
            name="file",
            found="the engine's source has no such file",
            remedy=f"give its path from {pinned.checkout.source}",
        )
        for name in rendered.files
        if not _is_inside(pinned, name)
    ]
    if faults:
        raise InvalidInput(faults)


def _is_inside(pinned: Pinned, name: str) -> bool:
    return pinned.prefix + name in pinned.tree()
