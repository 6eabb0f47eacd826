"""The whole run once more: what its rule proposes and answers, against what the rows say.

On the machine that moved theta this comes out the same to the bit. Another processor or another
libm may round a logarithm the other way, so that what agrees to a billionth is no finding here; the
log itself is checked to the bit by `spsa.doctor.theta`.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import isclose

import spsa.replay
from spsa.algorithms.memory import alike
from spsa.doctor.books import Books, Finding
from spsa.doctor.theta import differences
from spsa.replay import Moment, noted_from
from spsa.store import Iteration
from spsa.tuning import Tuning

_HAIR = 1e-9


def replay(books: Books, tuning: Tuning) -> Iterator[Finding]:
    """Every proposal and every step, computed from the run's seed and its counts alone."""
    moments = list(spsa.replay.replay(tuning, _results(books), noted_from(books.run)))
    yield from _differences(books, None, "the start", books.run.start_theta, moments[0].theta)
    by_k = {it.k: it for it in books.tuned}
    for step, moment in zip(books.steps, moments[1:], strict=False):
        for what, found, right in (
            ("delta of", step.delta, moment.delta),
            ("theta after", step.theta_after, moment.theta),
        ):
            yield from _differences(books, by_k[step.k], f"{what} step k={step.k}", found, right)
    if len(moments) == books.run.applied + 1:
        yield from _state(books, tuning, moments[-1])
    for it in books.tuned:
        yield from _opening(books, tuning, moments, it)


def _differences(
    books: Books,
    it: Iteration | None,
    what: str,
    found: Mapping[str, float],
    right: Mapping[str, float],
) -> Iterator[Finding]:
    return differences(books, it, what, found, right, _nearly)


def _nearly(one: float, other: float) -> bool:
    """A value counts as at least 1 large, which is what a step is worth for most of them."""
    return isclose(one, other, rel_tol=_HAIR, abs_tol=_HAIR)


def _state(books: Books, tuning: Tuning, last: Moment) -> Iterator[Finding]:
    """What the run's row remembers besides theta."""
    run, right = books.run, tuning.estimates(last.state)
    if not alike(run.state, last.state, _HAIR):
        yield books.finding(None, "the rule's state is another", "it follows from the results")
    for what, found, wanted in (
        ("theta_averaged", run.theta_averaged, right.averaged),
        ("theta_averaged_sd", run.theta_averaged_sd, right.averaged_sd),
        ("theta_supported", run.theta_supported, right.supported),
        ("theta_supported_sd", run.theta_supported_sd, right.supported_sd),
    ):
        yield from _differences(books, None, f"the run's {what}", found or {}, wanted or {})


def _results(books: Books) -> Iterator[Iteration]:
    """What theta holds, as far as the log is whole; where it is not, other checks have said so."""
    by_id = {it.id: it for it in books.iterations}
    for k, step in enumerate(books.steps, start=1):
        it = by_id.get(step.iteration_id)
        if it is None or step.k != k or it.k != k:
            return
        yield it


def _opening(
    books: Books, tuning: Tuning, moments: Sequence[Moment], it: Iteration
) -> Iterator[Finding]:
    """An iteration was opened on the right results, and plays what the rule proposes on them."""
    k = it.k or 0
    least = max(0, k - it.in_flight)
    if not least <= it.opened_on < k:
        needed = f"k={k} with {it.in_flight} in flight needs {least} at least, and none of its own"
        yield books.finding(it, f"opened on {it.opened_on} results", needed)
    if it.opened_on >= len(moments):
        return
    base = moments[it.opened_on]
    proposal = tuning.propose(base.state, base.theta, k)
    gains = {"a_k": it.a_k or 0.0, "c_k": it.c_k or 0.0}
    yield from _differences(books, it, "its row", gains, {"a_k": proposal.a_k, "c_k": proposal.c_k})
    for what, found, right in (
        ("base", it.base_parameters, proposal.base),
        ("plus", it.plus_parameters, proposal.played.plus),
        ("minus", it.minus_parameters, proposal.played.minus),
    ):
        yield from _differences(books, it, what, found, right)
