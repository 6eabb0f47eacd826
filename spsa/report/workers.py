"""The workers of a database: what each is, what it plays, and why its machine gets no batches."""

from collections.abc import Sequence
from dataclasses import dataclass

from spsa.db import Store
from spsa.db.history_queries import WorkerShare
from spsa.db.read_queries import WorkerRow
from spsa.db.tables import SetAside
from spsa.report.machines import MACHINES, MachineReport
from spsa.report.table import Column, View, ago, by, count, elo_text, percent, unless_zero, values

PRESENT_SECONDS = 120.0
"""A worker that was heard of within two minutes is there; one with games in the air as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetMember:
    """A worker, why its machine is set aside, and how many batches that machine has failed.

    `share` is what it has played of a run, `report` compares its machine with the others there;
    both are None where that was not asked for, or nothing was played.
    """

    worker: WorkerRow
    set_aside: tuple[SetAside, ...] = ()
    failed_batches: int = 0
    share: WorkerShare | None = None
    report: MachineReport | None = None

    @property
    def state(self) -> str:
        """`set aside for the binary 1a2b: reason`; empty where it is given all batches."""
        aside = [
            (one, one.sha256 and f" for the binary {one.sha256[:12]}") for one in self.set_aside
        ]
        return "; ".join(f"set aside{which or ''}: {one.reason}" for one, which in aside)

    @property
    def is_set_aside(self) -> bool:
        """Whether its machine is given no batches at all."""
        return any(one.sha256 is None for one in self.set_aside)

    @property
    def is_present(self) -> bool:
        return self.worker.seconds_since_seen < PRESENT_SECONDS or self.worker.games_leased > 0

    @property
    def void_games(self) -> int:
        """Those of the run, where that is known; else of all runs and matches."""
        return (self.share or self.worker).void_games

    @property
    def time_losses(self) -> int:
        return (self.share or self.worker).time_losses

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
    return tuple(
        FleetMember(
            worker=worker,
            set_aside=tuple(one for one in aside if one.machine == worker.host),
            failed_batches=failed.get(worker.host, 0),
            share=by_name.get(worker.name),
            report=reports.get(worker.host),
        )
        for worker in sorted(store.workers(), key=lambda worker: worker.seconds_since_seen)
    )


_SET_ASIDE = View("set aside", values("machine", "sha256", "reason", "actor", "at"))


def scale_text(share: WorkerShare | None) -> str:
    """By what a worker multiplied times; empty where all played by the times of the run."""
    if share is None or share.least_scale == share.most_scale == 1.0:
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


_KILO = by("{:,.0f}", 1e-3)
_CLAIMED = "games that it has claimed and not yet reported"


WORKERS = View(
    "workers",
    (
        Column("name", "name", "worker.name", kind="name"),
        Column("machine", "machine", "worker.host", kind="name", rank=6),
        Column(
            "", "stands out by", "report.differs_by", kind="text", rank=1, alarm=lambda one: True
        ),
        Column("", "state", "state", kind="text", rank=1, alarm=lambda one: one.is_set_aside),
        Column("concurrency", "slots", "worker.concurrency"),
        Column("games_leased", "claimed", "worker.games_leased", count, rank=2, note=_CLAIMED),
        Column("", "games of the run", "share.tally.games", count, rank=1),
        Column("", "Elo ± 95%", "share.tally", elo_text, rank=5),
        Column("", "void", "void_games", unless_zero, rank=3),
        Column("", "time losses", "time_losses", unless_zero, rank=3),
        Column("failed_batches", "failed batches", show=unless_zero, rank=2),
        Column("", "speed", "report.speed", percent, rank=6, note="of the median of all machines"),
        Column("", "knps", "nodes_per_second", _KILO, rank=5, note="thousand nodes a second"),
        Column("", "games/h", "share.games_per_hour", by("{:,.0f}"), rank=4, note="of one slot"),
        Column("", "scale", "share", scale_text, rank=6, note="by what it multiplies times"),
        Column("sandbox", "sandbox", "worker.sandbox", kind="word", rank=8),
        Column("games", "all games", "worker.games", count, rank=4),
        Column("seconds_since_seen", "seen", "worker.seconds_since_seen", ago, rank=2),
        *values("platform", "cores", "nps", "scale", "version", "provides", of="worker"),
        *values("batches", "void_games", "time_losses", of="worker"),
        Column("set_aside", of=_SET_ASIDE),
        Column("of_run", "", "share", of=SHARES),
        Column("against_others", "", "report", of=MACHINES),
    ),
    "All workers of the database, the one heard of last first. Results, speed and faults are of "
    "reported batches of this run's tuning iterations.",
    "No worker has registered yet. `compete --spsa -c 8` starts one.",
)
