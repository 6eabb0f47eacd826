"""A match of one theta against another, played by the same workers as the tune; theta rests."""

import logging
import threading
from dataclasses import dataclass

from spsa.errors import DatabaseUnreachable, NothingToDo, TuningError
from spsa.lifecycle import Purpose, RunStatus
from spsa.master.delivery import Delivery
from spsa.master.loop import LEASE_SECONDS, PATIENCE_SECONDS, TICK_SECONDS, Watcher
from spsa.scoring import elo
from spsa.store import Iteration, Mastership, NewIteration, Run, RunView, Store, Values
from spsa.terms import Terms

log = logging.getLogger("spsa.master")


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """What is measured: plus (the tuned values) against minus (those the run started from)."""

    plus: Values
    minus: Values
    games: int
    batch_games: int
    max_attempts: int
    terms: Terms


def validate(
    store: Store,
    mastership: Mastership,
    delivery: Delivery,
    match: Match,
    watcher: Watcher,
    stopping: threading.Event,
) -> Iteration | None:
    """Play the match, or go on with the one that was opened and not ended; its row when complete.

    None when stopped before the end: the games played so far count, and the next call goes on.
    """
    number = _open_match(store, mastership, delivery, match)
    while not stopping.is_set():
        try:
            view = store.tick(mastership, LEASE_SECONDS)
            watcher.saw(view)
            row = next((it for it in view.open if it.iteration_number == number), None)
            if row is not None and row.played_out:
                store.complete_validation(mastership, row.id, elo(row.tally).value)
            if row is None or row.played_out:
                return _finished(store, view.run, number)
            _give_up_unplayable(store, mastership, view, row)
        except DatabaseUnreachable as error:
            log.warning("the database does not answer, waiting: %s", error)
            stopping.wait(PATIENCE_SECONDS)
        stopping.wait(TICK_SECONDS)
    return None


def _open_match(store: Store, mastership: Mastership, delivery: Delivery, match: Match) -> int:
    view = store.tick(mastership, LEASE_SECONDS)
    going = next((it for it in view.open if it.purpose is Purpose.VALIDATE), None)
    if going is not None:
        return going.iteration_number
    sides = delivery.prepare(match.plus, match.minus)
    return store.open_iteration(
        mastership,
        NewIteration(
            purpose=Purpose.VALIDATE,
            k=None,
            opened_on=view.run.applied,
            in_flight=1,
            a_k=None,
            c_k=None,
            plus=sides.plus,
            minus=sides.minus,
            plus_options=sides.plus_options,
            minus_options=sides.minus_options,
            terms=match.terms,
            target_games=match.games,
            batch_games=match.batch_games,
            max_attempts=match.max_attempts,
            base_parameters=view.run.theta,
            plus_parameters=match.plus,
            minus_parameters=match.minus,
            perturbation_signs={},
        ),
    )


def _finished(store: Store, run: Run, number: int) -> Iteration | None:
    played = store.iterations(run.id, purpose=Purpose.VALIDATE)
    return next((it for it in played if it.iteration_number == number), None)


def _give_up_unplayable(
    store: Store, mastership: Mastership, view: RunView, row: Iteration
) -> None:
    if view.failures:
        store.abandon_validation(mastership, row.id)
        raise TuningError(f"the validation cannot be played: {'; '.join(f.error for f in view.failures)}")
    if view.run.status is RunStatus.PAUSED:
        raise NothingToDo(f"run {view.run.name} is paused: {view.run.reason}")
