"""One session of a master: lease the run, move it, show it, leave it resumable."""

import os
import signal
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import inf
from types import FrameType

import click
from rich.console import Console

from spsa.config import Config, project_theta
from spsa.core.game_settings import GameSettings
from spsa.core.params import PlayedValues, Space
from spsa.core.scoring import Tally
from spsa.db.store import Iteration, MasterLease, Run, Store
from spsa.errors import DatabaseUnreachable, InvalidInput, MasterLeaseLost
from spsa.lifecycle import Purpose, RunStatus
from spsa.master.loop import LEASE_SECONDS, Master
from spsa.master.start import Prepared, reopened, signer
from spsa.master.validation import ValidationMatch, validate
from spsa.output import echo
from spsa.report.progress import Progress
from spsa.report.theta import Theta, chosen_theta
from spsa.report.trails import trail_points

POLL_SECONDS = 1.0


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


PATIENCE = LEASE_SECONDS + 2 * POLL_SECONDS
"""Seconds after which the lease of a master that died has run out."""


@contextmanager
def held_run(
    store: Store,
    config: Config,
    run: Run,
    console: Console,
    stopping: threading.Event,
    patience: float = PATIENCE,
) -> Iterator[HeldRun]:
    """The seat of a run's master, after at most `patience` seconds of waiting for another one."""
    master_lease = _acquired(store, run, stopping, patience)
    try:
        yield HeldRun(store, config, master_lease, console, stopping)
    finally:
        try:
            store.resign(master_lease)
        except DatabaseUnreachable as error:
            echo(f"could not hand the run back, its lease will run out: {error}", err=True)


def _acquired(store: Store, run: Run, stopping: threading.Event, patience: float) -> MasterLease:
    me = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    end = time.monotonic() + patience
    waiting = False
    while not stopping.is_set():
        try:
            return store.acquire(run.id, me, LEASE_SECONDS)
        except MasterLeaseLost as error:
            if time.monotonic() > end:
                raise
            if not waiting:
                limit = "" if patience == inf else f" for up to {patience:.0f} s"
                echo(f"{error}; standing by{limit} to take over from it", err=True)
            waiting = True
        except DatabaseUnreachable:
            if not waiting or time.monotonic() > end:
                raise
        stopping.wait(POLL_SECONDS)
    raise click.Abort


def tune(seat: HeldRun, prepared: Prepared) -> RunStatus | None:
    """Move a run until it ends; its status, or None when it was stopped before that."""
    for note in prepared.notes:
        echo(f"note: {note}", err=True)
    store, params = seat.store, seat.config.params_path
    name, sign = prepared.run.name, signer(seat.config)

    def project(run: Run) -> None:
        try:
            project_theta(params, run.theta)
        except InvalidInput as error:  # perhaps it is being edited; theta is in the database
            echo(f"theta is not written for now: {error}", err=True)

    with progress_of(store, prepared.run, seat.console) as progress:
        project(store.run(name))
        ended = Master(
            store=store,
            master_lease=seat.master_lease,
            tuning=prepared.tuning,
            settings=prepared.settings,
            delivery=prepared.delivery,
            watcher=progress,
            project=project,
            stopping=seat.stopping,
            sign=sign,
        ).run()
        project(store.run(name))
        return ended


def tuned_against_start(run: Run, theta: Theta = Theta.FINAL) -> PlayedValues:
    """The tuned values of a run as plus, those it was started with as minus."""
    space = Space.from_json(run.space)
    tuned, start = chosen_theta(run, theta), run.start_theta
    return PlayedValues(
        plus=space.rounded(space.steps(tuned)), minus=space.rounded(space.steps(start))
    )


def play_match(
    seat: HeldRun, run: Run, sides: PlayedValues, games: int, terms: GameSettings
) -> Iteration | None:
    """Play any two points of a run's space against each other, or go on with the match left open.

    None when it was stopped before the end.
    """
    prepared = reopened(seat.config, run)
    match = ValidationMatch(
        plus=sides.plus,
        minus=sides.minus,
        games=games,
        batch_games=min(prepared.settings.batch_size, games),
        max_attempts=prepared.settings.max_attempts,
        terms=terms,
    )
    _tell_of_another(seat.store, run, match)
    sign = signer(seat.config)
    with progress_of(seat.store, run, seat.console) as shown:
        return validate(
            seat.store, seat.master_lease, prepared.delivery, match, shown, seat.stopping, sign
        )


def _tell_of_another(store: Store, run: Run, match: ValidationMatch) -> None:
    """A match that was left is gone on with, also if by now other values would be measured."""
    left = (it for it in store.open_iterations(run.id) if it.purpose is Purpose.VALIDATE)
    if any(dict(it.plus_parameters) != dict(match.plus) for it in left):
        echo(
            "note: a match of other values was left and is played to its end; ask again then",
            err=True,
        )


def progress_of(store: Store, run: Run, console: Console) -> Progress:
    """A display that starts from the games that theta holds already."""
    done = [it.tally for it in store.iterations(run.id, purpose=Purpose.TUNE) if it.completed_at]
    steps = {p.name: p.step for p in Space.from_json(run.space).active}
    return Progress(console, sum(done, Tally()), steps, trail_points(store, run))


def validation_terms(config: Config, terms: GameSettings) -> GameSettings:
    """A run's own terms, with the time control that [validation] may name."""
    own = config.validation.time_control
    return terms if own is None else replace(terms, time_control=own)
