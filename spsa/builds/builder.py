"""From values to binaries: builds plus and minus from a pinned copy of the source, each key once.

Nothing writes to the checkout. A recipe says how one engine is built: by cargo, or by a command
that the engine's author declares.
"""

import platform
import re
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import PriorityQueue

from spsa.builds.artifact_store import ArtifactStore, BuiltEngine
from spsa.builds.artifacts import sha256_of, verify
from spsa.builds.cargo.build_key import BuildEnvironment, BuildSettings, Rendered
from spsa.builds.cargo.recipe import CargoRecipe
from spsa.builds.command import CommandRecipe
from spsa.builds.pinned import Pinned, pin, resume, source_sha256
from spsa.builds.smoke import FirstSearch, SmokeTimeouts, declared_options, examine
from spsa.builds.subprocesses import BuildCancelled, Commands
from spsa.builds.tree import disk_errors_as_tuning_errors
from spsa.builds.work_copy import WorkCopy
from spsa.core.game_settings import Declarations
from spsa.errors import BuildFailed, Fault, InvalidInput

__all__ = [
    "BuildCancelled",
    "BuildSettings",
    "Builder",
    "BuiltEngine",
    "FirstSearch",
    "Pinned",
    "Rendered",
    "SmokeTimeouts",
    "adopt",
    "declared",
    "pin",
    "resume",
    "source_sha256",
]

_FEW_VALUES = 4
_SECRET = re.compile(r"DATABASE_URL.*|SPSA_.*|PG[A-Z]+")


