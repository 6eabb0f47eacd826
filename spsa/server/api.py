"""The same values as JSON, and in Prometheus' format; docs/server.md describes all answers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from spsa.db.batch_tables import Batch
from spsa.db.run_tables import Iteration, Run
from spsa.db.run_view import RunOverview
from spsa.lifecycle import RunStatus
from spsa.report.alarm import AlarmKind
from spsa.report.events import to_json as events_json
from spsa.report.export_json import counted_json, history_json, share_json
from spsa.report.runs import to_json as runs_json
from spsa.report.status import Status, estimate, fields_json, plain, tally_json
from spsa.report.workers import FleetMember
from spsa.report.workers import to_json as fleet_json
from spsa.server.pages import EVENTS, MAX_EVENTS, needed, place, text, whole
from spsa.server.reading import (
    MAX_PAGE,
    PAGE,
    BatchView,
    IterationView,
    ParameterView,
    Reader,
    WorkerView,
)
from spsa.text import without_passwords


class Api:
    """One method an address under /api."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def runs(self, _request: Request) -> Response:
        return _json({"runs": runs_json(self._reader.runs())})

    def run(self, request: Request) -> Response:
        return _json(self._reader.whole_status(self._run(request)).to_json())

    def history(self, request: Request) -> Response:
        history = self._reader.history(self._run(request))
        return _json({"run": history.run} | history_json(history))

    def parameter(self, request: Request) -> Response:
        run = self._run(request)
        view = self._reader.parameter(run, needed(request, "name"))
        return _json({"run": run.name, **_parameter_json(view)})

    def workers(self, request: Request) -> Response:
        run = self._run(request)
        found = [_worker_json(view) for view in self._reader.workers(run)]
        return _json({"run": run.name, "workers": found})

    def iterations(self, request: Request) -> Response:
        run = self._run(request)
        before = whole(request.query_params.get("before"), "before")
        limit = whole(request.query_params.get("limit"), "limit", MAX_PAGE) or PAGE
        lines = self._reader.iterations(run, before, limit)
        found = [_line_json(line) for line in lines]
        return _json({"run": run.name, "iterations": found})

    def iteration(self, request: Request) -> Response:
        run = self._run(request)
        number = whole(needed(request, "number"), "number")
        view = self._reader.iteration(run, number or 0)
        return _json({"run": run.name, **_iteration_view_json(view)})

    def batch(self, request: Request) -> Response:
        run = self._run(request)
        view = self._reader.batch(run, *place(request))
        return _json({"run": run.name, **_batch_view_json(view)})

    def events(self, request: Request) -> Response:
        run = self._run(request)
        last = whole(request.query_params.get("last"), "last", MAX_EVENTS) or EVENTS
        events = self._reader.events(run, last)
        return _json({"run": run.name, "events": events_json(events)})

    def metrics(self, _request: Request) -> Response:
        runs = self._reader.runs()
        live = [self._reader.whole_status(self._reader.run(run.name)) for run in runs if run.live]
        return Response(metrics(runs, live, self._reader.fleet()), media_type=CONTENT_TYPE)

    def _run(self, request: Request) -> Run:
        return self._reader.run(text(request, "run"))


def _json(value: dict[str, Any]) -> Response:
    return JSONResponse(plain(value), headers={"Cache-Control": "no-store"})


def _parameter_json(view: ParameterView) -> dict[str, Any]:
    return {
        **fields_json(view.tuned),
        "steps_moved": view.tuned.steps_moved,
        "bound": view.tuned.bound,
        "path": None if view.path is None else fields_json(view.path),
        "effect": None if view.effect is None else fields_json(view.effect),
    }


def _worker_json(view: WorkerView) -> dict[str, Any]:
    own: dict[str, Any] = fleet_json([view.member])["workers"][0]
    return own | {"of_run": None if view.share is None else share_json(view.share)}


_LINE = (
    *("iteration_number", "purpose", "k", "opened_on", "status", "a_k", "c_k", "target_games"),
    *("void_games", "purged_games", "created_at", "completed_at"),
)
_ITERATION = (
    *("games_played", "elo_diff", "plus_sha256", "minus_sha256"),
    *("base_parameters", "plus_parameters", "minus_parameters", "gradient_estimate"),
)
_BATCH = (
    *("seq", "status", "games", "first_pair", "seed", "attempt", "slot", "void_games", "voids"),
    *("time_losses", "plus_time_losses", "minus_time_losses", "plus_nodes", "minus_nodes", "moves"),
    *("seconds", "think_seconds", "scale", "leased_at", "reported_at", "last_error"),
)
_FAILURE = ("machine", "failures", "lost_leases", "reason", "at")


def _named(row: object, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}


def _line_json(one: Iteration) -> dict[str, Any]:
    return _named(one, _LINE) | {"tally": tally_json(one.tally)}


def _batch_json(batch: Batch) -> dict[str, Any]:
    worker = batch.worker
    return {
        **_named(batch, _BATCH),
        "worker": None if worker is None else worker.name,
        "machine": None if worker is None else worker.host,
        "tally": tally_json(batch.tally),
    }


