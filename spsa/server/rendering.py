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

from spsa.db.read_queries import RunOverview
from spsa.report.events import EVENTS
from spsa.report.history import HISTORY
from spsa.report.html import environment, plotly_script
from spsa.report.matches import ITERATIONS
from spsa.report.parameters import PARAMETERS
from spsa.report.runs import RUNS
from spsa.report.status import STATUS, Status
from spsa.report.table import gauges, record, records
from spsa.report.workers import WORKERS, FleetMember
from spsa.server.views import BATCHES, COMPARED, ITERATION, PURGED, link

REFRESH_SECONDS = 5
PLOTLY = f"/static/plotly-{version('plotly')}.min.js"
"""The address of the script that draws; it has the version, because browsers keep it for good."""

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
        "link": link,
        "plotly": PLOTLY,
        "refresh_seconds": REFRESH_SECONDS,
        "server_views": {
            "batches": BATCHES,
            "compared": COMPARED,
            "iteration": ITERATION,
            "purged": PURGED,
        },
    }
    return found


Values = Mapping[str, Any]


def _parameter_json(values: Values) -> dict[str, Any]:
    """`effect` is its part of the estimated gain."""
    own = {name: values[name] for name in ("path", "effect")}
    return record(PARAMETERS, values["parameter"]) | own


def _iteration_json(values: Values) -> dict[str, Any]:
    rows = {name: records(view, values[name]) for name, view in _OF_ITERATION.items()}
    return record(ITERATION, values["one"]) | rows


_OF_ITERATION = {"batches": BATCHES, "purged": PURGED}

IN_JSON: Mapping[str, Callable[[Values], Mapping[str, Any]]] = {
    "runs": lambda values: {"runs": records(RUNS, values["runs"])},
    "run": lambda values: record(STATUS, values["status"]),
    "history": lambda values: record(HISTORY, values["history"]),
    "figures": lambda values: values["figures"],
    "parameter": _parameter_json,
    "workers": lambda values: {"workers": records(WORKERS, values["workers"])},
    "iterations": lambda values: {"iterations": records(ITERATIONS, values["lines"])},
    "iteration": _iteration_json,
    "events": lambda values: {"events": records(EVENTS, values["events"])},
}
"""What each address under /api makes of the values of its page."""


def _labels_of(member: FleetMember) -> dict[str, str]:
    return {"worker": member.worker.name, "machine": member.worker.host}


METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def metrics(
    runs: Sequence[RunOverview], statuses: Sequence[Status], members: Sequence[FleetMember]
) -> str:
    """All runs in short, those of `statuses` in detail, and every worker."""
    return (
        gauges(RUNS, runs, "spsa_run", lambda run: {"run": run.name})
        + gauges(STATUS, statuses, "spsa_run", lambda one: {"run": one.run.name})
        + gauges(WORKERS, members, "spsa_worker", _labels_of)
    )
