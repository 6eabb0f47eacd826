"""The same values as JSON, and for Prometheus; docs/dashboard.md describes every answer."""

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from spsa.dashboard import json_values, query_string
from spsa.dashboard.metrics import CONTENT_TYPE, metrics
from spsa.dashboard.pages import EVENTS, MAX_EVENTS
from spsa.dashboard.reading import MAX_PAGE, PAGE, Reader
from spsa.db.store import Run
from spsa.report.events import to_json as events_json
from spsa.report.export_json import history_json
from spsa.report.runs import to_json as runs_json
from spsa.report.status import plain


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
        view = self._reader.parameter(run, query_string.needed(request, "name"))
        return _json({"run": run.name, **json_values.parameter_json(view)})

    def workers(self, request: Request) -> Response:
        run = self._run(request)
        views, first_k = self._reader.workers(run)
        found = [json_values.worker_json(view) for view in views]
        return _json({"run": run.name, "first_k": first_k, "workers": found})

    def iterations(self, request: Request) -> Response:
        run = self._run(request)
        before = query_string.whole(request.query_params.get("before"), "before")
        limit = query_string.whole(request.query_params.get("limit"), "limit", MAX_PAGE) or PAGE
        lines = self._reader.iterations(run, before, limit)
        found = [json_values.iteration_json(line) for line in lines]
        return _json({"run": run.name, "iterations": found})

    def iteration(self, request: Request) -> Response:
        run = self._run(request)
        number = query_string.whole(query_string.needed(request, "number"), "number")
        view = self._reader.iteration(run, number or 0)
        return _json({"run": run.name, **json_values.iteration_view_json(view)})

    def batch(self, request: Request) -> Response:
        run = self._run(request)
        view = self._reader.batch(run, *query_string.place(request))
        return _json({"run": run.name, **json_values.batch_view_json(view)})

    def events(self, request: Request) -> Response:
        run = self._run(request)
        last = query_string.whole(request.query_params.get("last"), "last", MAX_EVENTS) or EVENTS
        events = self._reader.events(run, last)
        return _json({"run": run.name, "events": events_json(events)})

    def metrics(self, _request: Request) -> Response:
        runs = self._reader.runs()
        live = [self._reader.whole_status(self._reader.run(run.name)) for run in runs if run.live]
        return Response(metrics(runs, live, self._reader.fleet()), media_type=CONTENT_TYPE)

    def _run(self, request: Request) -> Run:
        return self._reader.run(query_string.text(request, "run"))


def _json(value: dict[str, Any]) -> Response:
    return JSONResponse(plain(value), headers={"Cache-Control": "no-store"})
