"""How values get into engines: by rewriting and building a source, or over UCI into one binary."""

import logging
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from typing import Self

from spsa.builds.artifacts import BuiltEngine, VerifiedFile
from spsa.builds.builder import Builder, FileMaker
from spsa.builds.recipe import Rendered
from spsa.builds.sources.rewriting import render
from spsa.builds.tree import Pinned
from spsa.core import Builds, Values
from spsa.core.params import PlayedValues, Space
from spsa.db.master_queries import Side, Sides
from spsa.db.tables import EngineRow
from spsa.protocol import required_pattern

log = logging.getLogger("spsa.master")

Kind = tuple[str, ...]
"""Words of `requirements.kind_of`; none where engines are not made by kinds of machines."""


ASSUMED_SECONDS = 30.0  # the assumed time of a build before the first one has been measured

_MEASURED = 8


@dataclass(kw_only=True)
class Delivery(ABC):
    """Makes the two engines of each iteration, `at_once` at a time, beside the master.

    A context manager: its end cancels the builds that are not finished.

    `source_sha256` is the hash of the source that engines are built from, None if none are built;
    `usual` is what builds of the run took before, in seconds. Workers have to provide the words of
    `require`, and load binaries and files from the database if `keep_bytes`. A kind of `refused`
    has engines that answer `bench` otherwise than the others.
    """

    require: tuple[str, ...] = ()
    keep_bytes: bool = False
    at_once: int = 1
    source_sha256: str | None = None
    usual: float | None = None
    refused: dict[str, str] = field(init=False, default_factory=dict)
    _threads: ThreadPoolExecutor = field(init=False, repr=False, compare=False)
    _begun: dict[int, float] = field(init=False, default_factory=dict)
    _last: deque[float] = field(init=False)  # seconds of the last few builds

    def __post_init__(self) -> None:
        self._last = deque([] if self.usual is None else [self.usual], maxlen=_MEASURED)

    def __enter__(self) -> Self:
        self._threads = ThreadPoolExecutor(self.at_once, "build")
        return self

    def __exit__(self, *_: object) -> None:
        self.cancel()
        self._threads.shutdown(cancel_futures=True)

    @property
    def has_builder(self) -> bool:
        """Whether any machine can build them now."""
        return True

    @property
    def seconds(self) -> float:
        """The seconds that the slowest of the last few builds took."""
        assumed = 0.0 if self.source_sha256 is None else ASSUMED_SECONDS
        return max(self._last, default=assumed)

    def builds(self) -> Builds:
        """What is being built."""
        if self.source_sha256 is None:
            return Builds()
        begun = dict(self._begun)
        return Builds(
            iterations=tuple(sorted(begun)),
            seconds=round(time.monotonic() - min(begun.values()), 1) if begun else 0.0,
            usual=max(self._last, default=None),
            has_builder=self.has_builder,
        )

    def start(self, played: PlayedValues, k: int = 0) -> Future[Sides]:
        """Start to build two engines with these values, for iteration k or for a match."""
        return self._threads.submit(self._prepared, k, played)

    def _prepared(self, k: int, played: PlayedValues) -> Sides:
        began = self._begun[k] = time.monotonic()
        try:
            sides = self.prepare(played.plus, played.minus)
        finally:
            del self._begun[k]
        self._last.append(time.monotonic() - began)
        return sides

    def prepare(self, plus: Values, minus: Values) -> Sides:
        """Build and publish two engines with these values, which may take minutes.

        BuildFailed has the output of the compiler or the engine, and the values.
        """
        found = _alike(self.by_kind(plus, minus), self.refused)
        required = {tuple(sorted({*one.requires, *self.require})): one for one in found}
        (lowest, first), *others = sorted(required.items())
        variants = dict(first.variants) | {
            required_pattern(words) or "": (one.plus.engine, one.minus.engine)
            for words, one in reversed(others)
        }
        return replace(first, requires=lowest, variants=variants, refused=dict(self.refused))

    @abstractmethod
    def by_kind(self, plus: Values, minus: Values) -> Mapping[Kind, Sides]:
        """The same for each kind of machine, that of the most slots first."""

    def cancel(self) -> None:
        """Stop every `prepare` that runs in another thread."""
        return

    def discard(self, hashes: Collection[str]) -> None:
        """Delete binaries that no iteration will use again."""
        return

    def published(self, engine: BuiltEngine) -> EngineRow:
        """The row of a binary."""
        content = engine.path.read_bytes() if self.keep_bytes else None
        facts = asdict(engine) | {"path": str(engine.path), "content": content}
        return EngineRow(**{name: facts[name] for name in facts.keys() - {"requires"}})


