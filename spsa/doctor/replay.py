"""The whole run once more: what its rule proposes and answers, against what the rows say."""

from collections.abc import Iterator, Mapping
from typing import Any

from spsa.doctor.books import Books, Finding
from spsa.doctor.theta import differences
from spsa.params import Played
from spsa.store import Iteration, Values
from spsa.tuning import Games, Tuning

Moment = tuple[Mapping[str, Any], Values]
"""The rule's state and theta after so many results."""


def replay(books: Books, tuning: Tuning) -> Iterator[Finding]:
    """Every proposal and every step, computed from the run's seed and its counts alone."""
    theta, state = tuning.start()
    yield from differences(books, None, "the start", books.run.start_theta, theta)
    moments: list[Moment] = [(state, theta)]
    by_id = {it.id: it for it in books.iterations}
    for step in books.steps:
        it = by_id.get(step.iteration_id)
        if it is None or step.k != len(moments):
            return  # the log itself is broken, which other checks have said
        answer = tuning.answer(*moments[-1], _games(it))
        yield from differences(books, it, f"delta of step k={step.k}", step.delta, answer.delta)
        yield from differences(
            books, it, f"theta after step k={step.k}", step.theta_after, answer.theta
        )
        moments.append((answer.state, answer.theta))
    for it in books.tuned:
        yield from _opening(books, tuning, moments, it)


def _opening(
    books: Books, tuning: Tuning, moments: list[Moment], it: Iteration
) -> Iterator[Finding]:
    """An iteration was opened on the right results, and plays what the rule proposes on them."""
    k = it.k or 0
    opened_on = max(0, k - it.in_flight)
    if it.opened_on != opened_on:
        yield books.finding(it, f"opened on {it.opened_on} results", f"it is opened on {opened_on}")
    if it.opened_on >= len(moments):
        return
    proposal = tuning.propose(*moments[it.opened_on], k)
    gains = {"a_k": it.a_k or 0.0, "c_k": it.c_k or 0.0}
    yield from differences(books, it, "its row", gains, {"a_k": proposal.a_k, "c_k": proposal.c_k})
    for what, found, right in (
        ("base", it.base_parameters, proposal.base),
        ("plus", it.plus_parameters, proposal.played.plus),
        ("minus", it.minus_parameters, proposal.played.minus),
    ):
        yield from differences(books, it, what, found, right)


def _games(it: Iteration) -> Games:
    return Games(
        k=it.k or 0,
        a_k=it.a_k or 0.0,
        c_k=it.c_k or 0.0,
        played=Played(dict(it.plus_parameters), dict(it.minus_parameters)),
        tally=it.tally,
    )
