"""Builds plus and minus from a pinned copy of the source, each build key once, and tests them."""

import platform
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from queue import PriorityQueue

from spsa.builds.artifacts import ArtifactStore, BuiltEngine, sha256_of, verify
from spsa.builds.recipe import Compiler, Recipe, Rendered
from spsa.builds.smoke import declared_options, examine, longest_search
from spsa.builds.source import Pinned
from spsa.builds.tree import WorkCopy, disk_errors_as_tuning_errors
from spsa.core.game_settings import TimeControl
from spsa.core.uci_options import Declarations
from spsa.errors import BuildFailed

_FEW_VALUES = 4


class Builder:
    """Builds the engines of one run, for `at_once` iterations at a time.

    `work` holds the work copies `plus` and `minus`, then `plus-1` and so on; `engines_path` holds
    the published engines. Several builders may share both.
    """

    def __init__(
        self,
        pinned: Pinned,
        recipe: Recipe,
        work: Path,
        engines_path: Path,
        environment: Mapping[str, str],
        at_once: int = 1,
    ) -> None:
        self.at_once = at_once
        self._artifacts = ArtifactStore(engines_path.resolve())
        self.compiler = Compiler.of(recipe, pinned, environment, work.resolve())
        self._free_copies: PriorityQueue[int] = PriorityQueue()
        for number in range(at_once):
            self._free_copies.put(number)

    def build(self, plus: Rendered, minus: Rendered) -> tuple[BuiltEngine, BuiltEngine]:
        """Build both engines in parallel, or once if they are equal; further threads wait.

        Raises:
            BuildFailed, SmokeTestFailed: with the engine, its values and the compiler's output.
            TuningError: the pinned copy was altered.
            BuildCancelled: after `cancel`.
        """
        number = self._free_copies.get()  # the first free one, whose caches are the warmest
        try:
            if plus == minus:
                engine = self.build_one("plus", plus, number)
                return engine, engine
            with ThreadPoolExecutor(2, thread_name_prefix="build") as pool:
                both = [
                    pool.submit(self.build_one, side, rendered, number)
                    for side, rendered in (("plus", plus), ("minus", minus))
                ]
                try:
                    wait(both)
                except BaseException:  # an interrupt must not wait for the compilers
                    self.cancel()
                    raise
            return both[0].result(), both[1].result()
        finally:
            self._free_copies.put(number)

    def build_one(self, side: str, rendered: Rendered, number: int = 0) -> BuiltEngine:
        """Find one engine by its build key, or compile, smoke-test and publish it.

        `side` is "plus" or "minus", `number` that of its work copy.
        """
        compiler = self.compiler
        compiler.commands.wait(0)
        with disk_errors_as_tuning_errors():
            compiler.pinned.restore()
            compiler.pinned.verify()
            key = compiler.key(rendered)
            with _explained(*_described(side, rendered)):
                work_copy = WorkCopy(compiler.work / (f"{side}-{number}" if number else side))
                return self._artifacts.find(key) or self._made(work_copy, key, rendered)

    def cancel(self) -> None:
        """Kill every running compiler; later builds fail. Any thread may call it."""
        self.compiler.commands.stop()

    def discard(self, hashes: Collection[str]) -> None:
        """Remove published engines that no iteration needs; they can be built again."""
        self._artifacts.evict(hashes)

    def _made(self, work_copy: WorkCopy, key: str, rendered: Rendered) -> BuiltEngine:
        compiler = self.compiler
        with work_copy.locked(compiler.commands.wait, compiler.recipe.timeout):
            if (found := self._artifacts.find(key)) is not None:
                return found  # another builder published it while this one waited for the lock
            made = compiler.compile(work_copy, compiler.tree(rendered))
            return self._artifacts.add(key, made.executable, made.target, made.level, self._examine)

    def _examine(self, binary: Path) -> int | None:
        recipe = self.compiler.recipe
        return examine(
            binary,
            recipe.bench,
            first_search=longest_search(recipe.time_control),
            options=recipe.options,
        )


def adopt(
    engine: Path,
    engines_path: Path,
    arguments: Sequence[str] = (),
    time_control: TimeControl | None = None,
) -> BuiltEngine:
    """Publish a finished binary for the delivery over UCI; its key is the hash of its bytes.

    Raises SmokeTestFailed if it does not answer as a UCI engine, TuningError if it is missing.
    """
    binary, store = engine.resolve(), ArtifactStore(engines_path.resolve())
    key, here = sha256_of(binary), f"{platform.machine()}-{sys.platform}"

    def tried(copy: Path) -> int | None:
        verify(copy, key)
        return examine(copy, None, arguments, longest_search(time_control))

    with disk_errors_as_tuning_errors(), _explained(str(engine)):
        return store.find(key) or store.add(key, binary, here, None, tried)


def declared(engine: Path, arguments: Sequence[str] = ()) -> Declarations:
    """Start a binary with these arguments and return the options that it declares.

    Raises SmokeTestFailed if it does not answer as a UCI engine.
    """
    with disk_errors_as_tuning_errors(), _explained(str(engine)):
        return declared_options(engine.absolute(), arguments)


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
