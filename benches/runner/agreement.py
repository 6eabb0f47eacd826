"""Whether two runners played the same match: the same games, or the same distribution of pairs."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import erfc, exp, gamma, sqrt

from benches.runner.games import Played

_FEW = 5.0  # expected counts below which the chi-square distribution is no good description


@dataclass(frozen=True, slots=True)
class Test:
    """Pearson's chi-square of two rows of counts; `p` is the chance of so much or more."""

    statistic: float
    degrees: int
    p: float


def chi_square(first: Sequence[int], second: Sequence[int]) -> Test:
    """Whether two pentanomials are of one distribution; rare outcomes count with a neighbour."""
    columns = _joined(list(zip(first, second, strict=True)))
    rows = [sum(column[row] for column in columns) for row in (0, 1)]
    statistic = 0.0
    for column in columns:
        for seen, row in zip(column, rows, strict=True):
            expected = sum(column) * row / sum(rows)
            statistic += (seen - expected) ** 2 / expected
    degrees = len(columns) - 1
    return Test(statistic, degrees, survival(statistic, degrees))


def _joined(columns: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Neighbours put together until both rows may expect enough of each column."""
    found: list[tuple[int, int]] = []
    rows = [sum(column[row] for column in columns) or 1 for row in (0, 1)]
    share = min(rows) / sum(rows)
    for column in columns:
        if found and sum(found[-1]) * share < _FEW:
            found[-1] = (found[-1][0] + column[0], found[-1][1] + column[1])
        else:
            found.append(column)
    if len(found) > 1 and sum(found[-1]) * share < _FEW:
        last = found.pop()
        found[-1] = (found[-1][0] + last[0], found[-1][1] + last[1])
    return found


def survival(statistic: float, degrees: int) -> float:
    """P(X >= statistic) of the chi-square distribution, by its recurrence in steps of two."""
    half = statistic / 2
    if degrees % 2:
        found, done = erfc(sqrt(half)), 1
    else:
        found, done = (exp(-half), 2) if degrees else (1.0, 0)
    while done < degrees:
        found += half ** (done / 2) * exp(-half) / gamma(done / 2 + 1)
        done += 2
    return found


def identical(first: Sequence[Played], second: Sequence[Played]) -> int:
    """How many games two runners played alike, move for move and result for result."""
    return len(set(first) & set(second))
