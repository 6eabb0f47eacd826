"""Builds plus and minus from a pinned copy of the source, each build key once, and tests them.

A worker builds what an order says, in folders of its own. It gets the source as an archive and
builds it as a master does: the same copy, recipe and smoke test.
"""

import json
import platform
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from queue import PriorityQueue
from types import MappingProxyType

from spsa.builds.artifacts import ArtifactStore, BuiltEngine, VerifiedFile, sha256_of, verify
from spsa.builds.commands import Commands
from spsa.builds.recipe import Compiler, Recipe, Rendered, digest_of
from spsa.builds.smoke import bench_of, declared_options, longest_search, refuse_options
from spsa.builds.tree import (
    Checkout,
    Pinned,
    WorkCopy,
    archived,
    disk_errors_as_tuning_errors,
    unpack,
)
from spsa.core.game_settings import TimeControl
from spsa.core.json_values import to_json
from spsa.core.uci_options import Declarations
from spsa.errors import BuildFailed, SmokeTestFailed, TuningError
from spsa.files import MAX_TEXT, content, remove_old, write_whole

BUILD_SECONDS, NODES_PER_SECOND = "build-seconds", "nodes-per-second"
"""Files with what was measured last: of an iteration's two builds, and of one engine."""

_SHOWN_VALUES = 12  # of those with which a build failed
_ALONE = (
    "plays only beside its files, and workers start a copy of it in an empty folder: name them in "
    "[engine.files], or name a script that goes to its folder and starts it there"
)

MAX_SIDE_BYTES = 2**28
"""Of all files of a side: every worker fetches them for each iteration."""


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
        option_places: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._option_places = option_places
        self._tried = False
        self.artifacts = ArtifactStore(engines_path.resolve())
        self.compiler = Compiler(recipe, pinned, environment, work.resolve())
        self._free_copies: PriorityQueue[int] = PriorityQueue()
        for number in range(at_once):
            self._free_copies.put(number)

    def build(
        self, plus: Rendered, minus: Rendered, name: str = "engine"
    ) -> tuple[BuiltEngine, BuiltEngine]:
        """Build both engines in parallel, or one with this `name` if they are equal.

        Further threads wait.

        Raises:
            BuildFailed, SmokeTestFailed: with the engine, its values and the compiler's output.
            TuningError: the pinned copy was altered.
            BuildCancelled: after `cancel`.
        """
        number = self._free_copies.get()  # the first free one, whose caches are the warmest
        try:
            if plus == minus:
                engine = self.build_one("plus", plus, number, name=name)
                return engine, engine
            with ThreadPoolExecutor() as pool:
                sides = {"plus": plus, "minus": minus}
                both = [pool.submit(self.build_one, *side, number) for side in sides.items()]
                try:
                    wait(both)
                except BaseException:  # an interrupt must not wait for the compilers
                    self.cancel()
                    raise
            return both[0].result(), both[1].result()
        finally:
            self._free_copies.put(number)

    def build_one(
        self, side: str, rendered: Rendered, number: int = 0, *, name: str = ""
    ) -> BuiltEngine:
        """Find one engine by its build key, or compile, smoke-test and publish it.

        `side` is "plus" or "minus", `number` that of its work copy, `name` that of the engine in
        errors, where it is not its side that tells it from another one.
        """
        compiler, recipe = self.compiler, self.compiler.recipe
        work_copy = WorkCopy(compiler.work / (f"{side}-{number}" if number else side))
        what = name or f"{side} engine"
        with disk_errors_as_tuning_errors(compiler.work), explained(what, rendered.values):
            compiler.pinned.verify()
            key = compiler.key(rendered)
            with work_copy.locked(compiler.commands.wait):
                if (found := self.artifacts.find(key)) is not None:
                    return found
                began = time.monotonic()
                made, target = compiler.compile(work_copy, rendered)
                searches = [longest_search(one) for one in recipe.time_controls]
                declared = declared_options(made, recipe.arguments, searches, tried=self._tried)
                refuse_options(declared, recipe.options, self._option_places)
                bench = bench_of(made, recipe.bench, recipe.arguments)
                self._tried = True
                keep_measured(compiler.work, BUILD_SECONDS, time.monotonic() - began)
                return self.artifacts.add(key, made, target, compiler.level(), bench)

    def cancel(self) -> None:
        """Kill every running compiler; later builds fail. Any thread may call it."""
        self.compiler.commands.stop()


def keep_measured(work: Path, name: str, number: float) -> None:
    """Write one of the two files of a folder."""
    write_whole(work / name, f"{number:.3f}\n".encode())


def last_measured(work: Path, name: str) -> float | None:
    """What one of the two files of a folder says; None before the first measurement."""
    try:
        return float(content(work / name, MAX_TEXT))
    except (OSError, ValueError):
        return None


