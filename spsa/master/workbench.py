"""Engines made in another thread: a build may last longer than a mastership that is not renewed."""

from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self

from spsa.master.delivery import Delivery, Sides
from spsa.store import Values


class Workbench:
    """One build at a time; a context manager that gives up what is still in the making."""

    def __init__(self, delivery: Delivery) -> None:
        self._delivery = delivery
        self._thread = ThreadPoolExecutor(1, "build")

    def begin(self, plus: Values, minus: Values) -> Future[Sides]:
        """Two engines with these values, some time from now."""
        return self._thread.submit(self._delivery.prepare, plus, minus)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._delivery.cancel()
        self._thread.shutdown(wait=True, cancel_futures=True)
