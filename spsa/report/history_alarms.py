"""What is wrong with a run as its whole history shows it: for a report, not for every look."""

from collections.abc import Iterator

import numpy as np

from spsa.algorithms import Vector
from spsa.report.alarm import Alarm, AlarmKind
from spsa.report.history import RunHistory
from spsa.report.machines import of_machines
from spsa.report.status import estimate

_FEWEST_POINTS = 80
_GROWTH = 2.0
_CERTAIN = 3.29 / 1.96  # a 99.9% interval by a 95% one


def of_history(history: RunHistory) -> tuple[Alarm, ...]:
    """The alarms of a run's history."""
    return (
        *_of_divergence(history),
        *_of_validations(history),
        *of_machines(history.machines),
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
