"""The workers of a database, and the machines of a run whose results, faults or speed stand out.

All machines play the same iterations, so their games have equal chances. But they may play at
different times of a run, so counts are compared within groups of consecutive iterations and the
differences added up (`cochran_mantel_haenszel`).

Three counts are tested: pairs by |wins - losses|, 0 to 2 (which side wins differs from iteration to
iteration), batches with a void game, and batches with a game lost on time. The level is divided by
the number of machines and tests (Bonferroni), and a difference that is certain but small does not
count. The machine that differs most is taken out before the others are compared again: otherwise
its results would count among those of the others.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, comb
from statistics import median

import numpy as np

from spsa.core.params import Vector
from spsa.core.scoring import chi_square_tail
from spsa.db import Store
from spsa.db.read_queries import WorkerShare
from spsa.db.tables import Run, SetAsideRow, Worker
from spsa.protocol import ACTIVE_SECONDS, words_of
from spsa.report.events import Alarm, AlarmKind
from spsa.report.table import Column, View, ago, count, percent, thousands, unless_zero, values

LEVEL = 0.0003
"""The chance that one look at equal machines shows any of them as standing out."""

_COMPARED = 5_000
"""Machines are compared by the last iterations of a run, so many at most."""

_GROUPS = 50
"""Groups of iterations in which machines are compared."""

_TESTS = 3
_MIN_PAIRS = 50
_MIN_MACHINES = 3  # of two that differ, the sick one cannot be told from the other
_DIFFERENCE = 0.1  # of the share of one of the three kinds of pairs
_MIN_FAULTS = 5  # batches
_FAULTS = 2.0  # times as often as in the others
_SLOW = 0.5  # of the median speed


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineReport:
    """One machine beside those that do not stand out.

    `pairs` were even, won by one point and won by two; `chi_square` compares them with the others'.
    `void_batches` and `late_batches` have a void game, or one that was lost on time. `speed` is its
    nodes a second over the median of all machines, None where unknown. `alarms` say by what it
    stands out.
    """

    machine: str
    pairs: tuple[int, int, int]
    batches: int
    void_batches: int
    late_batches: int
    chi_square: float
    speed: float | None = None
    alarms: tuple[Alarm, ...] = ()

    @property
    def is_suspect(self) -> bool:
        """Whether its results may be wrong, as those of a machine that is only slow are not."""
        return any(one.kind is not AlarmKind.WORKER_SPEED for one in self.alarms)

    @property
    def reason(self) -> str:
        """Why it stands out; empty if it does not."""
        return "; ".join(one.found for one in self.alarms)

    @property
    def differs_by(self) -> str:
        """`results, time losses`; empty if by nothing."""
        kinds = (one.kind.removeprefix("worker_").replace("_", " ") for one in self.alarms)
        return ", ".join(kinds)


def compared_machines(store: Store, run: Run) -> tuple[MachineReport, ...]:
    """The machines of a run, by its last iterations; open ones count."""
    return machine_reports(worker_parts(store, run))


def worker_parts(store: Store, run: Run) -> list[WorkerShare]:
    """What workers have played of the last iterations, in groups of them."""
    after = max(0, run.applied - _COMPARED)
    size = max(1, ceil((run.applied - after) / _GROUPS))
    return store.worker_parts(run.id, size, after)


_Finding = tuple[float, Alarm]
"""An alarm, and how likely it is by chance."""


def machine_reports(parts: Sequence[WorkerShare]) -> tuple[MachineReport, ...]:
    """All machines, those that stand out first."""
    counts, out = _counts(parts), list[MachineReport]()
    speeds = _speeds(counts)
    level = LEVEL / (_TESTS * max(1, len(counts)))
    while counts:
        total, few = sum(counts.values(), np.zeros(())), len(counts) < _MIN_MACHINES
        found = dict[str, tuple[float, Sequence[_Finding]]]()
        for name, own in counts.items():
            others = total - own
            pairs = cochran_mantel_haenszel(own[:, _PAIRS], others[:, _PAIRS])
            results = () if few else _of_results(name, own, others, pairs, level)
            found[name] = pairs[0], [*results, *_of_faults(name, own, others, level)]
        chances = {name: min(one[0] for one in its) for name, (_, its) in found.items() if its}
        taken = [min(chances, key=chances.__getitem__)] if chances else [*counts]
        for name in taken:
            chi_square, its = found[name]
            alarms = (*(alarm for _, alarm in its), *_of_speed(name, speeds))
            out.append(_report(name, counts.pop(name), chi_square, speeds, alarms))
    return tuple(sorted(out, key=lambda one: not one.alarms))


_PAIRS, _VOIDS, _LATE, _SPEED = slice(0, 3), slice(3, 5), slice(5, 7), slice(7, 9)
"""Columns of the counts: pairs by |wins - losses|; batches without and with a fault; nodes and the
seconds that they took."""


def _counts(parts: Sequence[WorkerShare]) -> dict[str, Vector]:
    """Of each machine, shape (groups of iterations, 9); the one with most pairs first."""
    groups = {group: i for i, group in enumerate(sorted({part.group for part in parts}))}
    found: dict[str, Vector] = {}
    for one in parts:
        own = found.setdefault(one.machine, np.zeros((len(groups), 9)))
        ll, ld, even, wd, ww = one.tally.pentanomial
        own[groups[one.group]] += (
            *(even, ld + wd, ll + ww),
            *(one.batches - one.void_batches, one.void_batches),
            *(one.batches - one.late_batches, one.late_batches),
            *(one.nodes, one.think_seconds),
        )
    return dict(sorted(found.items(), key=lambda one: -one[1][:, _PAIRS].sum()))


def _report(
    name: str, own: Vector, chi_square: float, speeds: dict[str, float], alarms: tuple[Alarm, ...]
) -> MachineReport:
    even, half, whole, sound, void, _, late, *_ = (int(n) for n in own.sum(axis=0))
    return MachineReport(
        machine=name,
        pairs=(even, half, whole),
        batches=sound + void,
        void_batches=void,
        late_batches=late,
        chi_square=chi_square,
        speed=speeds[name] / median(speeds.values()) if speeds.get(name) else None,
        alarms=alarms,
    )


def cochran_mantel_haenszel(own: Vector, others: Vector) -> tuple[float, float]:
    """Whether two rows of counts, shape (groups, categories), have one distribution in every group.

    Returns chi-square and its chance. Differences from the expected counts, and their covariances
    for fixed margins, are added up over the groups (Landis, Heyman & Koch 1978; Agresti 2013,
    section 8.4.3).
    """
    total, first, size = own + others, own.sum(axis=1), (own + others).sum(axis=1)
    shared = (first > 0.0) & (first < size)
    own, first, size = own[shared], first[shared], size[shared]
    share = total[shared] / size[:, None]
    apart = (own - first[:, None] * share).sum(axis=0)[1:]
    weight = first * (size - first) / (size - 1.0)
    covariance = np.diag(weight @ share) - np.einsum("h,hj,hk->jk", weight, share, share)
    rest = covariance[1:, 1:]
    value = max(0.0, float(apart @ np.linalg.pinv(rest) @ apart))
    freedom = max(1, int(np.linalg.matrix_rank(rest)))
    return value, chi_square_tail(value, freedom)


def _of_results(
    name: str, own: Vector, others: Vector, pairs: tuple[float, float], level: float
) -> Iterator[_Finding]:
    value, chance = pairs
    mine, theirs = own.sum(axis=0)[_PAIRS], others.sum(axis=0)[_PAIRS]
    if chance >= level or mine.sum() < _MIN_PAIRS:
        return
    if np.max(np.abs(mine / mine.sum() - theirs / theirs.sum())) > _DIFFERENCE:
        found = (
            f"of its {mine.sum():.0f} pairs {_shares(mine)}; of the others' {_shares(theirs)} "
            f"(chi-square {value:.0f}, p = {chance:.1g})"
        )
        yield chance, Alarm(AlarmKind.WORKER_RESULTS, name, found)


def _shares(counts: Vector) -> str:
    even, half, whole = counts / counts.sum()
    return f"{even:.0%} are even, {half:.0%} won by one point and {whole:.0%} by two"


def _of_faults(name: str, own: Vector, others: Vector, level: float) -> Iterator[_Finding]:
    """More faults than the others have; fewer are no fault.

    Faults are rare, so their chance is exact and not that of chi-square.
    """
    for kind, what, columns in (
        (AlarmKind.WORKER_VOIDS, "a void game", _VOIDS),
        (AlarmKind.WORKER_TIME_LOSSES, "a loss on time", _LATE),
    ):
        mine, theirs = own.sum(axis=0)[columns], others.sum(axis=0)[columns]
        often, usual = mine[1] / mine.sum(), theirs[1] / max(1.0, theirs.sum())
        if mine[1] < _MIN_FAULTS or often <= _FAULTS * usual:
            continue
        if (chance := exact_chance(own[:, columns], others[:, columns])) < level:
            found = (
                f"{often:.1%} of its {mine.sum():.0f} batches had {what}, of the others' "
                f"{usual:.1%} (p = {chance:.1g})"
            )
            yield chance, Alarm(kind, name, found)


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
        ways = [comb(faults, n) * comb(free, size - n) for n in range(first, min(size, faults) + 1)]
        least += first
        chances = np.convolve(chances, [n / sum(ways) for n in ways])
    return float(chances[round(own[:, 1].sum()) - least :].sum())


def _speeds(counts: dict[str, Vector]) -> dict[str, float]:
    """Nodes a second of every machine, where they are known."""
    sums = {name: own[:, _SPEED].sum(axis=0) for name, own in counts.items()}
    return {name: nodes / seconds for name, (nodes, seconds) in sums.items() if nodes and seconds}


def _of_speed(machine: str, speeds: dict[str, float]) -> Iterator[Alarm]:
    usual = median(speeds.values()) if len(speeds) >= _MIN_MACHINES else 0.0
    if (speed := speeds.get(machine, usual)) < _SLOW * usual:
        found = f"{speed / 1000:.0f} knps, where {usual / 1000:.0f} are usual"
        yield Alarm(AlarmKind.WORKER_SPEED, machine, found)


MACHINES = View(
    "machines of this run against the others",
    (
        Column("machine", "machine", kind="name"),
        Column("pairs", "pairs", lambda one: sum(one.pairs)),
        Column("pairs_by_points", "", "pairs"),
        Column(
            "",
            "even, 1, 2 points",
            lambda one: [n / max(1, sum(one.pairs)) for n in one.pairs],
            lambda shares: " ".join(map(percent, shares)),
            rank=3,
        ),
        Column("results_chi_square", "chi-square", "chi_square", "{:.1f}".format, rank=1),
        Column("batches", "batches", rank=4),
        Column("void_batches", "void", rank=2, note="batches with a void game"),
        Column("late_batches", "late", rank=2, note="batches with a loss on time"),
        Column("speed", "speed", show=percent, rank=1, note="of the median of all machines"),
        Column("is_suspect"),
        Column("findings", "", "alarms", of=View("findings", values("kind", "found"))),
        Column("", "stands out by", "differs_by", kind="text", alarm=lambda one: bool(one.alarms)),
    ),
)
"""A line a machine, those that stand out first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetMember:
    """A worker, what its machine may play, and how many batches that machine has failed.

    `share` is what it has played of a run, `report` compares its machine with the others there;
    both are None where that was not asked for, or nothing was played.
    """

    worker: Worker
    is_revoked: bool = False
    set_aside: tuple[SetAsideRow, ...] = ()
    failed_batches: int = 0
    share: WorkerShare | None = None
    report: MachineReport | None = None

    @property
    def state(self) -> str:
        """`revoked`, `set aside for the binary 1a2b: reason`; empty where it may play all."""
        told = ["revoked"] if self.is_revoked else []
        for one in self.set_aside:
            which = f" for the binary {one.sha256[:12]}" if one.sha256 else ""
            told.append(f"set aside{which}: {one.reason}")
        return "; ".join(told)

    @property
    def is_set_aside(self) -> bool:
        """Whether its machine is given no batches at all."""
        return any(one.sha256 is None for one in self.set_aside)

    @property
    def is_present(self) -> bool:
        """Whether it may play, and was heard of lately or is playing games."""
        heard = self.worker.seconds_since_seen < ACTIVE_SECONDS or self.worker.games_leased > 0
        return heard and not self.is_revoked

    @property
    def nodes_per_second(self) -> float | None:
        """The mean of the run, where that is known; else of the last batch."""
        return self.worker.nps if self.share is None else self.share.nodes_per_second


