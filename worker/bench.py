"""The two engines of a slot, kept from game to game and from job to job while they still serve."""

from types import TracebackType
from typing import Self

from spsa.errors import EngineFault
from worker.game import VoidGame
from worker.process import Alarm
from worker.uci import EngineSpec, Patience, UciEngine


class Bench:
    """At most one engine a side. Made, used and closed by one thread, as its engines are."""

    def __init__(self, alarm: Alarm, patience: Patience) -> None:
        self._alarm = alarm
        self._patience = patience
        self._seated: dict[str, UciEngine] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.clear(at_once=error is not None)

    def seat(self, side: str, spec: EngineSpec) -> UciEngine:
        """The engine that plays `side` as `spec` says; VoidGame when it does not start so."""
        try:
            return self._serving(side, spec) or self._start(side, spec)
        except EngineFault as fault:
            raise VoidGame(spec.name, fault) from None

    def clear(self, *, at_once: bool = False) -> None:
        """Send everybody home; engines that can no longer be trusted are not asked to leave."""
        while self._seated:
            _, engine = self._seated.popitem()
            engine.close(at_once=at_once)

    def _serving(self, side: str, spec: EngineSpec) -> UciEngine | None:
        engine = self._seated.get(side)
        if engine is None:
            return None
        if not engine.serves(spec):
            self._seated.pop(side).close()
            return None
        engine.configure(spec)
        return engine

    def _start(self, side: str, spec: EngineSpec) -> UciEngine:
        engine = UciEngine(spec, self._alarm, self._patience)
        self._seated[side] = engine
        return engine
