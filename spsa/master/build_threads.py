"""Builds engines in threads, because a build may take longer than the master lease."""

import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self

from spsa.db.store import Values
from spsa.master.delivery import Delivery, Sides

ASSUMED_SECONDS = 30.0
"""The assumed time of a build before the first one has been measured."""

_MEASURED = 8


class BuildThreads:
    """Runs as many builds at a time as the delivery allows.

    A context manager: its end cancels the builds that are not finished.
    """

    def __init__(self, delivery: Delivery) -> None:
        self._delivery = delivery
        self._threads = ThreadPoolExecutor(delivery.at_once, "build")
        self._assumed = 0.0 if delivery.source_sha256 is None else ASSUMED_SECONDS
        self._seconds = deque[float](maxlen=_MEASURED)

    @property
    def builders(self) -> int:
        """How many iterations are built at a time."""
        return self._delivery.at_once

    @property
    def seconds(self) -> float:
        """The seconds that the slowest of the last few builds took."""
        return max(self._seconds, default=self._assumed)

    @property
    def is_measured(self) -> bool:
        """Whether `seconds` was measured, not assumed."""
        return bool(self._seconds)

    def start(self, plus: Values, minus: Values) -> Future[Sides]:
        """Start to build two engines with these values."""
        return self._threads.submit(self._prepared, plus, minus)

    def _prepared(self, plus: Values, minus: Values) -> Sides:
        began = time.monotonic()
        sides = self._delivery.prepare(plus, minus)
        self._seconds.append(time.monotonic() - began)
        return sides

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._delivery.cancel()
        self._threads.shutdown(wait=True, cancel_futures=True)