def fleet(
    store: Store, shares: Sequence[WorkerShare] = (), machines: Sequence[MachineReport] = ()
) -> tuple[FleetMember, ...]:
    """All workers, the one heard of last first, with what is known of a run."""
    aside, failed = store.machines_set_aside(), store.failed_batches()
    reports = {one.machine: one for one in machines}
    by_name = {share.worker: share for share in shares}
    revoked = {one.name for one in store.machines() if one.revoked_at is not None}
    return tuple(
        FleetMember(
            worker=worker,
            is_revoked=worker.host in revoked,
            set_aside=tuple(one for one in aside if one.machine == worker.host),
            failed_batches=failed.get(worker.host, 0),
            share=by_name.get(worker.name),
            report=reports.get(worker.host),
        )
        for worker in sorted(store.workers(), key=lambda worker: worker.seconds_since_seen)
    )


_SET_ASIDE = View("set aside", values("machine", "sha256", "reason", "actor", "at"))


def scale_text(share: WorkerShare) -> str:
    """By what a worker multiplied times; empty where all played by the times of the run."""
    if share.least_scale == share.most_scale == 1.0:
        return ""
    least, most = share.least_scale, share.most_scale
    return f"{least:.3g}" if least == most else f"{least:.3g} to {most:.3g}"


