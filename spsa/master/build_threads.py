"""Engines made in other threads: a build may last longer than a mastership that is not renewed."""

import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self

from spsa.db.store import Values
from spsa.master.delivery import Delivery, Sides

PRESUMED_SECONDS = 30.0
"""What two builds take where none has been made yet."""

_REMEMBERED = 8


class BuildThreads:
    """As many builds at a time as the delivery bears.

    A context manager that gives up what is still in the making.
    """

    def __init__(self, delivery: Delivery) -> None:
        self._delivery = delivery
        self._threads = ThreadPoolExecutor(delivery.at_once, "build")
        self._presumed = 0.0 if delivery.source_sha256 is None else PRESUMED_SECONDS
        self._lasted = deque[float](maxlen=_REMEMBERED)

    @property
    def places(self) -> int:
        """How many iterations' engines are built at a time."""
        return self._delivery.at_once

    @property
    def seconds(self) -> float:
        """What the engines of an iteration take: the slowest of the latest few."""
        return max(self._lasted, default=self._presumed)

    @property
    def proved(self) -> bool:
        """Whether `seconds` was measured here."""
        return bool(self._lasted)

    def begin(self, plus: Values, minus: Values) -> Future[Sides]:
        """Two engines with these values, some time from now."""
        return self._threads.submit(self._prepared, plus, minus)

    def _prepared(self, plus: Values, minus: Values) -> Sides:
        began = time.monotonic()
        sides = self._delivery.prepare(plus, minus)
        self._lasted.append(time.monotonic() - began)
        return sides

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._delivery.cancel()
        self._threads.shutdown(wait=True, cancel_futures=True)
