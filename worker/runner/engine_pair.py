"""The two engines of a slot, kept from game to game and from job to job while they can serve."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from spsa.errors import EngineFault
from spsa.uci.engine import UciEngine
from spsa.uci.spawning import EngineLimits, EngineSpec
from worker.runner.game import for_both


@dataclass(slots=True)
class EnginePair:
    """The engines that play and those that start for the next job, each by its name.

    What waits for one of them raises Stopped as soon as `is_stopped`.
    Only the thread that made it may use it, as with its engines.
    """

    limits: EngineLimits
    is_stopped: Callable[[], bool] = lambda: False
    _playing: dict[str, UciEngine] = field(init=False, default_factory=dict)
    _starting: dict[str, UciEngine] = field(init=False, default_factory=dict)

    def engines(self, plus: EngineSpec, minus: EngineSpec) -> tuple[UciEngine, UciEngine]:
        """Engines with these options, ready to play; GameVoid when one of them does not start."""
        for_both((plus, minus), self._start, self._make_ready)
        return self._playing[plus.name], self._playing[minus.name]

    def start_next(self, plus: EngineSpec, minus: EngineSpec) -> None:
        """Start the engines that the next job needs besides those that play; wait for nothing.

        A program that does not start fails again, with a reason, when `engines` needs it.
        """
        with suppress(EngineFault):
            self._start(plus)
            self._start(minus)

    def last_lines(self, name: str) -> str:
        """What the engine of this name has written last; empty if it did not start."""
        engine = self._playing.get(name) or self._starting.get(name)
        return engine.last_lines if engine else ""

    def close(self) -> None:
        """End all engines; those that play are asked to quit first."""
        while self._starting:
            self._starting.popitem()[1].close(at_once=True)
        while self._playing:
            self._playing.popitem()[1].close()

    def _start(self, spec: EngineSpec) -> None:
        for engine in (self._playing.get(spec.name), self._starting.get(spec.name)):
            if engine is not None and engine.serves(spec):
                return
        if (unwanted := self._starting.pop(spec.name, None)) is not None:
            unwanted.close(at_once=True)
        self._starting[spec.name] = UciEngine(spec, self.limits, self.is_stopped)

    def _make_ready(self, spec: EngineSpec) -> None:
        current = self._playing.get(spec.name)
        if current is not None and current.serves(spec):
            current.configure(spec)
            return
        self._starting[spec.name].complete_handshake(spec)
        self._playing[spec.name] = self._starting.pop(spec.name)
        if current is not None:
            current.close()
