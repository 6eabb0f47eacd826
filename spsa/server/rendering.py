"""What answers look like: pages, JSON, Prometheus' format; docs/server.md describes all of them.

On a page every name is text on one line, and no password of a URL is in it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from math import isfinite
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse, JSONResponse, Response

from spsa import __version__
from spsa.db.batch_tables import Batch
from spsa.db.run_tables import Iteration
from spsa.db.run_view import RunOverview
from spsa.lifecycle import RunStatus
from spsa.report.alarm import AlarmKind
from spsa.report.events import kind_told, told
from spsa.report.events import to_json as events_json
from spsa.report.export_json import counted_json, history_json, share_json
from spsa.report.runs import duration
from spsa.report.runs import to_json as runs_json
from spsa.report.status import Status, estimate, fields_json, tally_json
from spsa.report.text import elo_text, estimated, number, unless_zero
from spsa.report.workers import FleetMember, scale_text
from spsa.report.workers import to_json as fleet_json
from spsa.server import charts
from spsa.text import LINE_LENGTH, html_with_commands, printable, without_passwords, words_of

REFRESH_SECONDS = 5
_FOR_PROGRAMS = ("/api/", "/metrics", "/health", "/worker")


def render(template: str, **values: Any) -> str:
    """The page of this template."""
    html: str = _environment().get_template(f"{template}.html.jinja").render(values)
    return html


def refusal(
    path: str, status: int, sentence: str, headers: Mapping[str, str] | None = None
) -> Response:
    """An answer that says why there is no other: a page, or JSON where programs ask."""
    if path.startswith(_FOR_PROGRAMS):
        return JSONResponse({"error": sentence}, status, headers)
    return HTMLResponse(render("error", status=status, sentence=sentence), status, headers)


def compile_templates() -> None:
    """Compile all pages once, so that no answer waits for it."""
    for name in _environment().list_templates():
        _environment().get_template(name)


def link(path: str, **query: object) -> str:
    """A path with its query, without what is None."""
    given = {name: value for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("spsa.server"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": lambda value: "-" if value is None else number(value),
        "gain": lambda value: "-" if value is None else f"{value:.4g}",
        "duration": lambda seconds: "-" if seconds is None else duration(seconds),
        "elo": elo_text,
        "unless_zero": unless_zero,
        "time": _time,
        "with_commands": _with_commands,
        "breakable": _breakable,
        "scale": lambda share: scale_text(share) or "-",
        "pentanomial": lambda tally: " ".join(str(n) for n in tally.pentanomial),
    }
    environment.globals |= {
        "charts": charts,
        "link": link,
        "estimated": estimated,
        "kind_told": kind_told,
        "told": told,
        "refresh_seconds": REFRESH_SECONDS,
        "version": __version__,
    }
    return environment


def _with_commands(sentence: str) -> Markup:
    return Markup(html_with_commands(without_passwords(sentence), LINE_LENGTH))


def _breakable(name: str) -> Markup:
    return Markup("<wbr>").join(words_of(without_passwords(name), LINE_LENGTH))


def _time(at: datetime | None) -> str:
    return "-" if at is None else f"{at:%Y-%m-%d %H:%M:%S}"


def _shown(value: Any) -> Any:
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return printable(without_passwords(value), LINE_LENGTH)


Values = Mapping[str, Any]


def _parameter_json(values: Values) -> dict[str, Any]:
    tuned, path, effect = values["parameter"], values["path"], values["effect"]
    return {
        **fields_json(tuned),
        "steps_moved": tuned.steps_moved,
        "bound": tuned.bound,
        "path": path and fields_json(path),
        "effect": effect and fields_json(effect),
    }


def _workers_json(values: Values) -> dict[str, Any]:
    found = fleet_json([one["member"] for one in values["workers"]])["workers"]
    shares = [one["share"] and share_json(one["share"]) for one in values["workers"]]
    return {"workers": [own | {"of_run": share} for own, share in zip(found, shares, strict=True)]}


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


def _iteration_json(values: Values) -> dict[str, Any]:
    one = values["one"]
    batches = [_batch_json(batch) for batch in values["batches"]]
    return _line_json(one) | _named(one, _ITERATION) | {"batches": batches}


def _batch_values_json(values: Values) -> dict[str, Any]:
    return {
        "iteration_number": values["one"].iteration_number,
        **_batch_json(values["batch"]),
        "failures_of_machines": [_named(one, _FAILURE) for one in values["failures"]],
        "purged": [counted_json(one) for one in values["purged"]],
    }


IN_JSON: Mapping[str, Callable[[Values], dict[str, Any]]] = {
    "runs": lambda values: {"runs": runs_json(values["runs"])},
    "run": lambda values: values["status"].to_json(),
    "history": lambda values: history_json(values["history"]),
    "parameter": _parameter_json,
    "workers": _workers_json,
    "iterations": lambda values: {"iterations": [_line_json(one) for one in values["lines"]]},
    "iteration": _iteration_json,
    "batch": _batch_values_json,
    "events": lambda values: {"events": events_json(values["events"])},
}
"""What each address under /api makes of the values of its page."""

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
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
