"""What answers look like: pages, JSON, Prometheus' format; docs/page.md describes all of them.

On a page every name is text on one line, and no password of a URL is in it.
"""

import gzip
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from typing import Any

from jinja2 import Environment, PackageLoader
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from spsa.db.tables import Run
from spsa.lifecycle import RunStatus
from spsa.report.events import EVENTS, AlarmKind
from spsa.report.html import environment, plotly_script
from spsa.report.matches import ITERATIONS
from spsa.report.parameters import PARAMETERS
from spsa.report.report import HISTORY
from spsa.report.status import RUNS, STATUS, Status
from spsa.report.table import Column, record, records
from spsa.report.workers import WORKERS, FleetMember
from spsa.server import views
from spsa.text import without_passwords

REFRESH_SECONDS = 5
PLOTLY = f"/static/plotly-{version('plotly')}.min.js"
"""The address of the script that draws; it has the version, because browsers keep it for good."""

_FOR_PROGRAMS = ("/api/", "/metrics", "/health", "/worker/", "/worker.pyz")


def render(template: str, **values: Any) -> str:
    """The page of this template."""
    return str(_environment().get_template(f"{template}.html.jinja").render(values))


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


def send_plotly(request: Request) -> Response:
    """The script that draws, compressed where the browser takes that."""
    headers = {"Cache-Control": "private, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
    takes = "gzip" in request.headers.get("accept-encoding", "")
    body = _compressed() if takes else plotly_script().encode()
    headers |= {"Content-Encoding": "gzip"} if takes else {}
    return Response(body, headers=headers, media_type="text/javascript")


@cache
def _compressed() -> bytes:
    return gzip.compress(plotly_script().encode(), 6, mtime=0)


@cache
def _environment() -> Environment:
    found = environment(PackageLoader("spsa.server"))
    found.globals |= {
        "link": views.link,
        "plotly": PLOTLY,
        "refresh_seconds": REFRESH_SECONDS,
        "server_views": views,
    }
    return found


Values = Mapping[str, Any]


def _iteration_json(values: Values) -> dict[str, Any]:
    rows = {name: records(view, values[name]) for name, view in _OF_ITERATION.items()}
    return record(views.ITERATION, values["one"]) | rows


_OF_ITERATION = {"batches": views.BATCHES, "purged": views.PURGED}

IN_JSON: Mapping[str, Callable[[Values], Mapping[str, Any]]] = {
    "runs": lambda values: {"runs": records(RUNS, values["runs"])},
    "run": lambda values: record(STATUS, values["status"]),
    "history": lambda values: record(HISTORY, values["history"]),
    "figures": lambda values: values["figures"],
    "parameter": lambda values: record(PARAMETERS, values["parameter"]),
    "workers": lambda values: {"workers": records(WORKERS, values["workers"])},
    "iterations": lambda values: {"iterations": records(ITERATIONS, values["lines"])},
    "iteration": _iteration_json,
    "events": lambda values: {"events": records(EVENTS, values["events"])},
}
"""What each address under /api makes of the values of its page."""


METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Labels = Mapping[str, str]
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

_RUN_METRICS = (
    Column(
        "status",
        "1 for the status of a run, 0 for the others.",
        lambda run: {"status": {one: run.status is one for one in RunStatus}},
    ),
    Column("claimed_batches", "Batches claimed and not yet reported.", "slots"),
    Column("iterations_applied", "Results that were applied to theta.", "applied"),
    Column("iterations_planned", "Results that are to be applied.", "max_iterations"),
    Column("has_master", "1 while a master runs it."),
)
_STATUS_METRICS = (
    Column("games", "Tuning games that count, without purged ones.", "totals.tally.games"),
    Column("void_games", "Void games: played again, never counted.", "totals.void_games"),
    Column("purges", "Purges.", "run.purges"),
    Column("games_per_second", "Of the last five minutes."),
    Column("seconds_left", "Until the end, at this speed."),
    Column(
        "alarms",
        "Alarms of each kind.",
        lambda one: {
            "kind": {kind: [alarm.kind for alarm in one.alarms].count(kind) for kind in AlarmKind}
        },
    ),
    Column(
        "validation_elo",
        "Elo by validations, over the start or the engine of [validation] against.",
        "measured.elo.value",
    ),
    Column("validation_elo_error", "Half of its 95% interval.", "measured.elo.error"),
)
_WORKER_METRICS = (
    Column("slots", "Slots.", "worker.concurrency"),
    Column("games", "Games.", "worker.games"),
    Column("seconds_since_seen", "Since its last call.", "worker.seconds_since_seen"),
    Column("void_games", "Void games.", "worker.void_games"),
    Column("time_losses", "Games lost on time.", "worker.time_losses"),
    Column("nodes_per_second", "Of one engine, as last reported.", "worker.nps"),
    Column("set_aside", "1 while its machine is given no batches.", "is_set_aside"),
)
"""Name, help and value; of a mapping of mappings a sample for each value of a label."""
_DAY = 86_400.0


def metrics(runs: Sequence[Run], statuses: Sequence[Status], members: Sequence[FleetMember]) -> str:
    """All runs in short, those of `statuses` in detail, and the workers of a day, for Prometheus.

    Each process of a worker has a name of its own, so the list would grow for ever.
    """
    by_run = [({"run": run.name}, run) for run in runs]
    in_detail = [({"run": one.run.name}, one) for one in statuses]
    heard = [one for one in members if one.worker.seconds_since_seen < _DAY]
    by_worker = [({"worker": one.worker.name, "machine": one.worker.host}, one) for one in heard]
    return (
        "".join(_gauge("spsa_run", one, by_run) for one in _RUN_METRICS)
        + "".join(_gauge("spsa_run", one, in_detail) for one in _STATUS_METRICS)
        + "".join(_gauge("spsa_worker", one, by_worker) for one in _WORKER_METRICS)
    )


def _gauge(prefix: str, metric: Column, rows: Sequence[tuple[Labels, Any]]) -> str:
    """One metric of all rows; nothing where all values are unknown."""
    name = f"{prefix}_{metric.key}"
    found = [sample for labels, row in rows for sample in _samples(labels, metric.value(row))]
    lines = [
        f"{name}{{{_labelled(labels)}}} {value:.10g}\n"
        for labels, value in found
        if value is not None
    ]
    head = f"# HELP {name} {metric.heading}\n# TYPE {name} gauge\n"
    return head + "".join(lines) if lines else ""


def _samples(labels: Labels, value: Any) -> list[tuple[Labels, float | None]]:
    if not isinstance(value, Mapping):
        return [(labels, value)]
    return [({**labels, label: name}, n) for label, of in value.items() for name, n in of.items()]


def _labelled(labels: Labels) -> str:
    return ",".join(
        f'{label}="{without_passwords(text).translate(_ESCAPES)}"' for label, text in labels.items()
    )