def adopt(
    engine: Path,
    engines_path: Path,
    arguments: Sequence[str] = (),
    time_controls: Sequence[TimeControl] = (),
    options: Mapping[str, str] | None = None,
) -> BuiltEngine:
    """Publish a finished binary for the delivery over UCI; its key is the hash of its bytes.

    With the `options` of all games it is tried as a worker starts it: a copy, without the files
    beside it. Raises SmokeTestFailed if it does not answer as a UCI engine, TuningError if it is
    missing.
    """
    binary, store = engine.resolve(), ArtifactStore(engines_path.resolve())
    with disk_errors_as_tuning_errors(store.folder):
        key, here = sha256_of(binary), f"{platform.machine()}-{sys.platform}"
        searches = [longest_search(one) for one in time_controls]
        found = store.find(key)
        if found is not None and not searches:  # these may be new to a known engine
            return found
        sent = options or {}
        tried = partial(declared_options, arguments=arguments, searches=searches, sent=sent)
        place = binary
        if options is not None:
            place = found.path if found else store.put(binary, key).path
        try:
            tried(place)
        except SmokeTestFailed as failure:
            if found is None:
                store.evict([key])
            tried(binary)  # tells what is wrong with it anywhere
            told = "\n".join((f"{binary} {_ALONE}", *failure.lines[1:]))
            raise SmokeTestFailed(told) from failure
        bench = bench_of(place, False if found else None, arguments)
        verify(place, key)
        return found or store.add(key, place, here, None, bench)


@contextmanager
def explained(name: str, values: Mapping[str, float]) -> Iterator[None]:
    """Prefix build errors with what is built, and let its values follow."""
    try:
        yield
    except BuildFailed as failure:
        shown = [f"{name} = {value:.6g}" for name, value in islice(values.items(), _SHOWN_VALUES)]
        others = f", and {len(values) - _SHOWN_VALUES} more" if len(values) > _SHOWN_VALUES else ""
        more = f"\nIts values: {', '.join(shown)}{others}" if values else ""
        raise type(failure)(f"the {name}: {failure}{more}") from failure


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMaker:
    """Makes the files of one side, as the weights of a network, by a program of the source.

    It runs `command` in an empty folder, with the values as a JSON object on its standard input.
    Each file that it leaves there is named as the UCI option that takes its path. A word of the
    command that names a file of the pinned source becomes its path.

    `declared` are the options of the engine, `work` is a folder for temporary ones.
    """

    pinned: Pinned
    command: Sequence[str]
    declared: Declarations
    work: Path
    store: ArtifactStore
    timeout: float
    commands: Commands

    def made(self, side: str, values: Mapping[str, float]) -> dict[str, VerifiedFile]:
        """The files in the store by their options.

        Raises:
            BuildFailed: with what the program said, the side and the values.
        """
        here = self.pinned.path
        argv = [str(here / word) if (here / word).is_file() else word for word in self.command]
        self.work.mkdir(exist_ok=True)
        with (
            explained(f"{side} engine", values),
            disk_errors_as_tuning_errors(self.work),
            tempfile.TemporaryDirectory(prefix="files-", dir=self.work) as folder,
        ):
            self.pinned.verify()
            given = json.dumps(dict(values)).encode()
            self.commands.answer(argv, Path(folder), self.timeout, given)
            written = sorted(Path(folder).iterdir())
            self._check(written)
            return {file.name: self.store.put(file) for file in written}

    def _check(self, written: Sequence[Path]) -> None:
        if not written:
            raise BuildFailed("the program wrote no file into the folder in which it runs")
        for file in written:
            if file.is_symlink() or not file.is_file():
                raise BuildFailed(f"the program made {file.name!r}, which is no regular file")
            if objection := self.declared.objection(file.name, str(file)):
                remedy = "a file is named as the option that takes its path"
                raise BuildFailed(f"the program wrote {file.name!r}: {objection}; {remedy}")
        if (size := sum(file.stat().st_size for file in written)) > MAX_SIDE_BYTES:
            most = f"the files of a side have at most {MAX_SIDE_BYTES:,}"
            raise BuildFailed(f"the program wrote {size:,} bytes; {most}")


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


def archive_of(pinned: Pinned) -> bytes:
    """The archive of a pinned source, which is verified first."""
    with disk_errors_as_tuning_errors(pinned.path):
        pinned.verify()
        return b"".join(archived(pinned.tree()))


@contextmanager
def ordered(
    order: BuildOrder, archive: bytes, work: Path, environment: Mapping[str, str]
) -> Iterator[Builder]:
    """A builder for an order; its engines are removed at the end.

    `work` keeps a folder for each source: the source and what the compiler can use again. Those of
    old sources are removed. Raises TuningError for an archive that is not the one of the order.
    """
    found, home = sha256(archive).hexdigest(), work / order.source_sha256
    if found != order.source_sha256:
        raise TuningError(f"the archive of the source hashes to {found}, not {home.name}")
    checkout = Checkout(home / "source")
    with disk_errors_as_tuning_errors(work):
        if not checkout.source.is_dir():
            unpack(archive, checkout.source)
        home.touch()  # it was used now
        remove_old(work)  # sources that no worker of this machine has used for a day
        with tempfile.TemporaryDirectory(prefix="engines-", dir=home) as engines:
            # the work copies of one kind and source, so that cargo compiles dependencies once
            place, pinned = home / "-".join(order.kind), Pinned(checkout.source, found, checkout)
            yield Builder(pinned, order.recipe, place, Path(engines), environment)
