"""Theta computed once more from a run's seed and results, and compared with what was recorded.

Theta is a pure function of both, so every perturbation that was played, every step of the log and
the present state have to come out again to the bit.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spsa.errors import IllegalTransition
from spsa.params import Played
from spsa.store import Iteration, Run, Step
from spsa.tuning import Games, Proposal, Tuning


@dataclass(frozen=True, slots=True)
class Moment:
    """Theta and the rule's state after the result k; k = 0 is the start."""

    k: int
    theta: Mapping[str, float]
    state: Mapping[str, Any]


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


def replay(tuning: Tuning, results: Sequence[Iteration]) -> Iterator[Moment]:
    """The start, and theta after each of the results, which are in the order of their k."""
    theta, state = tuning.start()
    yield Moment(0, theta, state)
    for iteration in results:
        answer = tuning.answer(state, theta, games_of(iteration))
        theta, state = dict(answer.theta), answer.state
        yield Moment(iteration.k or 0, theta, state)


def divergences(
    tuning: Tuning, run: Run, iterations: Sequence[Iteration], steps: Sequence[Step]
) -> Iterator[str]:
    """A sentence for every place in which the record and the replay differ; none is the rule.

    Args:
        iterations: the tuning iterations of the run that are applied or open, in order of k.
        steps: the whole log.
    """
    applied = [it for it in iterations if it.k is not None and it.k <= run.applied]
    moments = list(replay(tuning, applied))
    for iteration in iterations:
        yield from _perturbation_differs(tuning, moments, iteration)
    for step, before, after in zip(steps, moments, moments[1:], strict=False):
        if dict(step.theta_before) != before.theta or dict(step.theta_after) != after.theta:
            yield f"k={step.k}: the log moves theta to {_first(step.theta_after, after.theta)}"
    last = moments[-1]
    if dict(run.theta) != last.theta:
        yield f"theta is {_first(run.theta, last.theta)} after k={last.k}"
    if dict(run.state) != dict(last.state):
        yield f"the state of the rule is not the one that follows from k={last.k} results"


def _perturbation_differs(
    tuning: Tuning, moments: Sequence[Moment], iteration: Iteration
) -> Iterator[str]:
    k = iteration.k or 0
    if iteration.opened_on >= len(moments):
        yield f"k={k} was opened on {iteration.opened_on} results, only {len(moments) - 1} are in"
        return
    base = moments[iteration.opened_on]
    proposal = tuning.propose(base.state, base.theta, k)
    recorded = (
        dict(iteration.base_parameters),
        dict(iteration.plus_parameters),
        dict(iteration.minus_parameters),
        iteration.a_k,
        iteration.c_k,
    )
    if recorded != _of(proposal):
        yield f"k={k} was played with another perturbation than follows from its seed"


def _of(proposal: Proposal) -> tuple[Any, ...]:
    played = proposal.played
    return (
        dict(proposal.base),
        dict(played.plus),
        dict(played.minus),
        proposal.a_k,
        proposal.c_k,
    )


def _first(recorded: Mapping[str, float], computed: Mapping[str, float]) -> str:
    """The first parameter in which two thetas differ."""
    name = next(n for n in computed if recorded.get(n) != computed[n])
    return f"{name} = {recorded.get(name)!r} where the replay has {computed[name]!r}"
