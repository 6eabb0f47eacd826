"""How values get into engines: by rewriting and building a source, or over UCI into one binary."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from spsa.builds.builder import Builder, BuiltEngine, Rendered
from spsa.builds.rust import render
from spsa.core.params import Space
from spsa.db.store import NewEngine

Values = Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Two engines that are ready to be named in a row."""

    plus: NewEngine
    minus: NewEngine
    plus_options: Mapping[str, str] = field(default_factory=dict)
    minus_options: Mapping[str, str] = field(default_factory=dict)


class Delivery(Protocol):
    """Makes the two engines of an iteration; everything else is the same for all deliveries."""

    def prepare(self, plus: Values, minus: Values) -> Sides:
        """Two engines with these values, published and tried. May take minutes.

        Several threads may call it at a time, as many as `at_once` says.

        Raises:
            BuildFailed: with the compiler's or the engine's own words and the values.
        """
        ...

    def cancel(self) -> None:
        """Make a `prepare` that runs in another thread end soon."""
        ...

    def discard(self, build_keys: Collection[str]) -> None:
        """Remove binaries that no iteration will name again."""
        ...

    @property
    def source_sha256(self) -> str | None:
        """What the engines of a run are made of; None where nothing is built."""
        ...

    @property
    def at_once(self) -> int:
        """How many pairs of engines are built at a time."""
        ...


@dataclass(frozen=True, slots=True)
class BuildDelivery:
    """Constants of a Rust source are rewritten in private copies; cargo makes two binaries."""

    space: Space
    builder: Builder
    source_sha256: str
    sources: Mapping[str, str]  # the pinned files that hold constants: relative path -> text
    constants_file: str
    keep_bytes: bool  # whether boxes get the binaries out of the database

    @property
    def at_once(self) -> int:
        return self.builder.at_once

    def prepare(self, plus: Values, minus: Values) -> Sides:
        built = self.builder.build(self._rendered(plus), self._rendered(minus))
        first, second = (self._published(engine) for engine in built)
        return Sides(plus=first, minus=second)

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

    def prepare(self, plus: Values, minus: Values) -> Sides:
        binary = new_engine(self.engine, keep_bytes=self.keep_bytes)
        return Sides(
            plus=binary,
            minus=binary,
            plus_options=self._options(plus),
            minus_options=self._options(minus),
        )

    def cancel(self) -> None:
        """Nothing runs."""

    def discard(self, build_keys: Collection[str]) -> None:
        """The one binary is the next iteration's too."""

    def _options(self, values: Values) -> dict[str, str]:
        return {name: str(number) for name, number in self.space.options(values).items()}


def new_engine(engine: BuiltEngine, *, keep_bytes: bool) -> NewEngine:
    """A published binary as a row will name it."""
    return NewEngine(
        sha256=engine.sha256,
        build_key=engine.build_key,
        target=engine.target,
        size=engine.size,
        bench=engine.bench,
        path=str(engine.path),
        content=engine.path.read_bytes() if keep_bytes else None,
    )