SHARES = View(
    "workers of this run",
    values(
        *("worker", "machine", "batches", "tally", "games_per_hour", "nodes_per_second"),
        *("void_games", "time_losses", "nodes", "seconds", "think_seconds"),
        *("least_scale", "most_scale", "void_batches", "late_batches"),
    ),
)

_CLAIMED = "games that it has claimed and not yet reported"
_FAILED = "of its machine, in all runs"

WORKERS = View(
    "workers",
    (
        Column("name", "name", "worker.name", kind="name"),
        Column("machine", "machine", "worker.host", kind="name", rank=1),
        Column(
            "", "stands out by", "report.differs_by", kind="text", rank=1, alarm=lambda one: True
        ),
        Column("", "state", "state", kind="text", rank=-1, alarm=lambda one: one.is_set_aside),
        Column("concurrency", "slots", "worker.concurrency"),
        Column("games_leased", "claimed", "worker.games_leased", count, rank=2, note=_CLAIMED),
        Column("", "games of the run", "share.tally.games", count, rank=2),
        Column("", "void", "share.void_games", unless_zero, rank=3),
        Column("", "time losses", "share.time_losses", unless_zero, rank=3),
        Column("failed_batches", "failed batches", show=unless_zero, rank=2, note=_FAILED),
        Column("", "speed", "report.speed", percent, rank=6, note="of the median of all machines"),
        Column("", "knps", "nodes_per_second", thousands, rank=5, note="thousand nodes a second"),
        Column("", "games/h", "share.games_per_hour", "{:,.0f}".format, rank=4, note="of one slot"),
        Column("", "scale", "share", scale_text, rank=6, note="by what it multiplies times"),
        Column("sandbox", "sandbox", "worker.sandbox", kind="word", rank=8),
        Column("games", "all games", "worker.games", count, rank=4),
        Column("seconds_since_seen", "seen", "worker.seconds_since_seen", ago, rank=-1),
        *values("platform", "cores", "nps", "scale", "version", of="worker"),
        Column("provides", "", lambda one: words_of(one.worker.provides)),
        *values("batches", "void_games", "time_losses", of="worker"),
        Column("set_aside", of=_SET_ASIDE),
        Column("of_run", "", "share", of=SHARES),
        Column("against_others", "", "report", of=MACHINES),
    ),
    "All workers of the database, the one heard of last first. Results, speed and faults are of "
    "reported batches of this run's tuning iterations.",
    "No worker is there: `compete --spsa -c 8` starts one.",
)
