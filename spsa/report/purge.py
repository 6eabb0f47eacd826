"""A purge before and after it is done, as text for people and as values for programs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spsa.core.scoring import Tally
from spsa.db.purge_queries import PurgePlan, ReportedResult
from spsa.db.tables import Purge
from spsa.history.purge import moved
from spsa.report.formats import by, number, plain
from spsa.report.table import Column, View, records
from spsa.text import plural

_VISIBLE = 1e-6  # steps: below this, a drift is what another processor rounds


def sentences(plan: PurgePlan) -> Iterator[str]:
    """The results that a purge would remove, and what happens to them."""
    run, matches = plan.run, plan.matches
    tally, count = _total(matches), len({match.iteration_number for match in matches})
    yield (
        f"run {run.name}: {plural(tally.games, 'game')} in {plural(len(matches), 'batch', 'es')} "
        f"of {plural(count, 'iteration')} (+{tally.wins} -{tally.losses} ={tally.draws})"
    )
    for worker, games in _by_worker(matches).items():
        yield f"  {worker}: {plural(games, 'game')}"
    again = _total([match for match in matches if match.played_again]).games
    if again:
        yield f"  {plural(again, 'game')} of open iterations will be played again"
    if tally.games > again:
        yield f"  {plural(tally.games - again, 'game')} of closed iterations are removed for good"
    yield from _on_theta(plan)


def _on_theta(plan: PurgePlan) -> Iterator[str]:
    if plan.after is None:
        yield "  theta holds none of them, and stays as it is"
        return
    yield f"  theta is computed anew from the {plural(plan.run.applied, 'result')} it holds"
    if plan.drift > _VISIBLE:
        yield (
            f"  note: up to {plan.drift:.3g} steps of that come from the rule itself: another "
            "version of it moved this run"
        )


MOVES = View(
    "theta",
    (
        Column("name", "name", lambda row: row[0], kind="name"),
        Column("before", "now", lambda row: row[1], number),
        Column("after", "without them", lambda row: row[2], number),
        Column("steps", "steps", lambda row: row[3], by("{:+.3f}")),
    ),
)


def moves(plan: PurgePlan) -> list[tuple[str, float, float, float]]:
    """How theta would move in each parameter, the one that moves the farthest first."""
    return [
        (name, plan.run.theta[name], plan.theta[name], steps) for name, steps in moved(plan).items()
    ]


def to_json(plan: PurgePlan, purge: Purge | None) -> Any:
    """The same for programs; `purge` is what was done, None where nothing was."""
    matches = plan.matches
    tally = _total(matches)
    return plain(
        {
            "run": plan.run.name,
            "purge": None if purge is None else purge.number,
            "selection": plan.selection.to_json(),
            **plain(tally),
            "played_again": _total([match for match in matches if match.played_again]).games,
            "batches": [[match.iteration_number, match.seq] for match in matches],
            "workers": _by_worker(matches),
            "results": plan.run.applied,
            "drift": plan.drift,
            "parameters": records(MOVES, moves(plan)),
        }
    )


def _total(matches: Sequence[ReportedResult]) -> Tally:
    return sum((match.tally for match in matches), Tally())


def _by_worker(matches: Sequence[ReportedResult]) -> Mapping[str, int]:
    """The games of each worker, the most first."""
    games: dict[str, int] = {}
    for match in matches:
        games[match.worker] = games.get(match.worker, 0) + match.tally.games
    return dict(sorted(games.items(), key=lambda one: -one[1]))
