"""Independent simulations on as many processes as one wants, with a bar on stderr."""

import signal
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import active_children
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from spsa.cli.common import Option

_LINE_SECONDS = 20.0

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
        with progress_bar() as bar:
            task = bar.add_task(self.label, total=sum(weight(key) for key in jobs))
            lines = Lines(bar.console)
            for key, result in self._computed(jobs):
                bar.advance(task, weight(key))
                lines.tell(bar.tasks[0])
                yield key, result

    def _computed(self, jobs: Mapping[Key, "partial[Result]"]) -> Iterator[tuple[Key, Result]]:
        if self.processes == 1:
            yield from ((key, job()) for key, job in jobs.items())
            return
        with ProcessPoolExecutor(self.processes, initializer=_leave_interrupts) as pool:
            yield from _pooled(pool, jobs)


def progress_bar() -> Progress:
    """A bar on a terminal's stderr, with what has passed and what is left of the time."""
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,  # in a file it would be an empty line
    )


@dataclass(slots=True)
class Lines:
    """What a log gets instead of a bar: a line now and then, and none of what is done at once."""

    console: Console
    told: float = field(default_factory=time.monotonic)

    def tell(self, task: Task) -> None:
        now = time.monotonic()
        if self.console.is_terminal or task.finished or now - self.told < _LINE_SECONDS:
            return
        self.told = now
        self.console.print(f"{task.description}: {task.percentage:.0f} %", highlight=False)


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
