"""Plans and carries out a purge: which results it removes, and theta without them.

Theta after a purge is the replay of the run from its start over the remaining results, to the bit.
The played points do not change, and neither do the open iterations: theta becomes what it would be
if the run had played the same points and had never counted the purged games. The log of steps is
not rewritten; a purge is one more entry between two of its steps. Theta can be computed both as it
was applied and without everything that has been purged since.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from spsa.algorithms.tuning import Tuning
from spsa.core.estimates import Estimates
from spsa.core.params import Space
from spsa.core.scoring import Tally
from spsa.db import Store
from spsa.db.purge_queries import NewPurge, PurgeVerdict, ReportedResult, Selection
from spsa.db.tables import Iteration, Purge, Run, Values
from spsa.errors import IllegalTransition, NothingToDo
from spsa.history.replay import ReplayedState, counted_after, replay, with_tally
from spsa.lifecycle import Purpose
from spsa.text import plural

_TRIES = 20
"""How often a purge is planned again if the run moves meanwhile, once an iteration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgePlan:
    """A planned purge of a run.

    `last` is None if theta holds none of the results, so that it does not change. `drift` is the
    distance, in steps, of theta from its replay before the purge; it is not 0 if another version
    of the rule, or another processor, moved the run.
    """

    run: Run
    selection: Selection
    matches: Sequence[ReportedResult]
    last: ReplayedState | None
    estimates: Estimates
    verdicts: Mapping[int, PurgeVerdict]
    drift: float

    @property
    def theta(self) -> Values:
        return self.run.theta if self.last is None else self.last.theta

    @property
    def moved(self) -> dict[str, float]:
        """How far every active parameter would move, in its steps, the farthest first."""
        apart = steps_apart(self.run, self.theta, self.run.theta)
        return dict(sorted(apart.items(), key=lambda one: -abs(one[1])))


def plan(store: Store, run: Run, tuning: Tuning, selection: Selection) -> PurgePlan:
    """Plan a purge of a run.

    Raises:
        NothingToDo: no counted result is selected.
    """
    matches = store.matching(run.id, selection)
    if not matches:
        raise NothingToDo(f"no counted result of run {run.name} is selected: nothing to purge")
    held, lost = results_of(store, run, run.applied), _lost(matches)
    if not any(it.id in lost for it in held):
        return PurgePlan(
            run=run,
            selection=selection,
            matches=matches,
            last=None,
            estimates=run.estimates,
            verdicts={},
            drift=0.0,
        )
    left = [with_tally(it, it.tally.without(lost.get(it.id, Tally()))) for it in held]
    last, verdicts = _replayed(replay(tuning, left), left, lost)
    before = _last(replay(tuning, held))
    return PurgePlan(
        run=run,
        selection=selection,
        matches=matches,
        last=last,
        estimates=tuning.estimates(last.state),
        verdicts=verdicts,
        drift=_drift(run, before.theta),
    )


def carry_out(store: Store, tuning: Tuning, plan_: PurgePlan, actor: str, reason: str) -> Purge:
    """Carry out a plan; if the run has moved meanwhile, plan the same selection again.

    Raises:
        NothingToDo: the results have been purged meanwhile.
    """
    for _ in range(_TRIES):
        try:
            return store.purge(_new(plan_, actor, reason))
        except IllegalTransition as error:
            refused = error
            plan_ = plan(store, store.run(plan_.run.name), tuning, plan_.selection)
    raise refused


def theta_at(
    store: Store, run: Run, tuning: Tuning, k: int, *, as_applied: bool
) -> tuple[Values, Estimates]:
    """Theta after the result k, and the estimates beside it.

    Args:
        as_applied: whether with the games that counted when k was applied; otherwise with those
            that count now.

    Raises:
        NothingToDo: the run has fewer results.
    """
    if k > run.applied:
        raise NothingToDo(
            f"run {run.name} has {plural(run.applied, 'result')}, so no theta of k={k}"
        )
    now, then = results_of(store, run, k), _as_applied(store, run, k)
    wanted = then if as_applied else now
    last = _last(replay(tuning, wanted))
    theta = _logged(store, run, k) if wanted == then else last.theta
    return theta, tuning.estimates(last.state)


def results_of(store: Store, run: Run, k: int) -> list[Iteration]:
    """The iterations that theta holds through the result k, in order."""
    tuned = store.iterations(run.id, purpose=Purpose.TUNE)
    return [it for it in tuned if it.k is not None and it.k <= k]


def steps_apart(run: Run, one: Values, other: Values) -> dict[str, float]:
    """one - other in the steps of every active parameter."""
    active = Space.from_json(run.space).active
    return {p.name: (one[p.name] - other[p.name]) / p.step for p in active}


def _as_applied(store: Store, run: Run, k: int) -> list[Iteration]:
    """The results through k with the games that counted when k was applied."""
    purges = _purges_before(store, run, k)
    return counted_after(purges, results_of(store, run, k), store.purged_batches(run.id))


def _purges_before(store: Store, run: Run, k: int) -> int:
    return sum(purge.applied < k for purge in store.purges(run.id))


def _logged(store: Store, run: Run, k: int) -> Values:
    """Theta after the result k, as the log has it."""
    return run.start_theta if k == 0 else store.steps(run.id)[k - 1].theta_after


def _last(moments: Iterator[ReplayedState]) -> ReplayedState:
    *_, last = moments
    return last


def _replayed(
    moments: Iterator[ReplayedState], left: Sequence[Iteration], lost: Mapping[int, Tally]
) -> tuple[ReplayedState, dict[int, PurgeVerdict]]:
    """The end of the replay, and the new verdict on each iteration that loses games."""
    by_k = {it.k: it.id for it in left if it.id in lost}
    verdicts: dict[int, PurgeVerdict] = {}
    for last in moments:
        if last.k in by_k and by_k[last.k] not in verdicts:
            verdicts[by_k[last.k]] = PurgeVerdict(gradient=last.gradient, elo=last.elo)
    return last, verdicts


def _drift(run: Run, replayed: Values) -> float:
    return max((abs(x) for x in steps_apart(run, replayed, run.theta).values()), default=0.0)


def _lost(matches: Sequence[ReportedResult]) -> dict[int, Tally]:
    """The games to purge from each iteration, by its row's id."""
    lost: dict[int, Tally] = {}
    for match in matches:
        lost[match.iteration_id] = lost.get(match.iteration_id, Tally()) + match.tally
    return lost


def _new(plan_: PurgePlan, actor: str, reason: str) -> NewPurge:
    run = plan_.run
    row = Purge(
        run_id=run.id,
        number=run.purges + 1,
        applied=run.applied,
        theta_before=run.theta,
        theta_after=plan_.theta,
        selection=plan_.selection.to_json(),
        actor=actor,
        reason=reason,
    )
    return NewPurge(
        row=row,
        selection=plan_.selection,
        estimates=plan_.estimates,
        state=run.state if plan_.last is None else plan_.last.state,
        verdicts=plan_.verdicts,
    )