def _iteration_view_json(view: IterationView) -> dict[str, Any]:
    return {
        **_line_json(view.iteration),
        **_named(view.iteration, _ITERATION),
        "batches": [_batch_json(batch) for batch in view.batches],
    }


def _batch_view_json(view: BatchView) -> dict[str, Any]:
    return {
        "iteration_number": view.iteration.iteration_number,
        **_batch_json(view.batch),
        "failures_of_machines": [_named(one, _FAILURE) for one in view.failures],
        "purged": [counted_json(one) for one in view.purged],
    }


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

Sample = tuple[Mapping[str, str], float | None]
"""The labels of a value, and the value."""

Gauge = tuple[str, str, Callable[[Any], float | None]]
"""A name, what it says, and the value that one run, status or member of the fleet has."""


def _last_validation(status: Status, value: str) -> float | None:
    found = estimate(status.validations[-1].tally) if status.validations else None
    return None if found is None else float(getattr(found, value))


_OF_RUNS: Sequence[Gauge] = (
    ("spsa_run_iterations_applied", "Results that were applied to theta.", lambda r: r.applied),
    ("spsa_run_iterations_planned", "Results that are to be applied.", lambda r: r.max_iterations),
    ("spsa_run_slots", "Slots that play for a run now.", lambda r: r.slots),
    ("spsa_run_has_master", "1 while a master runs it.", lambda r: r.has_master),
)
_OF_STATUSES: Sequence[Gauge] = (
    ("spsa_run_games", "Tuning games that count, without purged ones.", lambda s: s.games.games),
    ("spsa_run_void_games", "Void games.", lambda s: s.void_games),
    ("spsa_run_games_per_second", "Of the last five minutes.", lambda s: s.games_per_second),
    ("spsa_run_seconds_left", "Until the end, at this speed.", lambda s: s.seconds_left),
    ("spsa_run_purges", "Purges.", lambda s: s.run.purges),
    (
        "spsa_run_validation_elo",
        "Elo over the start that the last validation measured.",
        lambda s: _last_validation(s, "value"),
    ),
    (
        "spsa_run_validation_elo_error",
        "Half of the 95% interval of spsa_run_validation_elo.",
        lambda s: _last_validation(s, "error"),
    ),
)
_OF_WORKERS: Sequence[Gauge] = (
    (
        "spsa_worker_seconds_since_seen",
        "Seconds since a worker last called the database.",
        lambda m: m.worker.seconds_since_seen,
    ),
    ("spsa_worker_slots", "Slots.", lambda m: m.worker.concurrency),
    ("spsa_worker_games", "Games.", lambda m: m.worker.games),
    ("spsa_worker_void_games", "Void games.", lambda m: m.worker.void_games),
    ("spsa_worker_time_losses", "Games lost on time.", lambda m: m.worker.time_losses),
    ("spsa_worker_nodes_per_second", "Of one engine, as last reported.", lambda m: m.worker.nps),
    (
        "spsa_worker_set_aside",
        "1 while the machine is given no batches, of one binary or of any.",
        lambda m: bool(m.set_aside),
    ),
)


def metrics(
    runs: Sequence[RunOverview], statuses: Sequence[Status], fleet: Sequence[FleetMember]
) -> str:
    """All runs in short, those of `statuses` in detail, and every worker."""
    named = [({"run": run.name}, run) for run in runs]
    detailed = [({"run": status.run.name}, status) for status in statuses]
    workers = [({"worker": m.worker.name, "machine": m.worker.host}, m) for m in fleet]
    parts = (
        _family("spsa_run_status", "1 for the status of a run, 0 for the others.", _each(runs)),
        _family("spsa_run_alarms", "Alarms of each kind.", _alarms(statuses)),
        *(_family(name, told, _values(named, value)) for name, told, value in _OF_RUNS),
        *(_family(name, told, _values(detailed, value)) for name, told, value in _OF_STATUSES),
        *(_family(name, told, _values(workers, value)) for name, told, value in _OF_WORKERS),
    )
    return "".join(parts)


def _values(
    labelled: Sequence[tuple[Mapping[str, str], Any]], value: Callable[[Any], float | None]
) -> Iterator[Sample]:
    return ((labels, value(one)) for labels, one in labelled)


def _each(runs: Sequence[RunOverview]) -> Iterator[Sample]:
    for run in runs:
        for status in RunStatus:
            yield {"run": run.name, "status": str(status)}, run.status is status


def _alarms(statuses: Sequence[Status]) -> Iterator[Sample]:
    for status in statuses:
        for kind in AlarmKind:
            count = sum(alarm.kind is kind for alarm in status.alarms)
            yield {"run": status.run.name, "kind": str(kind)}, count


def _family(name: str, told: str, samples: Iterator[Sample]) -> str:
    """The lines of a gauge without its unknown values; nothing where all are unknown."""
    known = [(labels, value) for labels, value in samples if value is not None and isfinite(value)]
    head = f"# HELP {name} {told}\n# TYPE {name} gauge\n" if known else ""
    return head + "".join(f"{name}{{{_labels(labels)}}} {value:.10g}\n" for labels, value in known)


def _labels(labels: Mapping[str, str]) -> str:
    return ",".join(
        f'{label}="{without_passwords(text).translate(_ESCAPES)}"' for label, text in labels.items()
    )