class Builder:
    """Builds the engines of one run, for `settings.at_once` iterations at a time.

    `work` holds the work copies `plus` and `minus`, then `plus-1` and so on; `engines_path` holds
    the published engines. Several builders may share both. Cargo gets `environment`, RUSTFLAGS
    included, without the variables that give access to the database, because a build runs the
    engine's build scripts.
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
        self._work = work.resolve()
        if settings.level and not settings.command:
            plain = BuildEnvironment(pinned, settings, Commands(seen), self._work)
            settings, seen = plain.for_level()
        self._settings = settings
        self._artifact_store = ArtifactStore(engines_path.resolve())
        self._commands = Commands(seen)
        self._recipe: CommandRecipe | CargoRecipe = (
            CommandRecipe(pinned, settings, self._commands)
            if settings.command
            else CargoRecipe(pinned, settings, self._commands, self._work)
        )
        self._building: list[str] = []
        self._free_copies: PriorityQueue[int] = PriorityQueue()
        for number in range(settings.at_once):
            self._free_copies.put(number)

    @property
    def at_once(self) -> int:
        """How many threads can build at the same time; further ones wait in `build`."""
        return self._settings.at_once

    @property
    def crate(self) -> Path:
        """The folder of the engine in the pinned source."""
        return self._pinned.crate

    @property
    def sides(self) -> tuple[str, ...]:
        """The sides that are being built."""
        return tuple(sorted(set(self._building)))[::-1]

    def build(self, plus: Rendered, minus: Rendered) -> tuple[BuiltEngine, BuiltEngine]:
        """Build both engines in parallel, or once if their build keys are equal.

        Raises:
            BuildFailed, SmokeTestFailed: with the engine, its values and the compiler's output.
            SourceChanged: the pinned copy was altered.
            BuildCancelled: after `cancel`.
        """
        if self.build_key(plus) == self.build_key(minus):
            engine = self.build_one("plus", plus)
            return engine, engine
        pool = ThreadPoolExecutor(2, thread_name_prefix="build")
        with self._reserved_copies() as number, pool:
            futures = (
                pool.submit(self.build_one, "plus", plus, number),
                pool.submit(self.build_one, "minus", minus, number),
            )
            return self._both(*futures)

    @contextmanager
    def _reserved_copies(self) -> Iterator[int]:
        """Reserve a pair of work copies: the first free one, whose caches are the warmest."""
        number = self._free_copies.get()
        try:
            yield number
        finally:
            self._free_copies.put(number)

    def build_one(self, side: str, rendered: Rendered, number: int = 0) -> BuiltEngine:
        """Find one engine by its build key, or compile, smoke-test and publish it.

        `side` is "plus" or "minus", `number` that of its work copy.
        """
        self._commands.wait(0)
        with disk_errors_as_tuning_errors():
            self._pinned.restore()
            self._pinned.verify()
            _refuse_unknown(self._pinned, rendered)
            key = self._recipe.key(rendered)
            with _explained(*_described(side, rendered)):
                return self._artifact_store.find(key) or self._make(
                    self._work_copy(side, number), key, rendered
                )

    def build_key(self, rendered: Rendered) -> str:
        """The name under which the builder publishes the engine with these values."""
        with disk_errors_as_tuning_errors():
            self._pinned.restore()
            return self._recipe.key(rendered)

    def cancel(self) -> None:
        """Kill every running compiler; later builds fail. Any thread may call it."""
        self._commands.stop()

    def discard(self, keys: Collection[str]) -> None:
        """Remove published engines that no iteration needs; they can be built again."""
        self._artifact_store.discard(keys)

    def _both(
        self, plus: Future[BuiltEngine], minus: Future[BuiltEngine]
    ) -> tuple[BuiltEngine, BuiltEngine]:
        """Wait for both. An interrupt or the first failure stops both compilers."""
        try:
            return plus.result(), minus.result()
        except BuildFailed as failure:
            other = minus.exception()
            if isinstance(other, BuildFailed) and other is not failure:
                first_line = str(other).splitlines()[0]
                raise type(failure)(f"{failure}\nThe other failed too: {first_line}") from failure
            raise
        finally:
            if not (plus.done() and minus.done()):
                self.cancel()

    def _work_copy(self, side: str, number: int) -> WorkCopy:
        return WorkCopy(self._work / (f"{side}-{number}" if number else side))

    def _make(self, work_copy: WorkCopy, key: str, rendered: Rendered) -> BuiltEngine:
        with self._told(work_copy), work_copy.locked(self._wait_for(work_copy)):
            # another builder may have published it while this one waited for the lock
            if found := self._artifact_store.find(key):
                return found
            placed = self._placed(rendered)
            work_copy.lay_out(self._recipe.source(self._wait_for), placed)
            compiled = self._recipe.compile(work_copy, placed)
            return self._artifact_store.put(
                key, compiled.executable, compiled.target, self._examine, compiled.level
            )

    @contextmanager
    def _told(self, work_copy: WorkCopy) -> Iterator[None]:
        """Count the side of this work copy among those that are being built."""
        side = work_copy.home.name.partition("-")[0]
        self._building.append(side)
        try:
            yield
        finally:
            self._building.remove(side)

    def _examine(self, binary: Path) -> int | None:
        settings = self._settings
        first, options = settings.first_search, settings.options
        return examine(binary, settings.bench, settings.smoke, first_search=first, options=options)

    def _placed(self, rendered: Rendered) -> dict[str, str]:
        return {self._pinned.prefix + name: text for name, text in rendered.files.items()}

    def _wait_for(self, work_copy: WorkCopy) -> Callable[[float], None]:
        """Wait for another builder to unlock a work copy, at most as long as a build may take."""
        end = time.monotonic() + self._settings.timeout

        def wait(seconds: float) -> None:
            if time.monotonic() > end:
                raise BuildFailed(
                    f"another builder has held {work_copy.home} for {self._settings.timeout:g} s"
                )
            self._commands.wait(seconds)

        return wait


def adopt(
    engine: Path,
    engines_path: Path,
    timeouts: SmokeTimeouts | None = None,
    arguments: Sequence[str] = (),
    first_search: FirstSearch | None = None,
) -> BuiltEngine:
    """Publish a finished binary for the delivery over UCI; its key is the hash of its bytes.

    Raises SmokeTestFailed if it does not answer as a UCI engine, TuningError if it is missing.
    """
    binary = engine.resolve()
    key = sha256_of(binary)
    artifact_store = ArtifactStore(engines_path.resolve())

    def tried(copy: Path) -> int | None:
        verify(copy, key)
        return examine(copy, None, timeouts or SmokeTimeouts(), arguments, first_search)

    with disk_errors_as_tuning_errors(), _explained(str(engine)):
        return artifact_store.find(key) or artifact_store.put(key, binary, _this_machine(), tried)


def declared(
    engine: Path, timeouts: SmokeTimeouts | None = None, arguments: Sequence[str] = ()
) -> Declarations:
    """Start a binary with these arguments and return the options that it declares.

    Raises SmokeTestFailed if it does not answer as a UCI engine.
    """
    with disk_errors_as_tuning_errors(), _explained(str(engine)):
        return declared_options(engine.absolute(), timeouts or SmokeTimeouts(), arguments)


def _this_machine() -> str:
    return f"{platform.machine()}-{sys.platform}"


@contextmanager
def _explained(subject: str, more: str = "") -> Iterator[None]:
    """Prefix build errors with the engine's name, and let its values follow."""
    try:
        yield
    except BuildFailed as failure:
        raise type(failure)(f"{subject}: {failure}{more}") from failure


def _described(side: str, rendered: Rendered) -> tuple[str, str]:
    """The side with its values; many of them stand behind what went wrong."""
    values = ", ".join(
        f"{name} = {value:.6g}" if isinstance(value, float) else f"{name} = {value}"
        for name, value in rendered.values.items()
    )
    if len(rendered.values) > _FEW_VALUES:
        return f"the {side} engine", f"\nIts values: {values}"
    return f"the {side} engine, with {values}" if values else f"the {side} engine", ""


def _refuse_unknown(pinned: Pinned, rendered: Rendered) -> None:
    """Refuse values for a file that the pinned source does not have."""
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
