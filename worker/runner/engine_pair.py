"""The two engines of a slot, kept from game to game and from job to job while they still serve."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Self

from spsa.errors import EngineFault
from worker.runner.game import VoidGame
from worker.uci.engine import EngineSpec, UciEngine, UciTimeouts
from worker.uci.process import Alarm
from worker.uci.spawning import EngineLimits


class EnginePair:
    """At most one engine a side, and one that warms up. Of one thread, as its engines are."""

    def __init__(self, alarm: Alarm, timeouts: UciTimeouts, confinement: EngineLimits) -> None:
        self._alarm = alarm
        self._timeouts = timeouts
        self._confinement = confinement
        self._seated: dict[str, UciEngine] = {}
        self._warming: dict[str, UciEngine] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.clear(at_once=error is not None)

    def seat(self, plus: EngineSpec, minus: EngineSpec) -> tuple[UciEngine, UciEngine]:
        """Engines that play as the two specs say; VoidGame when one does not start so.

        Both are started before either is waited for.
        """
        sides = {"plus": plus, "minus": minus}
        for side, spec in sides.items():
            with _blaming(spec):
                self._warm(side, spec)
        for side, spec in sides.items():
            with _blaming(spec):
                self._seat(side, spec)
        return self._seated["plus"], self._seated["minus"]

    def expect(self, plus: EngineSpec, minus: EngineSpec) -> None:
        """Start what the next job needs beside those who play, and wait for nothing.

        A program that does not start is met again when it is to be seated.
        """
        with suppress(EngineFault):
            self._warm("plus", plus)
            self._warm("minus", minus)

    def clear(self, *, at_once: bool = False) -> None:
        """Send everybody home; engines that can no longer be trusted are not asked to leave."""
        _dismiss(self._warming, at_once=True)
        _dismiss(self._seated, at_once=at_once)

    def _warm(self, side: str, spec: EngineSpec) -> None:
        for held in (self._seated.get(side), self._warming.get(side)):
            if held is not None and held.serves(spec):
                return
        if (stranger := self._warming.pop(side, None)) is not None:
            stranger.close(at_once=True)
        self._warming[side] = UciEngine(spec, self._alarm, self._timeouts, self._confinement)

    def _seat(self, side: str, spec: EngineSpec) -> None:
        held_run = self._seated.get(side)
        if held_run is not None and held_run.serves(spec):
            held_run.configure(spec)
            return
        self._warming[side].introduce(spec)
        self._seated[side] = self._warming.pop(side)
        if held_run is not None:
            held_run.close()


@contextmanager
def _blaming(spec: EngineSpec) -> Iterator[None]:
    """What goes wrong inside makes a void game that names the engine."""
    try:
        yield
    except EngineFault as fault:
        raise VoidGame(spec.name, fault) from None


def _dismiss(engines: dict[str, UciEngine], *, at_once: bool) -> None:
    while engines:
        _, engine = engines.popitem()
        engine.close(at_once=at_once)
