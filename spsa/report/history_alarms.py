"""What is wrong with a run as its whole history shows it: for a report, not for every look.

Workers are compared with all the others. Several are tested, so each level is divided by their
number (Bonferroni), and a difference that is certain but small is no alarm.
"""

from collections.abc import Iterator, Sequence
from statistics import median

import numpy as np

from spsa.algorithms import Vector
from spsa.core.scoring import Tally
from spsa.db.history_rows import WorkerShare
from spsa.report.alarm import Alarm, AlarmKind
from spsa.report.alarms import chi_square_tail
from spsa.report.history import RunHistory
from spsa.report.status import estimate

LEVEL = 0.001
"""The chance that a run of equal workers shows any of them as standing out."""

_FEWEST_PAIRS = 50
_FEWEST_POINTS = 80
_GROWTH = 2.0
_DIFFERENCE = 0.1  # of the share of one of the three kinds of pairs
_SLOW = 0.5  # of the median speed
_FEWEST_WORKERS = 3
_CERTAIN = 3.29 / 1.96  # a 99.9% interval by a 95% one


def of_history(history: RunHistory) -> tuple[Alarm, ...]:
    """The alarms of a run's history."""
    return (
        *_of_divergence(history),
        *_of_validations(history),
        *of_results(history.workers),
        *of_speed(history.workers),
    )


def _of_divergence(history: RunHistory) -> Iterator[Alarm]:
    """Steps shrink as gains decay; ones that grow say that gains are too large."""
    if len(history.ks) < _FEWEST_POINTS or not history.parameters:
        return
    theta = np.array([path.normalised.theta for path in history.parameters])
    steps = np.diff(theta, axis=1)[:, :-1]  # the last point may stand for fewer iterations
    quarter = steps.shape[1] // 4
    first, last = _size(steps[:, :quarter]), _size(steps[:, -quarter:])
    if first > 0.0 and last > _GROWTH * first:
        yield Alarm(
            kind=AlarmKind.DIVERGING,
            subject=history.run,
            found=f"theta's steps are {last / first:.1f} times as large as at the beginning",
            advice="start again with smaller gains or steps",
        )


def _size(steps: Vector) -> float:
    return float(np.sqrt(np.mean(steps**2)))


def _of_validations(history: RunHistory) -> Iterator[Alarm]:
    played = [match for match in history.validations if match.tally.pairs]
    found = estimate(played[-1].tally) if played else None
    if found is not None and found.value + _CERTAIN * found.error < 0.0:
        yield Alarm(
            kind=AlarmKind.WORSE,
            subject=f"validation {played[-1].iteration_number}",
            found=f"the tuned values are {found.value:+.1f} ± {found.error:.1f} Elo (95%) worse",
            advice="do not use them; look for faults of engines or workers",
        )


def of_results(workers: Sequence[WorkerShare]) -> Iterator[Alarm]:
    """Workers whose pairs are decided more or less clearly than those of all the others.

    Pairs are counted by |wins - losses|, 0 to 2: which side wins differs from iteration to
    iteration, and so from worker to worker.
    """
    enough = [worker for worker in workers if worker.tally.pairs >= _FEWEST_PAIRS]
    total = sum((worker.tally for worker in enough), Tally())
    for worker in enough if len(enough) > 1 else ():
        own, others = _folded(worker.tally), _folded(total.without(worker.tally))
        apart = np.max(np.abs(own / own.sum() - others / others.sum()))
        chance = _chance(own, others)
        if chance < LEVEL / len(enough) and apart > _DIFFERENCE:
            yield Alarm(
                kind=AlarmKind.WORKER_RESULTS,
                subject=worker.worker,
                found=f"of its {worker.tally.pairs} pairs {_shares(own)}; of the others' "
                f"{_shares(others)} (p = {chance:.1g})",
                advice="compare its speed and faults; `purge --worker` takes its results out",
            )


def _shares(counts: Vector) -> str:
    even, half, whole = counts / counts.sum()
    return f"{even:.0%} are even, {half:.0%} won by one point and {whole:.0%} by two"


def _folded(tally: Tally) -> Vector:
    """Pairs that were even, won by one point, and won by two."""
    ll, ld, even, wd, ww = tally.pentanomial
    return np.array([even, ld + wd, ll + ww], dtype=np.float64)


def _chance(own: Vector, others: Vector) -> float:
    """That two samples of one distribution differ as much: Pearson's chi-square."""
    counts = np.array([own, others])
    counts = counts[:, counts.sum(axis=0) > 0.0]
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / counts.sum()
    freedom = counts.shape[1] - 1
    if freedom == 0:
        return 1.0
    return chi_square_tail(float(np.sum((counts - expected) ** 2 / expected)), freedom)


def of_speed(workers: Sequence[WorkerShare]) -> Iterator[Alarm]:
    """Workers whose engines make less than half as many nodes a second as usual."""
    known = {w.worker: speed for w in workers if (speed := w.nodes_per_second) is not None}
    if len(known) < _FEWEST_WORKERS:
        return
    usual = median(known.values())
    for name, speed in known.items():
        if speed < _SLOW * usual:
            yield Alarm(
                kind=AlarmKind.WORKER_SPEED,
                subject=name,
                found=f"{speed / 1000:.0f} knps, where {usual / 1000:.0f} are usual",
                advice="fewer slots on that machine, if its cores are shared",
            )
