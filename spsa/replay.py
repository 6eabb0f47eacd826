"""Theta computed once more from a run's seed and results; it comes out the same, bit for bit."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from spsa.errors import IllegalTransition
from spsa.params import Played
from spsa.store import Iteration
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


def replay(tuning: Tuning, results: Iterable[Iteration]) -> Iterator[Moment]:
    """The start, and what each of the results led to; they come in the order of their k."""
    theta, state = tuning.start()
    yield Moment(0, theta, state, {})
    for iteration in results:
        games = games_of(iteration)
        answer = tuning.answer(state, theta, games)
        theta, state = dict(answer.theta), answer.state
        yield Moment(games.k, theta, state, answer.delta)
