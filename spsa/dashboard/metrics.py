"""The runs and workers of a database in Prometheus' text format, version 0.0.4."""

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite

from spsa.db.store import RunOverview
from spsa.lifecycle import RunStatus
from spsa.report.alarm import AlarmKind
from spsa.report.status import Status, estimate
from spsa.report.workers import FleetMember
from spsa.text import without_passwords

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

Sample = tuple[Mapping[str, str], float | None]


def metrics(
    runs: Sequence[RunOverview], statuses: Sequence[Status], fleet: Sequence[FleetMember]
) -> str:
    """All runs in short, those of `statuses` in detail, and every worker."""
    families = (*_of_runs(runs), *_of_statuses(statuses), *_of_workers(fleet))
    return "".join(line for family in families for line in _lines(*family))


Family = tuple[str, str, str, Sequence[Sample]]
"""Name, type, help and samples."""


def _of_runs(runs: Sequence[RunOverview]) -> Iterator[Family]:
    def each(value: str) -> list[Sample]:
        return [({"run": run.name}, float(getattr(run, value))) for run in runs]

    yield (
        "spsa_run_status",
        "gauge",
        "1 for the status that a run has, 0 for the others.",
        [
            ({"run": run.name, "status": str(status)}, float(run.status is status))
            for run in runs
            for status in RunStatus
        ],
    )
    yield (
        "spsa_run_iterations_applied",
        "gauge",
        "Iterations whose results were applied to theta.",
        each("applied"),
    )
    yield (
        "spsa_run_iterations_planned",
        "gauge",
        "Iterations that the run is planned to apply.",
        each("max_iterations"),
    )
    yield "spsa_run_slots", "gauge", "Slots that play for a run now.", each("slots")
    yield "spsa_run_has_master", "gauge", "1 while a master runs it.", each("has_master")


def _of_statuses(statuses: Sequence[Status]) -> Iterator[Family]:
    def each(values: Sequence[float | None]) -> list[Sample]:
        return [({"run": s.run.name}, value) for s, value in zip(statuses, values, strict=True)]

    yield (
        "spsa_run_games",
        "gauge",
        "Tuning games that count; a purge takes some away.",
        each([s.games.games for s in statuses]),
    )
    yield "spsa_run_void_games", "gauge", "Void games.", each([s.void_games for s in statuses])
    yield (
        "spsa_run_games_per_second",
        "gauge",
        "Games a second in the last five minutes.",
        each([s.games_per_second for s in statuses]),
    )
    yield (
        "spsa_run_seconds_left",
        "gauge",
        "Seconds until the run ends at its present speed.",
        each([s.seconds_left for s in statuses]),
    )
    yield (
        "spsa_run_alarms",
        "gauge",
        "Alarms of each kind.",
        [
            ({"run": s.run.name, "kind": str(kind)}, float(sum(a.kind is kind for a in s.alarms)))
            for s in statuses
            for kind in AlarmKind
        ],
    )
    yield "spsa_run_purges", "gauge", "Purges.", each([s.run.purges for s in statuses])
    last = [s.validations[-1].tally if s.validations else None for s in statuses]
    found = [None if tally is None else estimate(tally) for tally in last]
    yield (
        "spsa_run_validation_elo",
        "gauge",
        "Elo over the start that the last validation measured.",
        each([None if one is None else one.value for one in found]),
    )
    yield (
        "spsa_run_validation_elo_error",
        "gauge",
        "Half of the 95% interval of spsa_run_validation_elo.",
        each([None if one is None else one.error for one in found]),
    )


def _of_workers(fleet: Sequence[FleetMember]) -> Iterator[Family]:
    def each(values: Sequence[float | None]) -> list[Sample]:
        return [
            ({"worker": member.worker.name, "machine": member.worker.host}, value)
            for member, value in zip(fleet, values, strict=True)
        ]

    workers = [member.worker for member in fleet]
    yield (
        "spsa_worker_seconds_since_seen",
        "gauge",
        "Seconds since a worker last called the database.",
        each([one.seconds_since_seen for one in workers]),
    )
    yield "spsa_worker_slots", "gauge", "Slots.", each([one.concurrency for one in workers])
    yield "spsa_worker_games", "gauge", "Games.", each([one.games for one in workers])
    yield "spsa_worker_void_games", "gauge", "Void games.", each([w.void_games for w in workers])
    yield (
        "spsa_worker_time_losses",
        "gauge",
        "Games lost on time.",
        each([one.time_losses for one in workers]),
    )
    yield (
        "spsa_worker_nodes_per_second",
        "gauge",
        "Nodes a second of one engine, as last reported.",
        each([one.nps for one in workers]),
    )
    yield (
        "spsa_worker_set_aside",
        "gauge",
        "1 while the machine is given no batches, of one binary or of any.",
        each([float(bool(member.set_aside)) for member in fleet]),
    )


def _lines(name: str, kind: str, told: str, samples: Sequence[Sample]) -> Iterator[str]:
    """A family without its unknown values; nothing where all are unknown."""
    known = [(labels, value) for labels, value in samples if value is not None and isfinite(value)]
    if known:
        yield f"# HELP {name} {told}\n# TYPE {name} {kind}\n"
    for labels, value in known:
        named = ",".join(
            f'{label}="{without_passwords(text).translate(_ESCAPES)}"'
            for label, text in labels.items()
        )
        yield f"{name}{{{named}}} {value:.10g}\n"
