"""How values get into engines: by rewriting and building a source, or over UCI into one binary."""

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from spsa.builds.builder import Builder, BuiltEngine, Rendered
from spsa.builds.sources import render
from spsa.core.params import Space
from spsa.db.master_queries import Sides
from spsa.db.tables import EngineFile

log = logging.getLogger("spsa.master")

Values = Mapping[str, float]
Benches = tuple[int | None, int | None]


class Delivery(Protocol):
    """Makes the two engines of an iteration."""

    def prepare(self, plus: Values, minus: Values) -> Sides:
        """Build and publish two engines with these values, which may take minutes.

        Up to `at_once` threads may call it at a time.

        Raises:
            BuildFailed: with the output of the compiler or the engine, and the values.
        """
        ...

    def cancel(self) -> None:
        """Stop every `prepare` that runs in another thread."""
        ...

    def discard(self, build_keys: Collection[str]) -> None:
        """Delete binaries that no iteration will use again."""
        ...

    @property
    def source_sha256(self) -> str | None:
        """The hash of the source that engines are built from; None if none are built."""
        ...

    @property
    def at_once(self) -> int:
        """How many pairs of engines may be built at a time."""
        ...

    @property
    def sides(self) -> tuple[str, ...]:
        """Which sides are being built."""
        ...


@dataclass(frozen=True, slots=True)
class BuildDelivery:
    """Constants of a source are rewritten in private copies; two binaries are built.

    `higher` builds two more for each higher level of x86-64, the highest first. They have to answer
    `bench` like the first ones, or the level is refused for as long as this master runs.
    """

    space: Space
    builder: Builder
    source_sha256: str
    sources: Mapping[str, str]  # the pinned files that hold constants: relative path -> text
    constants_file: str
    keep_bytes: bool  # whether workers load the binaries from the database
    require: tuple[str, ...] = ()
    higher: Mapping[str, Builder] = field(default_factory=dict)
    _refused: dict[str, str] = field(default_factory=dict)

    @property
    def at_once(self) -> int:
        return self.builder.at_once

    @property
    def sides(self) -> tuple[str, ...]:
        return next((found for builder in self._builders if (found := builder.sides)), ())

    def prepare(self, plus: Values, minus: Values) -> Sides:
        rendered = self._rendered(plus), self._rendered(minus)
        built = self.builder.build(*rendered)
        variants = {
            level: builder.build(*rendered)
            for level, builder in self.higher.items()
            if level not in self._refused
        }
        for level, engines in variants.items():
            self._compare(level, _benches(engines), _benches(built))
        first, second = self._published(built)
        return Sides(
            plus=first,
            minus=second,
            requires=(*built[0].requires, *self.require),
            variants={
                level: self._published(engines)
                for level, engines in variants.items()
                if level not in self._refused
            },
            refused=dict(self._refused),
        )

    def cancel(self) -> None:
        for builder in self._builders:
            builder.cancel()

    def discard(self, build_keys: Collection[str]) -> None:
        self.builder.discard(build_keys)

    def _rendered(self, values: Values) -> Rendered:
        files = render(self.space, values, self.sources, self.constants_file)
        return Rendered(files=files, values=dict(values))

    def _published(self, built: tuple[BuiltEngine, BuiltEngine]) -> tuple[EngineFile, EngineFile]:
        plus, minus = (new_engine(engine, keep_bytes=self.keep_bytes) for engine in built)
        return plus, minus

    @property
    def _builders(self) -> tuple[Builder, ...]:
        return (self.builder, *self.higher.values())

    def _compare(self, level: str, found: Benches, first: Benches) -> None:
        """Refuse a level whose engines answer `bench` otherwise: they play another game."""
        if (reason := different_benches(found, first)) is not None:
            self._refused[level] = reason
            log.warning("no binaries for %s are used: %s", level, reason)


def different_benches(found: Benches, first: Benches) -> str | None:
    """Why engines with these benches do not play the game of the first ones; None if they do."""
    if found == first:
        return None
    return f"bench gives {found[0]} and {found[1]} nodes, not {first[0]} and {first[1]}"


def _benches(engines: tuple[BuiltEngine, BuiltEngine]) -> Benches:
    return engines[0].bench, engines[1].bench


@dataclass(frozen=True, slots=True)
class UciDelivery:
    """One binary; the values are sent by `setoption` before the first game."""

    space: Space
    engine: BuiltEngine
    keep_bytes: bool
    require: tuple[str, ...] = ()

    @property
    def source_sha256(self) -> str | None:
        return None

    @property
    def at_once(self) -> int:
        return 1

    @property
    def sides(self) -> tuple[str, ...]:
        return ()

    def prepare(self, plus: Values, minus: Values) -> Sides:
        binary = new_engine(self.engine, keep_bytes=self.keep_bytes)
        return Sides(
            plus=binary,
            minus=binary,
            plus_options=self._options(plus),
            minus_options=self._options(minus),
            requires=(*self.engine.requires, *self.require),
        )

    def cancel(self) -> None:
        """Do nothing: no build runs."""

    def discard(self, build_keys: Collection[str]) -> None:
        """Do nothing: all iterations use the same binary."""

    def _options(self, values: Values) -> dict[str, str]:
        return {name: str(number) for name, number in self.space.options(values).items()}


def new_engine(engine: BuiltEngine, *, keep_bytes: bool) -> EngineFile:
    """The row of a published binary."""
    return EngineFile(
        sha256=engine.sha256,
        build_key=engine.build_key,
        target=engine.target,
        size=engine.size,
        bench=engine.bench,
        path=str(engine.path),
        content=engine.path.read_bytes() if keep_bytes else None,
    )
