"""Machines of a run whose results, faults or speed differ from those of all the others.

All machines play the same iterations, so their games have equal chances. But they may play at
different times of a run, so counts are compared within groups of consecutive iterations and the
differences added up (`cochran_mantel_haenszel`).

Three counts are tested: pairs by |wins - losses|, 0 to 2 (which side wins differs from iteration to
iteration), batches with a void game, and batches with a game lost on time. The level is divided by
the number of machines and tests (Bonferroni), and a difference that is certain but small does not
count. The machine that differs most is taken out before the others are compared again: otherwise
its results would count among those of the others.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from math import copysign, lgamma, sqrt
from statistics import median

import numpy as np

from spsa.algorithms import Vector
from spsa.core.scoring import Tally, chi_square_tail
from spsa.db.history_queries import WorkerShare
from spsa.report.alarm import Alarm, AlarmKind
from spsa.report.formats import by, percent
from spsa.report.table import Column, View

LEVEL = 0.0003
"""The chance that one look at equal machines shows any of them as standing out."""

_TESTS = 3
_MIN_PAIRS = 50
_MIN_MACHINES = 3  # of two that differ, the sick one cannot be told from the other
_DIFFERENCE = 0.1  # of the share of one of the three kinds of pairs
_MIN_FAULTS = 5  # batches
_FAULTS = 2.0  # times as often as in the others
_SLOW = 0.5  # of the median speed


@dataclass(frozen=True, slots=True)
class ChiSquare:
    """A statistic, its degrees of freedom (1 or 2), and how many more there are than expected."""

    value: float
    freedom: int
    difference: float

    @property
    def chance(self) -> float:
        """That it is as large by chance."""
        return chi_square_tail(self.value, self.freedom)

    @property
    def residual(self) -> float:
        """The difference in standard deviations, where it has one degree of freedom."""
        return copysign(sqrt(self.value), self.difference)


@dataclass(frozen=True, slots=True)
class Finding:
    """By what a machine stands out; an alarm has the same kind."""

    kind: AlarmKind
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineReport:
    """One machine beside those that do not stand out.

    `void_batches` and `late_batches` have a void game, or one that was lost on time. `speed` is its
    nodes a second over the median of all machines, None where unknown.
    """

    machine: str
    tally: Tally
    batches: int
    void_batches: int
    late_batches: int
    results: ChiSquare
    voids: ChiSquare
    late: ChiSquare
    speed: float | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def is_suspect(self) -> bool:
        """Whether its results may be wrong, as those of a machine that is only slow are not."""
        return any(one.kind is not AlarmKind.WORKER_SPEED for one in self.findings)

    @property
    def reason(self) -> str:
        """Why it stands out; empty if it does not."""
        return "; ".join(one.text for one in self.findings)


def machine_reports(parts: Sequence[WorkerShare]) -> tuple[MachineReport, ...]:
    """All machines, those that stand out first."""
    counts, out = _counted(parts), list[MachineReport]()
    level = LEVEL / (_TESTS * max(1, len(counts)))
    while True:
        tables = [one.tables for one in counts.values()]
        total = [sum(same) for same in zip(*tables, strict=True)]
        found = [_compared(one, total, len(counts), level) for one in counts.values()]
        if not any(report.findings for report in found):
            return _with_speed((*out, *found), parts)
        worst = min(found, key=lambda one: (not one.findings, _least_chance(one)))
        out.append(worst)
        del counts[worst.machine]


def of_machines(
    reports: Sequence[MachineReport], set_aside: Collection[str] = ()
) -> Iterator[Alarm]:
    """An alarm for everything by which a machine stands out; `set_aside` get no batches already."""
    for report in reports:
        for one in report.findings:
            advice = _advice(one, report.machine, report.machine in set_aside)
            yield Alarm(kind=one.kind, subject=report.machine, found=one.text, advice=advice)


def _advice(finding: Finding, machine: str, is_set_aside: bool) -> str:
    if finding.kind is AlarmKind.WORKER_SPEED:
        return "start fewer slots on that machine (-c) if other programs use its cores"
    no_more = f"`spsa-master workers exclude {machine}` gives it no more games"
    done = "it is set aside" if is_set_aside else no_more
    return f"{done}, `spsa-master purge --suggested` removes its results"


def cochran_mantel_haenszel(own: Vector, others: Vector) -> ChiSquare:
    """Whether two rows of counts, shape (groups, categories), have one distribution in every group.

    Differences from the expected counts, and their covariances for fixed margins, are added up over
    the groups (Landis, Heyman & Koch 1978; Agresti 2013, section 8.4.3). The difference is that of
    all categories after the first.
    """
    total, first, size = own + others, own.sum(axis=1), (own + others).sum(axis=1)
    shared = (first > 0.0) & (first < size)
    own, first, size = own[shared], first[shared], size[shared]
    share = total[shared] / size[:, None]
    apart = (own - first[:, None] * share).sum(axis=0)[1:]
    weight = first * (size - first) / (size - 1.0)
    covariance = np.diag(weight @ share) - np.einsum("h,hj,hk->jk", weight, share, share)
    rest = covariance[1:, 1:]
    value = float(apart @ np.linalg.pinv(rest, hermitian=True) @ apart)
    freedom = int(np.linalg.matrix_rank(rest, hermitian=True))
    return ChiSquare(max(0.0, value), max(1, freedom), float(apart.sum()))


@dataclass(frozen=True, slots=True)
class _Counts:
    """Of one machine, by groups of iterations: three tables of shape (groups, categories).

    Pairs by |wins - losses|; batches without and with a void game, and a loss on time.
    """

    machine: str
    tally: Tally
    tables: tuple[Vector, Vector, Vector]


def _counted(parts: Sequence[WorkerShare]) -> dict[str, _Counts]:
    """By machine, the one with most games first."""
    groups = {group: i for i, group in enumerate(sorted({part.group for part in parts}))}
    found: dict[str, _Counts] = {}
    for share in parts:
        at = groups[share.group]
        known = found.get(share.machine) or _no_counts(share.machine, len(groups))
        pairs, voids, late = known.tables
        pairs[at] += folded(share.tally)
        voids[at] += (share.batches - share.void_batches, share.void_batches)
        late[at] += (share.batches - share.late_batches, share.late_batches)
        found[share.machine] = replace(known, tally=known.tally + share.tally)
    return dict(sorted(found.items(), key=lambda one: -one[1].tally.games))


def _no_counts(machine: str, groups: int) -> _Counts:
    pairs, voids, late = (np.zeros((groups, columns)) for columns in (3, 2, 2))
    return _Counts(machine, Tally(), (pairs, voids, late))


def folded(tally: Tally) -> Vector:
    """Pairs that were even, won by one point, and won by two."""
    ll, ld, even, wd, ww = tally.pentanomial
    return np.array([even, ld + wd, ll + ww], dtype=np.float64)


def _compared(own: _Counts, total: Sequence[Vector], machines: int, level: float) -> MachineReport:
    """A machine against the others; `total` are the tables of all `machines` together."""
    theirs = [table - mine for table, mine in zip(total, own.tables, strict=True)]
    results, voids, late = (
        cochran_mantel_haenszel(*both) for both in zip(own.tables, theirs, strict=True)
    )
    (_, void), (_, lost) = (table.sum(axis=0) for table in own.tables[1:])
    kinds = (
        (AlarmKind.WORKER_VOIDS, "a void game", voids, own.tables[1], theirs[1]),
        (AlarmKind.WORKER_TIME_LOSSES, "a loss on time", late, own.tables[2], theirs[2]),
    )
    enough = machines >= _MIN_MACHINES
    return MachineReport(
        machine=own.machine,
        tally=own.tally,
        batches=int(own.tables[1].sum()),
        void_batches=int(void),
        late_batches=int(lost),
        results=results,
        voids=voids,
        late=late,
        findings=(
            *(_of_results(results, own.tables[0], theirs[0], level) if enough else ()),
            *(finding for kind in kinds for finding in _of_faults(*kind, level)),
        ),
    )


def _of_results(found: ChiSquare, own: Vector, others: Vector, level: float) -> Iterator[Finding]:
    mine, theirs = own.sum(axis=0), others.sum(axis=0)
    if found.chance >= level or mine.sum() < _MIN_PAIRS:
        return
    if np.max(np.abs(mine / mine.sum() - theirs / theirs.sum())) > _DIFFERENCE:
        yield Finding(
            AlarmKind.WORKER_RESULTS,
            f"of its {mine.sum():.0f} pairs {_shares(mine)}; of the others' {_shares(theirs)} "
            f"(chi-square {found.value:.0f}, p = {found.chance:.1g})",
        )


def _shares(counts: Vector) -> str:
    even, half, whole = counts / counts.sum()
    return f"{even:.0%} are even, {half:.0%} won by one point and {whole:.0%} by two"


def _of_faults(
    kind: AlarmKind, what: str, found: ChiSquare, own: Vector, others: Vector, level: float
) -> Iterator[Finding]:
    """More faults than the others have; fewer are no fault.

    Faults are rare, so their chance is exact and not that of chi-square.
    """
    mine, theirs = own.sum(axis=0), others.sum(axis=0)
    often, usual = mine[1] / mine.sum(), theirs[1] / max(1.0, theirs.sum())
    if mine[1] < _MIN_FAULTS or often <= _FAULTS * usual:
        return
    chance = exact_chance(own, others)
    if chance < level:
        yield Finding(
            kind,
            f"{often:.1%} of its {mine.sum():.0f} batches had {what}, of the others' {usual:.1%} "
            f"({found.residual:.1f} deviations, p = {chance:.1g})",
        )


def exact_chance(own: Vector, others: Vector) -> float:
    """The chance that the first row has at least as many in its second column, (groups, 2) each.

    For fixed margins every group is hypergeometric, and the sum of all is their convolution (Gart
    1970; Mehta, Patel & Gray 1985).
    """
    least, chances = 0, np.ones(1)
    for (good, bad), (other_good, other_bad) in zip(own, others, strict=True):
        size, faults = round(good + bad), round(bad + other_bad)
        free = round(other_good + other_bad) + size - faults
        first = max(0, size - free)
        ways = [
            _ways(faults, n) + _ways(free, size - n) for n in range(first, min(size, faults) + 1)
        ]
        weights = np.exp(np.array(ways) - max(ways))
        least, chances = least + first, np.convolve(chances, weights / weights.sum())
    return float(chances[round(own[:, 1].sum()) - least :].sum())


def _ways(n: int, k: int) -> float:
    """The logarithm of the number of ways to choose k of n."""
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def _least_chance(report: MachineReport) -> float:
    return min(report.results.chance, report.voids.chance, report.late.chance)


def _with_speed(
    reports: Sequence[MachineReport], parts: Sequence[WorkerShare]
) -> tuple[MachineReport, ...]:
    """With the speed of each, and the machines that are slow."""
    nodes, seconds = dict.fromkeys((one.machine for one in reports), 0), dict[str, float]()
    for share in parts:
        nodes[share.machine] += share.nodes
        seconds[share.machine] = seconds.get(share.machine, 0.0) + share.think_seconds
    speeds = {name: nodes[name] / time for name, time in seconds.items() if time > 0.0}
    usual = median(speeds.values()) if speeds else 0.0

    def finished(report: MachineReport) -> MachineReport:
        speed = speeds.get(report.machine)
        if speed is None or usual <= 0.0:
            return report
        is_slow = speed < _SLOW * usual and len(speeds) >= _MIN_MACHINES
        text = f"{speed / 1000:.0f} knps, where {usual / 1000:.0f} are usual"
        slow = (Finding(AlarmKind.WORKER_SPEED, text),) if is_slow else ()
        return replace(report, speed=speed / usual, findings=(*report.findings, *slow))

    return tuple(sorted(map(finished, reports), key=lambda one: not one.findings))


_BY = {
    AlarmKind.WORKER_RESULTS: "results",
    AlarmKind.WORKER_VOIDS: "void games",
    AlarmKind.WORKER_TIME_LOSSES: "time losses",
    AlarmKind.WORKER_SPEED: "speed",
}


def differs_by(findings: Sequence[Finding]) -> str:
    """`results, void games`; empty if by nothing."""
    return ", ".join(_BY[one.kind] for one in findings)


def _deviations(faults: str, test: str) -> Column:
    """`3 (+2.1)`: batches, and by how many deviations they are more than expected."""

    def both(one: MachineReport) -> str:
        return f"{getattr(one, faults)} ({getattr(one, test).residual:+.1f})"

    return Column("", f"{faults.split('_')[0]} (deviations)", both, rank=2)


def _points(i: int) -> Callable[[MachineReport], int]:
    return lambda one: int(folded(one.tally)[i])


MACHINES = View(
    "machines of this run against the others",
    (
        Column("machine", "machine", kind="name"),
        Column("pairs", "pairs", "tally.pairs"),
        Column("even", "", _points(0)),
        Column("won_by_one_point", "", _points(1)),
        Column("won_by_two_points", "", _points(2)),
        Column(
            "",
            "even, 1, 2 points",
            lambda one: folded(one.tally) / max(1, one.tally.pairs),
            lambda shares: " ".join(map(percent, shares)),
            rank=3,
        ),
        Column("results_chi_square", "chi-square", "results.value", by("{:.1f}"), rank=1),
        Column("results_chance", "", "results.chance"),
        Column("batches", "batches", rank=4),
        _deviations("void_batches", "voids"),
        _deviations("late_batches", "late"),
        Column("void_batches"),
        Column("void_residual", "", "voids.residual"),
        Column("late_batches"),
        Column("late_residual", "", "late.residual"),
        Column("speed", "speed", show=percent, rank=1, note="of the median of all machines"),
        Column("is_suspect"),
        Column(
            "findings",
            "",
            lambda one: [{"kind": found.kind, "found": found.text} for found in one.findings],
        ),
        Column(
            "",
            "stands out by",
            lambda one: differs_by(one.findings),
            kind="text",
            alarm=lambda one: bool(one.findings),
        ),
    ),
)
"""A line a machine, those that stand out first; chances are those of a look at equal machines."""
