"""The same values as JSON, and for Prometheus; docs/dashboard.md describes every answer."""

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from spsa.dashboard import plain, queries
from spsa.dashboard.metrics import CONTENT_TYPE, metrics
from spsa.dashboard.pages import EVENTS, MOST_EVENTS
from spsa.dashboard.reading import MOST_PAGE, PAGE, Reader
from spsa.db.store import Run
from spsa.report.events import to_json as events_json
from spsa.report.runs import to_json as runs_json
from spsa.report.summary import history_json


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
        view = self._reader.parameter(run, queries.needed(request, "name"))
        return _json({"run": run.name, **plain.parameter_json(view)})

    def workers(self, request: Request) -> Response:
        run = self._run(request)
        views, first_k = self._reader.workers(run)
        found = [plain.worker_json(view) for view in views]
        return _json({"run": run.name, "first_k": first_k, "workers": found})

    def iterations(self, request: Request) -> Response:
        run = self._run(request)
        before = queries.whole(request.query_params.get("before"), "before")
        limit = queries.whole(request.query_params.get("limit"), "limit", MOST_PAGE) or PAGE
        lines = self._reader.iterations(run, before, limit)
        found = [plain.iteration_json(line) for line in lines]
        return _json({"run": run.name, "iterations": found})

    def iteration(self, request: Request) -> Response:
        run = self._run(request)
        number = queries.whole(queries.needed(request, "number"), "number")
        view = self._reader.iteration(run, number or 0)
        return _json({"run": run.name, **plain.iteration_view_json(view)})

    def batch(self, request: Request) -> Response:
        run = self._run(request)
        view = self._reader.batch(run, *queries.place(request))
        return _json({"run": run.name, **plain.batch_view_json(view)})

    def events(self, request: Request) -> Response:
        run = self._run(request)
        last = queries.whole(request.query_params.get("last"), "last", MOST_EVENTS) or EVENTS
        events = self._reader.events(run, last)
        return _json({"run": run.name, "events": events_json(events)})

    def metrics(self, _request: Request) -> Response:
        runs = self._reader.runs()
        live = [self._reader.whole_status(self._reader.run(run.name)) for run in runs if run.live]
        return Response(metrics(runs, live, self._reader.fleet()), media_type=CONTENT_TYPE)

    def _run(self, request: Request) -> Run:
        return self._reader.run(queries.text(request, "run"))


def _json(value: dict[str, Any]) -> Response:
    return JSONResponse(plain.plain(value), headers={"Cache-Control": "no-store"})
