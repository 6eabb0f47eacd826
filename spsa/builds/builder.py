"""Builds plus and minus from a pinned copy of the source, each build key once, and tests them.

A worker builds what an order says, in folders of its own. It gets the source as an archive and
builds it as a master does: the same copy, recipe and smoke test.
"""

import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from queue import PriorityQueue
from typing import Any, Self

from spsa.builds.artifacts import ArtifactStore, BuiltEngine, sha256_of, verify
from spsa.builds.recipe import Compiler, Recipe, Rendered, digest_of
from spsa.builds.smoke import declared_options, examine, longest_search
from spsa.builds.source import Checkout, Pinned
from spsa.builds.tree import WorkCopy, archived, disk_errors_as_tuning_errors, unpack
from spsa.core.game_settings import TimeControl
from spsa.core.json_values import as_written, from_json, to_json
from spsa.core.uci_options import Declarations
from spsa.errors import BuildFailed, TuningError

_FEW_VALUES = 4
_DAY = 86_400.0


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
        self.compiler = Compiler(recipe, pinned, environment, work.resolve())
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
        with work_copy.locked(compiler.commands.wait):
            if (found := self._artifacts.find(key)) is not None:
                return found  # another builder published it while this one waited for the lock
            made, target = compiler.compile(work_copy, compiler.tree(rendered))
            recipe = compiler.recipe
            limit = longest_search(recipe.time_control)
            bench = examine(made, recipe.bench, first_search=limit, options=recipe.options)
            return self._artifacts.add(key, made, target, compiler.level(), bench)


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
    with disk_errors_as_tuning_errors(), _explained(str(engine)):
        key, here = sha256_of(binary), f"{platform.machine()}-{sys.platform}"
        if (found := store.find(key)) is not None:
            return found
        bench = examine(binary, None, arguments, longest_search(time_control))
        verify(binary, key)
        return store.add(key, binary, here, None, bench)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOrder:
    """Two engines for one kind of machine.

    `kind` are words of `requirements.kind_of`, `source_sha256` is the hash of the source's archive.
    """

    kind: tuple[str, ...]
    source_sha256: str
    recipe: Recipe
    plus: Rendered
    minus: Rendered

    @property
    def key(self) -> str:
        """The same for equal orders: the name under which the database keeps the two engines."""
        return digest_of(to_json(self))

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The order in the column `recipe`; UnusableState if it has another form."""
        with as_written("a column `recipe`"):
            return from_json(cls, data)


def archive_of(pinned: Pinned) -> bytes:
    """The archive of a pinned source, which is verified first."""
    with disk_errors_as_tuning_errors():
        pinned.verify()
        return archived(pinned.tree())


@contextmanager
def ordered(
    order: BuildOrder, archive: bytes, work: Path, environment: Mapping[str, str]
) -> Iterator[Builder]:
    """A builder for an order; its engines are removed at the end.

    `work` keeps a folder for each source: the source and what the compiler can use again. Those of
    old sources are removed.

    Raises:
        TuningError: the archive is not the one of the order.
        TuningError: it cannot be unpacked.
    """
    with disk_errors_as_tuning_errors():
        home = work / order.source_sha256
        pinned = _unpacked(order, archive, home)
        home.touch()  # it was used now
        _remove_old(work)
        with tempfile.TemporaryDirectory(prefix="engines-", dir=home) as engines:
            # the work copies of one kind and source, so that cargo compiles dependencies once
            place = home / "-".join(order.kind)
            yield Builder(pinned, order.recipe, place, Path(engines), environment)


def _unpacked(order: BuildOrder, archive: bytes, home: Path) -> Pinned:
    """The pinned source of an order, which an earlier order may have left there."""
    found = sha256(archive).hexdigest()
    if found != order.source_sha256:
        raise TuningError(
            f"the archive of the source hashes to {found}, expected {order.source_sha256}"
        )
    path = home / "source"
    if not path.is_dir():
        unpack(archive, path)
    pinned = Pinned(path, order.source_sha256, Checkout(path, cargo=not order.recipe.command))
    pinned.verify()
    return pinned


def _remove_old(work: Path) -> None:
    """Remove the sources that no worker of this machine has used for a day."""
    for home in work.iterdir():
        with suppress(FileNotFoundError):  # another worker has just removed it
            if home.stat().st_mtime < time.time() - _DAY:
                shutil.rmtree(home, ignore_errors=True)
