"""A master at its run, in front of a terminal: move it, measure it, show it."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

import click
from rich.console import Console

from spsa.config.settings import Config
from spsa.config.space import project_theta
from spsa.db import Store
from spsa.db.run_view import MasterLease
from spsa.db.tables import Iteration, Run
from spsa.errors import DatabaseUnreachable, InvalidInput
from spsa.lifecycle import RunStatus
from spsa.master.loop import LEASE_WAIT_SECONDS, Master, acquired, sole_writer
from spsa.master.match import ValidationMatch, measurement
from spsa.master.session import RunSettings, tuning_of
from spsa.master.start import Prepared, reopened
from spsa.master.validation import Background, Validation
from spsa.output import echo
from spsa.report.events import LEFT_ADVICE
from spsa.report.screen import Progress


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C or SIGTERM sets; the second one ends the program at once.

    A database that was given up because of it is no error of its own.
    """
    stopping = threading.Event()

    def interrupted(_number: int, _frame: FrameType | None) -> None:
        if stopping.is_set():
            raise KeyboardInterrupt
        stopping.set()
        echo("stopping; once more to stop at once", err=True)

    previous = {s: signal.signal(s, interrupted) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopping
    except DatabaseUnreachable as error:
        if not stopping.is_set():
            raise
        echo(f"left while the database did not answer: {error}", err=True)
        raise click.Abort from None
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@dataclass(frozen=True, slots=True)
class HeldRun:
    """A master at its run, in front of a terminal, from the first build to the last match.

    It is not left between tune and validation: workers would take the run for ended and leave.
    """

    store: Store
    config: Config
    master_lease: MasterLease
    console: Console
    stopping: threading.Event


@contextmanager
def held_run(
    store: Store,
    config: Config,
    run: Run,
    console: Console,
    stopping: threading.Event,
    longest_wait: float = LEASE_WAIT_SECONDS,
) -> Iterator[HeldRun]:
    """Acquire the master lease of the run, and release it at the end.

    Another master is waited for at most `longest_wait` seconds.
    """
    master_lease = acquired(store, run, stopping, longest_wait)
    if master_lease is None:
        raise click.Abort
    try:
        yield HeldRun(store, config, master_lease, console, stopping)
    finally:
        try:
            store.release_master_lease(master_lease)
        except DatabaseUnreachable as error:
            echo(f"could not hand the run back, its lease will run out: {error}", err=True)


def tune(held: HeldRun, prepared: Prepared) -> RunStatus | None:
    """Move a run until it ends; its status, or None when it was stopped before that."""
    for note in prepared.notes:
        echo(*f"note: {note}".replace("\n", "\n  ").splitlines(), err=True)
    store, params = held.store, held.config.run.params
    name = prepared.run.name

    def project(run: Run) -> None:
        try:
            project_theta(params, run.theta)
        except InvalidInput as error:  # perhaps it is being edited; theta is in the database
            echo(f"theta is in the database, but not in params.toml: {error}", err=True)

    background, delivery = None, prepared.delivery
    if (wanted := held.config.validation).every:
        match = measurement(held.config, prepared.run)
        background = Background(every=wanted.every, share=wanted.share, match=match)
        delivery = match.engines_by(delivery)

    with sole_writer(held.config, name), Progress(held.console, store, prepared.run) as progress:
        project(store.run(name))
        ended = Master(
            store=store,
            master_lease=held.master_lease,
            tuning=tuning_of(prepared.run),
            settings=RunSettings.of(prepared.run),
            delivery=delivery,
            watcher=progress,
            project=project,
            stopping=held.stopping,
            background=background,
        ).run()
        project(store.run(name))
        return ended


def tune_and_measure(held: HeldRun, prepared: Prepared) -> bool:
    """Move a run until it ends, then play the match of [validation]; False if it was stopped."""
    ended = tune(held, prepared)
    if ended is RunStatus.FINISHED and held.config.validation.games:
        run = held.store.run(prepared.run.name)
        match = measurement(held.config, run)
        whom = "the start" if match.asked.against == "start" else match.asked.against
        held.console.print(f"tuned; now {match.games:,} games of the tuned values against {whom}")
        return play_match(held, run, match) is not None
    return ended is not None


def play_match(held: HeldRun, run: Run, match: ValidationMatch) -> Iteration | None:
    """Play a match of a run, or go on with the same one.

    None when it was stopped before the end, which tells the user what continues it.
    """
    plus = match.plus or reopened(held.config, held.store, run)
    with Progress(held.console, held.store, run) as shown:
        row = Validation(
            store=held.store,
            master_lease=held.master_lease,
            delivery=match.engines_by(plus.delivery),
            watcher=shown,
            stopping=held.stopping,
            match=match,
        ).run()
    if row is None:
        echo(f"the validation is not complete: {LEFT_ADVICE.format(run.name)}", err=True)
    return row
