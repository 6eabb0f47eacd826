"""Independent simulations on as many processes as one wants, with a bar on stderr."""

import signal
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from multiprocessing import active_children
from typing import Any, TypeVar

import click

from spsa.cli.common import Option
from spsa.live_display import counting

Key = TypeVar("Key")
Result = TypeVar("Result")

processes_option: Option = click.option(
    "-j",
    "--processes",
    type=click.IntRange(1, 1024),
    default=1,
    show_default=True,
    help="How many to use; the figures do not depend on it.",
)
seed_option: Option = click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Other seeds give other games.",
)


@dataclass(frozen=True, slots=True)
class JobPool:
    """Where simulations are computed: `processes` at a time, in this process if it is one."""

    processes: int
    label: str

    def finished(
        self, jobs: Mapping[Key, "partial[Result]"], weight: Callable[[Key], float] = lambda _: 1.0
    ) -> Iterator[tuple[Key, Result]]:
        """Every job's key and result, as they come; `weight` is what a job adds to the bar."""
        with counting(self.label, sum(weight(key) for key in jobs)) as advance:
            for key, result in self._computed(jobs):
                advance(weight(key))
                yield key, result

    def _computed(self, jobs: Mapping[Key, "partial[Result]"]) -> Iterator[tuple[Key, Result]]:
        if self.processes == 1:
            yield from ((key, job()) for key, job in jobs.items())
            return
        with ProcessPoolExecutor(self.processes, initializer=_leave_interrupts) as pool:
            yield from _pooled(pool, jobs)


def _leave_interrupts() -> None:
    """Ctrl-C reaches the whole group; what becomes of the workers is for their parent to say."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _pooled(pool: Executor, jobs: Mapping[Key, "partial[Result]"]) -> Iterator[tuple[Key, Result]]:
    """Leaving early, by Ctrl-C or an error, ends all jobs, started or not."""
    futures: dict[Any, Key] = {pool.submit(job): key for key, job in jobs.items()}
    left = dict(futures)
    try:
        for future in as_completed(futures):
            del left[future]
            yield futures[future], future.result()
    finally:
        # not by a shutdown that does not wait: its thread may then meet a pipe that is closed
        for future in left:
            future.cancel()
        if left:
            for worker in active_children():
                worker.terminate()
