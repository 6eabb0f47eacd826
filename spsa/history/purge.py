"""Plans and carries out a purge: which results it removes, and theta without them.

Theta after a purge is the replay of the run from its start over the remaining results, to the bit.
The played points do not change, and neither do the open iterations: theta becomes what it would be
if the run had played the same points and had never counted the purged games. The log of steps is
not rewritten; a purge is one more entry between two of its steps. Theta can be computed both as it
was applied and without everything that has been purged since.
"""

from spsa.algorithms.tuning import Tuning
from spsa.core.params import Space
from spsa.core.scoring import Tally
from spsa.db import Store
from spsa.db.purge_queries import PurgePlan, Selection
from spsa.db.tables import Purge, Run
from spsa.errors import IllegalTransition, NothingToDo
from spsa.history.replay import replay, results_of

_TRIES = 20
"""How often a purge is planned again if the run moves meanwhile, once an iteration."""


def plan(store: Store, run: Run, tuning: Tuning, selection: Selection) -> PurgePlan:
    """Plan a purge of a run.

    Raises:
        NothingToDo: no counted result is selected.
    """
    matches = store.matching(run.id, selection)
    if not matches:
        raise NothingToDo(f"no counted result of run {run.name} is selected: nothing to purge")
    held, lost = results_of(store, run, run.applied), {one.iteration_id for one in matches}
    if not any(it.id in lost for it in held.iterations):
        return PurgePlan(run=run, selection=selection, matches=matches)
    _, *updates = replay(tuning, held.changed(matches, Tally.without))
    return PurgePlan(
        run=run,
        selection=selection,
        matches=matches,
        after=updates[-1],
        verdicts={
            it.id: new for it, new in zip(held.iterations, updates, strict=True) if it.id in lost
        },
    )


def carry_out(store: Store, tuning: Tuning, plan_: PurgePlan, actor: str, reason: str) -> Purge:
    """Carry out a plan; if the run has moved meanwhile, plan the same selection again.

    Raises:
        NothingToDo: the results have been purged meanwhile.
    """
    for _ in range(_TRIES):
        try:
            return store.purge(plan_, actor, reason)
        except IllegalTransition as error:
            refused = error
            plan_ = plan(store, store.run(plan_.run.name), tuning, plan_.selection)
    raise refused


def moved(plan_: PurgePlan) -> dict[str, float]:
    """How far every active parameter would move, in its steps, the farthest first."""
    after, before = plan_.theta, plan_.run.theta
    active = Space.from_json(plan_.run.space).active
    apart = {p.name: (after[p.name] - before[p.name]) / p.step for p in active}
    return dict(sorted(apart.items(), key=lambda one: -abs(one[1])))
