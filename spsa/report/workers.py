"""The workers of a database, and which machines are set aside, for people and for programs."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Group, RenderableType

from spsa.builds.requirements import MACHINE_WORDS
from spsa.db import Store
from spsa.db.history_queries import WorkerShare
from spsa.db.read_queries import WorkerRow
from spsa.db.tables import SetAside
from spsa.lifecycle import RunStatus
from spsa.report.alarm import Alarm, AlarmKind
from spsa.report.machines import MachineReport, folded, of_machines
from spsa.report.runs import duration
from spsa.report.status import RATE_SECONDS, Status
from spsa.report.table import Column, FittedTable
from spsa.report.text import elo_text, sentence, unless_zero


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetMember:
    """A worker, why its machine is set aside, and how many batches that machine has failed.

    `report` compares its machine with the others of a run, if it has played any of that.
    """

    worker: WorkerRow
    set_aside: Sequence[SetAside]
    failed_batches: int
    report: MachineReport | None = None

    @property
    def state(self) -> str:
        """`set aside: reason`, with the binary where it is one; empty where it is given all."""
        return "; ".join(_told(one) for one in self.set_aside)

    @property
    def is_set_aside(self) -> bool:
        """Whether its machine is given no batches at all."""
        return any(one.sha256 is None for one in self.set_aside)

    @property
    def stands_out_by(self) -> str:
        """By what its machine differs, as `results, void games`; empty if by nothing."""
        return "" if self.report is None else _differs_by(self.report)


def fleet(store: Store, machines: Sequence[MachineReport] = ()) -> tuple[FleetMember, ...]:
    """All workers, the one heard of last first, with what is known of their `machines`."""
    aside, failed = store.machines_set_aside(), store.failed_batches()
    reports = {one.machine: one for one in machines}
    return tuple(
        FleetMember(
            worker=worker,
            set_aside=tuple(one for one in aside if one.machine == worker.host),
            failed_batches=failed.get(worker.host, 0),
            report=reports.get(worker.host),
        )
        for worker in sorted(store.workers(), key=lambda worker: worker.seconds_since_seen)
    )


def to_json(members: Sequence[FleetMember]) -> dict[str, Any]:
    """For programs."""
    return {"workers": [_json(member) for member in members]}


def fleet_table(members: Sequence[FleetMember], shares: Sequence[WorkerShare]) -> FittedTable:
    """A line a worker; `shares` are what workers have played of one run."""
    table = FittedTable(
        "workers, with what they have played of this run",
        (
            Column("name", is_number=False),
            Column("machine", is_number=False),
            Column("seen"),
            Column("games"),
            Column("void", 2),
            Column("knps", 3),
            Column("scale", 5),
            Column("failed batches", 1),
            Column("labels", 4, is_number=False),
            Column("state", is_number=False),
        ),
    )
    by_worker = {share.worker: share for share in shares}
    for member in members:
        worker, share = member.worker, by_worker.get(member.worker.name)
        table.add(
            worker.name,
            worker.host,
            f"{duration(worker.seconds_since_seen)} ago",
            "0" if share is None else str(share.tally.games),
            "" if share is None else unless_zero(share.void_games),
            "" if share is None else _knps(share),
            "" if worker.scale is None else f"{worker.scale:.3g}",
            unless_zero(member.failed_batches),
            " ".join(word for word in worker.provides if word not in MACHINE_WORDS),
            member.state,
        )
    return table


def shares_table(shares: Sequence[WorkerShare]) -> FittedTable:
    """What each worker has played of one run, most games first."""
    table = FittedTable(
        "workers of this run",
        (
            Column("name", is_number=False),
            Column("machine", 1, is_number=False),
            Column("batches", 2),
            Column("games"),
            Column("plus against minus, Elo ± 95%", 1),
            Column("games an hour a slot", 1),
            Column("knps", 2),
            Column("scale", 2),
            Column("void", 3),
            Column("time losses", 3),
        ),
    )
    for share in shares:
        per_hour = share.games_per_hour
        table.add(
            share.worker,
            share.machine,
            str(share.batches),
            str(share.tally.games),
            elo_text(share.tally),
            "" if per_hour is None else f"{per_hour:,.0f}",
            _knps(share),
            scale_text(share),
            unless_zero(share.void_games),
            unless_zero(share.time_losses),
        )
    return table


def _knps(share: WorkerShare) -> str:
    """The mean over all its games of a run; empty where no time is known."""
    speed = share.nodes_per_second
    return "" if speed is None else f"{speed / 1000:.0f}"


def scale_text(share: WorkerShare) -> str:
    """By what a worker multiplied times; empty where all played by the times of the run."""
    least, most = share.least_scale, share.most_scale
    if least == most == 1.0:
        return ""
    return f"{least:.3g}" if least == most else f"{least:.3g} to {most:.3g}"


_SCALES_APART = 1.2


def of_scales(shares: Sequence[WorkerShare]) -> Iterator[Alarm]:
    """A machine gets slower, or faster: its games had other times than they would have now."""
    for share in shares:
        if share.most_scale > _SCALES_APART * share.least_scale:
            yield Alarm(
                kind=AlarmKind.WORKER_SCALE,
                subject=share.worker,
                found=f"its scale was {share.least_scale:.3g} to {share.most_scale:.3g}",
                advice="look for other work, heat or a power limit on that machine",
            )


_BUSY = 1 / 3
_MIN_RESULTS = 10  # the first games wait for the first engines


def of_slots(status: Status, shares: Sequence[WorkerShare]) -> Iterator[Alarm]:
    """The slots of the fleet have no game most of the time, by what they play in an hour.

    None while several runs share the fleet, or where a standstill says it already.
    """
    run = status.run
    if run.status is not RunStatus.RUNNING or run.applied < _MIN_RESULTS or status.beside:
        return
    slots = {worker.name: worker.concurrency for worker in status.playing}
    hourly = sum(slots.get(share.worker, 0) * (share.games_per_hour or 0.0) for share in shares)
    busy = 3600 * status.games_per_second / hourly if hourly else 0.0
    if 0.0 < busy < _BUSY:
        yield Alarm(
            kind=AlarmKind.WAITING_FOR_WORK,
            subject=run.name,
            found=f"the slots played {busy:.0%} of the last {RATE_SECONDS / 60:.0f} minutes",
            advice="more iterations in flight, or more games in each, keep them busy",
        )


_BY = {
    AlarmKind.WORKER_RESULTS: "results",
    AlarmKind.WORKER_VOIDS: "void games",
    AlarmKind.WORKER_TIME_LOSSES: "time losses",
    AlarmKind.WORKER_SPEED: "speed",
}


def _differs_by(report: MachineReport) -> str:
    return ", ".join(_BY[finding.kind] for finding in report.findings)


def machines_table(reports: Sequence[MachineReport]) -> FittedTable:
    """A line a machine, those that stand out first, with its residuals."""
    table = FittedTable(
        "machines of this run against the others",
        (
            Column("machine", is_number=False),
            Column("pairs"),
            Column("even, 1, 2 points", 3),
            Column("chi-square", 1),
            Column("batches", 4),
            Column("void (deviations)", 2),
            Column("lost on time (deviations)", 2),
            Column("speed", 1),
            Column("stands out by", is_number=False),
        ),
    )
    for one in reports:
        even, half, whole = folded(one.tally) / max(1, one.tally.pairs)
        table.add(
            one.machine,
            str(one.tally.pairs),
            f"{even:.0%} {half:.0%} {whole:.0%}",
            f"{one.results.value:.1f}",
            str(one.batches),
            f"{one.void_batches} ({one.voids.residual:+.1f})",
            f"{one.late_batches} ({one.late.residual:+.1f})",
            "" if one.speed is None else f"{one.speed:.0%}",
            _differs_by(one),
        )
    return table


def machines_text(
    reports: Sequence[MachineReport], set_aside: Collection[str] = ()
) -> RenderableType:
    """The table, and a sentence with the numbers for everything by which a machine stands out."""
    if len(reports) == 1:
        return sentence(f"one machine has played, {reports[0].machine}: none to compare it with")
    found = (sentence(str(alarm)) for alarm in of_machines(reports, set_aside))
    return Group(machines_table(reports), *found)


def machine_json(one: MachineReport) -> dict[str, Any]:
    """For programs; chances are those of a look at equal machines."""
    return {
        "machine": one.machine,
        "pairs": one.tally.pairs,
        "even": int(folded(one.tally)[0]),
        "won_by_one_point": int(folded(one.tally)[1]),
        "won_by_two_points": int(folded(one.tally)[2]),
        "results_chi_square": one.results.value,
        "results_chance": one.results.chance,
        "batches": one.batches,
        "void_batches": one.void_batches,
        "void_residual": one.voids.residual,
        "late_batches": one.late_batches,
        "late_residual": one.late.residual,
        "speed": one.speed,
        "is_suspect": one.is_suspect,
        "findings": [{"kind": finding.kind, "found": finding.text} for finding in one.findings],
    }


def _told(one: SetAside) -> str:
    which = "" if one.sha256 is None else f" for the binary {one.sha256[:12]}"
    return f"set aside{which}: {one.reason}"


def _json(member: FleetMember) -> dict[str, Any]:
    worker = asdict(member.worker)
    aside = [
        {name: getattr(one, name) for name in ("machine", "sha256", "reason", "actor")}
        | {"at": one.at.isoformat()}
        for one in member.set_aside
    ]
    return {
        **{"machine" if name == "host" else name: value for name, value in worker.items()},
        "failed_batches": member.failed_batches,
        "set_aside": aside,
        "against_others": None if member.report is None else machine_json(member.report),
    }
