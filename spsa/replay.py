"""Theta computed once more from a run's seed and results; it comes out the same, bit for bit."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from spsa.algorithms.observing import noted, without_notes
from spsa.errors import IllegalTransition
from spsa.params import Played
from spsa.store import Iteration, Run
from spsa.tuning import Games, Tuning


@dataclass(frozen=True, slots=True)
class Moment:
    """Theta and the rule's state after the result k, and the step to it; k = 0 is the start."""

    k: int
    theta: Mapping[str, float]
    state: Mapping[str, Any]
    delta: Mapping[str, float]


def games_of(iteration: Iteration) -> Games:
    """What the row of a tuning iteration says of its games."""
    if iteration.k is None or iteration.a_k is None or iteration.c_k is None:
        raise IllegalTransition(f"iteration {iteration.iteration_number} moves no theta")
    return Games(
        k=iteration.k,
        a_k=iteration.a_k,
        c_k=iteration.c_k,
        played=Played(dict(iteration.plus_parameters), dict(iteration.minus_parameters)),
        tally=iteration.tally,
    )


def noted_from(run: Run) -> int:
    """The first moment at which the run's state has notes on theta besides the rule's own state.

    Later than 0 for a run that was moved by a program that took none.
    """
    outcomes = noted(run.state)
    if outcomes is None:
        return run.applied + 1
    return 0 if outcomes == run.applied else run.applied - outcomes + 1


def replay(tuning: Tuning, results: Iterable[Iteration], noted_from: int = 0) -> Iterator[Moment]:
    """The start, and what each of the results led to; they come in the order of their k.

    States before the moment `noted_from` are without notes.
    """
    moment = Moment(0, *tuning.start(), {})
    for iteration in results:
        yield (moment := _as_kept(moment, noted_from))
        games = games_of(iteration)
        answer = tuning.answer(moment.state, moment.theta, games)
        moment = Moment(games.k, dict(answer.theta), answer.state, answer.delta)
    yield _as_kept(moment, noted_from)


def _as_kept(moment: Moment, noted_from: int) -> Moment:
    if moment.k >= noted_from:
        return moment
    return replace(moment, state=without_notes(moment.state))
