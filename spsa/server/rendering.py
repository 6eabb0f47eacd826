"""What answers look like: pages, JSON, Prometheus' format; docs/server.md describes all of them.

On a page every name is text on one line, and no password of a URL is in it.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache
from itertools import product
from math import isfinite
from operator import attrgetter
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader
from markupsafe import Markup
from starlette.responses import HTMLResponse, JSONResponse, Response

from spsa import __version__
from spsa.db.read_queries import RunOverview
from spsa.db.tables import Batch, Iteration
from spsa.lifecycle import RunStatus
from spsa.report.alarm import AlarmKind
from spsa.report.events import kind_told, told
from spsa.report.events import to_json as events_json
from spsa.report.export_html import environment
from spsa.report.export_json import counted_json, history_json, share_json
from spsa.report.runs import duration
from spsa.report.runs import to_json as runs_json
from spsa.report.status import Status, estimate, fields_json, tally_json
from spsa.report.text import elo_text, estimated, number, unless_zero
from spsa.report.workers import FleetMember, scale_text
from spsa.report.workers import to_json as fleet_json
from spsa.server import charts
from spsa.text import without_passwords

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
    found = environment(PackageLoader("spsa.server"))
    found.filters |= {
        "number": lambda value: "-" if value is None else number(value),
        "gain": lambda value: "-" if value is None else f"{value:.4g}",
        "duration": lambda seconds: "-" if seconds is None else duration(seconds),
        "elo": elo_text,
        "unless_zero": unless_zero,
        "time": _time,
        "scale": lambda share: scale_text(share) or "-",
        "pentanomial": lambda tally: " ".join(str(n) for n in tally.pentanomial),
    }
    found.globals |= {
        "charts": charts,
        "gauge": _gauge,
        "link": link,
        "estimated": estimated,
        "kind_told": kind_told,
        "told": told,
        "refresh_seconds": REFRESH_SECONDS,
        "version": __version__,
    }
    return found


def _time(at: datetime | None) -> str:
    return "-" if at is None else f"{at:%Y-%m-%d %H:%M:%S}"


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


def metrics(
    runs: Sequence[RunOverview], statuses: Sequence[Status], fleet: Sequence[FleetMember]
) -> str:
    """All runs in short, those of `statuses` in detail, and every worker."""
    validated = [one for one in statuses if one.validations]
    last = [(one.run, estimate(one.validations[-1].tally)) for one in validated]
    workers = [({"worker": m.worker.name, "machine": m.worker.host}, m) for m in fleet]
    values = {
        "runs": [({"run": run.name}, run) for run in runs],
        "run_statuses": [
            ({"run": run.name, "status": status}, run.status is status)
            for run, status in product(runs, RunStatus)
        ],
        "statuses": [({"run": one.run.name}, one) for one in statuses],
        "validations": [({"run": run.name}, elo) for run, elo in last if elo is not None],
        "alarms": [
            ({"run": one.run.name, "kind": kind}, [a.kind for a in one.alarms].count(kind))
            for one, kind in product(statuses, AlarmKind)
        ],
        "workers": workers,
        "set_aside": [(labels, bool(member.set_aside)) for labels, member in workers],
    }
    text: str = _environment().get_template("metrics.txt.jinja").render(values)
    return text


def _gauge(
    name: str, told: str, ones: Sequence[tuple[Mapping[str, str], Any]], value: str = ""
) -> Markup:
    """The lines of a gauge without its unknown values; nothing where all are unknown.

    Args:
        ones: labels, and what has the attribute `value` or is the value.
    """
    found = [(labels, attrgetter(value)(one) if value else one) for labels, one in ones]
    known = [(labels, one) for labels, one in found if one is not None and isfinite(one)]
    head = f"# HELP {name} {told}\n# TYPE {name} gauge\n" if known else ""
    lines = (f"{name}{{{_labels(labels)}}} {one:.10g}\n" for labels, one in known)
    return Markup(head + "".join(lines))  # Markup, because it is no HTML that is to be escaped


def _labels(labels: Mapping[str, str]) -> str:
    return ",".join(
        f'{label}="{without_passwords(text).translate(_ESCAPES)}"' for label, text in labels.items()
    )
