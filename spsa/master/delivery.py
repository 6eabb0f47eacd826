"""How values get into engines: by rewriting and building a source, or over UCI into one binary."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, Self

from spsa.builds.builder import Builder, BuiltEngine, Rendered
from spsa.builds.sources import render
from spsa.config import read_sources
from spsa.core.params import Space
from spsa.db.store import NewEngine

Values = Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """The two engines of an iteration, with the UCI options that are sent to them."""

    plus: NewEngine
    minus: NewEngine
    plus_options: Mapping[str, str] = field(default_factory=dict)
    minus_options: Mapping[str, str] = field(default_factory=dict)


class Delivery(Protocol):
    """Makes the two engines of an iteration."""

    def prepare(self, plus: Values, minus: Values) -> Sides:
        """Build and publish two engines with these values, which may take minutes.

        Up to `at_once` threads may call it at a time.

        Raises:
            BuildFailed: with the output of the compiler or the engine, and the values.
        """
        ...

    def on(self, space: Space) -> Self:
        """The same delivery for a changed space of the run; builds that run go on.

        Raises:
            InvalidInput: the source cannot be read.
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
    """Constants of a Rust source are rewritten in private copies; cargo makes two binaries."""

    space: Space
    builder: Builder
    source_sha256: str
    sources: Mapping[str, str]  # the pinned files that hold constants: relative path -> text
    constants_file: str
    keep_bytes: bool  # whether workers load the binaries from the database

    @property
    def at_once(self) -> int:
        return self.builder.at_once

    @property
    def sides(self) -> tuple[str, ...]:
        return self.builder.sides

    def prepare(self, plus: Values, minus: Values) -> Sides:
        built = self.builder.build(self._rendered(plus), self._rendered(minus))
        first, second = (self._published(engine) for engine in built)
        return Sides(plus=first, minus=second)

    def on(self, space: Space) -> Self:
        sources = read_sources(space, self.builder.crate, self.constants_file)
        return replace(self, space=space, sources=sources)

    def cancel(self) -> None:
        self.builder.cancel()

    def discard(self, build_keys: Collection[str]) -> None:
        self.builder.discard(build_keys)

    def _rendered(self, values: Values) -> Rendered:
        files = render(self.space, values, self.sources, self.constants_file)
        return Rendered(files=files, values=dict(values))

    def _published(self, engine: BuiltEngine) -> NewEngine:
        return new_engine(engine, keep_bytes=self.keep_bytes)


@dataclass(frozen=True, slots=True)
class UciDelivery:
    """One binary; the values are sent by `setoption` before the first game."""

    space: Space
    engine: BuiltEngine
    keep_bytes: bool

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
        )

    def on(self, space: Space) -> Self:
        return replace(self, space=space)

    def cancel(self) -> None:
        """Do nothing: no build runs."""

    def discard(self, build_keys: Collection[str]) -> None:
        """Do nothing: all iterations use the same binary."""

    def _options(self, values: Values) -> dict[str, str]:
        return {name: str(number) for name, number in self.space.options(values).items()}


def new_engine(engine: BuiltEngine, *, keep_bytes: bool) -> NewEngine:
    """The row of a published binary."""
    return NewEngine(
        sha256=engine.sha256,
        build_key=engine.build_key,
        target=engine.target,
        size=engine.size,
        bench=engine.bench,
        path=str(engine.path),
        content=engine.path.read_bytes() if keep_bytes else None,
    )