def _alike(found: Mapping[Kind, Sides], refused: dict[str, str]) -> list[Sides]:
    """Those that answer `bench` like the first; the others play another game and are refused."""
    benches = {kind: (one.plus.engine.bench, one.minus.engine.bench) for kind, one in found.items()}
    first = next(iter(benches.values()))
    for kind, own in benches.items():
        if own != first:
            name = " ".join(kind)
            reason = f"bench gives {own[0]} and {own[1]} nodes, not {first[0]} and {first[1]}"
            log.warning("no binaries for %s are used: %s", name, reason)
            refused[name] = reason
    return [one for kind, one in found.items() if benches[kind] == first]


@dataclass(kw_only=True)
class BinaryDelivery(Delivery):
    """One binary; `setoption` sends the values of `space`, or the paths of files.

    `maker` is a program that makes these of the values, and `options` are sent to it alone.
    """

    engine: BuiltEngine
    space: Space = field(default_factory=lambda: Space(()))
    maker: FileMaker | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    def by_kind(self, plus: Values, minus: Values) -> Mapping[Kind, Sides]:
        first = second = self._side("plus", plus)
        if minus != plus:
            second = self._side("minus", minus)
        return {(): Sides(first, second, self.engine.requires)}

    def _side(self, side: str, values: Values) -> Side:
        sent = {name: str(number) for name, number in self.space.options(values).items()}
        made = self.maker.made(side, values) if self.maker else {}
        files = {option: self._published(file) for option, file in made.items()}
        return Side(self.published(self.engine), {**self.options, **sent}, files)

    def _published(self, file: VerifiedFile) -> EngineRow:
        own = replace(self.engine, path=file.path, size=file.path.stat().st_size, bench=None)
        return self.published(replace(own, sha256=file.sha256, build_key=file.sha256))

    def cancel(self) -> None:
        if self.maker is not None:
            self.maker.commands.stop()

    def discard(self, hashes: Collection[str]) -> None:
        if self.maker is not None:
            self.maker.store.evict({*hashes} - {self.engine.sha256})


@dataclass(frozen=True, slots=True)
class EngineSource:
    """A pinned source; `texts` are what `read_sources` finds in it."""

    space: Space
    pinned: Pinned
    texts: Mapping[str, str]

    def rendered(self, values: Values) -> Rendered:
        files = render(self.space, values, self.texts) if self.texts else {}
        return Rendered(files=files, values=dict(values))


@dataclass(kw_only=True)
class BuildDelivery(Delivery):
    """Constants of a source are rewritten in a private copy; two binaries are built, or one.

    `name` is that of a single one in errors.
    """

    source: EngineSource
    builder: Builder
    name: str = "engine"

    def by_kind(self, plus: Values, minus: Values) -> Mapping[Kind, Sides]:
        both = self.source.rendered(plus), self.source.rendered(minus)
        built = self.builder.build(*both, self.name)
        first, second = (Side(self.published(engine)) for engine in built)
        return {(): Sides(first, second, built[0].requires)}

    def cancel(self) -> None:
        self.builder.cancel()

    def discard(self, hashes: Collection[str]) -> None:
        self.builder.artifacts.evict(hashes)


@dataclass(kw_only=True)
class OpenedDelivery(Delivery):
    """The engines that a match was opened with; nothing is built."""

    sides: Sides

    def by_kind(self, plus: Values, minus: Values) -> Mapping[Kind, Sides]:
        return {(): self.sides}
