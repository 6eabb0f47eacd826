"""The addresses for people: what each reads, shown as a page or as JSON of the same values."""

import re
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from spsa.db import Store
from spsa.db.tables import NARROW, Run
from spsa.errors import NothingToDo
from spsa.report.alarms import runs_with_alarms
from spsa.report.events import Alarm
from spsa.report.figures import compared_figures, parameter_figures, worker_figures
from spsa.report.matches import ITERATIONS, MATCHES
from spsa.report.parameters import PARAMETERS, parameters
from spsa.report.status import Status
from spsa.report.table import View, plain
from spsa.report.workers import WORKERS, fleet
from spsa.server.reading import Reader
from spsa.server.rendering import IN_JSON, METRICS_TYPE, metrics, render
from spsa.server.views import Sorted, compared_rows, link, played_rows
from spsa.text import is_printable

EVENTS = 100
RECENT_EVENTS = 8
MAX_EVENTS = 1000
PAGE = 50
_LONGEST = 500
_LARGEST = 2**31 - 1

Values = dict[str, Any]
"""What the template of a page needs, and what its JSON is made of."""

Read = Callable[[Request], Values]


class Pages:
    """One method an address, which reads its values.

    The methods raise NothingToDo for what is not there.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._reader = Reader(store)

    def routes(self) -> list[Route]:
        """The pages, the same under /api as JSON, and the metrics."""
        found = {name: getattr(self, name) for name in IN_JSON}
        pages = {name: read for name, read in found.items() if name not in ("history", "figures")}
        pages |= {"parameters": self.parameters, "compare": self.compare, "worker": self.worker}
        return [
            *(
                Route("/" if name == "runs" else f"/{name}", partial(self._page, name, read))
                for name, read in pages.items()
            ),
            *(Route(f"/api/{name}", partial(_json, name, read)) for name, read in found.items()),
            Route("/metrics", self._metrics),
        ]

    def runs(self, _request: Request) -> Values:
        view = runs_with_alarms(lambda name: self._reader.status(self._store.run(name)))
        view = view.linked(lambda run: link("/run", run=run.name))
        return {"runs": self._store.run_overviews(), "view": view}

    def run(self, request: Request) -> Values:
        run = self._run(request)
        status = self._reader.status(run)
        workers = self._reader.workers(run)
        return {
            "run": status.run,
            "status": status,
            "more_about": partial(_more_about, status),
            "workers": [one for one in workers if one.is_present or one.share is not None],
            "events": self._store.events(run.id, RECENT_EVENTS)[::-1],
            "voids": self._store.void_games(run.id, RECENT_EVENTS)[::-1],
            "tables": _linked(run),
            "others": [one.name for one in self._store.run_overviews() if one.name != run.name],
        }

    def history(self, request: Request) -> Values:
        run = self._run(request)
        return {"run": run, "history": self._reader.history(run)}

    def figures(self, request: Request) -> Values:
        """Those of a run, of one of its parameters, of its workers, or of it beside another run."""
        run, name = self._run(request), text(request, "name")
        if (worker := text(request, "worker")) is not None:
            parts = self._reader.parts(run)
            return {"figures": worker_figures([one for one in parts if worker in ("", one.worker)])}
        if (other := text(request, "with")) is not None:
            histories = [self._reader.history(one) for one in (run, self._store.run(other))]
            return {"figures": compared_figures(histories)}
        if name is None:
            return {"figures": self._reader.figures(run)}
        return {"figures": parameter_figures(self._reader.history(run), name)}

    def compare(self, request: Request) -> Values:
        """Two runs beside one another."""
        run, other = self._run(request), self._store.run(needed(request, "with"))
        both = [self._reader.status(one) for one in (run, other)]
        rows = compared_rows(*(one.parameters for one in both))
        return {"run": run, "other": other, "both": both, "rows": rows}

    def parameters(self, request: Request) -> Values:
        run = self._run(request)
        view, order = _linked(run)["parameters"], sorted_by(request, run)
        rows = order.rows(view, self._reader.status(run).parameters)
        return {"run": run, "view": view, "sorted": order, "rows": rows}

    def parameter(self, request: Request) -> Values:
        run, name = self._run(request), needed(request, "name")
        known = (*self._reader.history(run).parameters, *parameters(run))
        tuned = next((one for one in known if one.name == name), None)
        if tuned is None:
            raise NothingToDo(f"run {run.name} has no parameter {name!r}")
        return {"run": run, "parameter": tuned}

    def workers(self, request: Request) -> Values:
        """Those heard of last first, unless the page sorts them otherwise."""
        run = self._run(request)
        members, status = self._reader.workers(run), self._reader.status(run)
        order, own = sorted_by(request, run), link("/workers", run=run.name)
        return {
            "run": run,
            "view": _linked(run)["workers"],
            "sorted": order,
            "workers": order.rows(WORKERS, members),
            "about_workers": [one for one in status.alarms if _more_about(status, one) == own],
            "voids": self._store.void_games(run.id, EVENTS)[::-1],
        }

    def worker(self, request: Request) -> Values:
        """One worker: what it is, has played and built, and what its machine failed."""
        run, name = self._run(request), needed(request, "name")
        found = next((one for one in self._reader.workers(run) if one.worker.name == name), None)
        if found is None:
            raise NothingToDo(f"there is no worker {name!r}")
        host, voids = found.worker.host, self._store.void_games(run.id, EVENTS)
        its = [one for one in voids if one.machine == host]
        return {
            "run": run,
            "member": found,
            "workers": [found],
            "engines": self._store.engines_played(run.id, name, EVENTS),
            "builds": self._store.engines_built(name, EVENTS),
            "failed": self._store.failures_of(host, EVENTS),
            "voids": its[::-1],
        }

    def iterations(self, request: Request) -> Values:
        """The newest first."""
        run, before = self._run(request), whole(request, "before")
        lines = self._store.iterations(run.id, before=before, last=PAGE, columns=NARROW)[::-1]
        is_last = not lines or lines[-1].iteration_number == 1
        older = None if is_last else lines[-1].iteration_number
        view = _linked(run)["iterations"]
        return {"run": run, "view": view, "lines": lines, "before": before, "older": older}

    def iteration(self, request: Request) -> Values:
        """One iteration with its batches, and their results that were purged."""
        run, number = self._run(request), whole(request, "number")
        needed(request, "number")
        for found in self._store.iterations(run.id, number=number):
            return {
                "run": run,
                "one": found,
                "batches": self._store.batches(run.id, found.id),
                "purged": self._store.batches(run.id, found.id, purged=True),
                "rows": played_rows(found),
            }
        raise NothingToDo(f"run {run.name} has no iteration {number}")

    def events(self, request: Request) -> Values:
        """The newest first."""
        run = self._run(request)
        last = whole(request, "last", MAX_EVENTS) or EVENTS
        found = self._store.events(run.id, last)[::-1]
        more = min(MAX_EVENTS, 2 * last) if len(found) == last < MAX_EVENTS else None
        return {"run": run, "events": found, "more": more}

    def _page(self, name: str, read: Read, request: Request) -> Response:
        """The page of these values; that of a run has its alarms in the title."""
        state, values = request.state, read(request)
        values |= {"role": state.role, "can_log_in": state.can_log_in, "here": asked_for(request)}
        if "run" in values:
            values["status"] = self._reader.status(values["run"])
        return _if_changed(request, HTMLResponse(render(name, page=name, **values)))

    def _metrics(self, _request: Request) -> Response:
        runs, read = self._store.run_overviews(), self._reader.status
        live = [read(self._store.run(run.name)) for run in runs if run.live]
        return Response(metrics(runs, live, fleet(self._store)), media_type=METRICS_TYPE)

    def _run(self, request: Request) -> Run:
        """The run that is named, or the newest one."""
        return self._store.run(text(request, "run"))


def _json(name: str, read: Read, request: Request) -> Response:
    values = read(request)
    own = {"run": plain(values["run"].name)} if "run" in values else {}
    return _if_changed(request, JSONResponse({**own, **IN_JSON[name](values)}))


def _if_changed(request: Request, answer: Response) -> Response:
    """The answer; 304 where the browser has this very one already."""
    etag = f'"{sha256(bytes(answer.body)).hexdigest()}"'
    headers = {"ETag": etag, "Cache-Control": "private, no-cache"}
    if request.headers.get("if-none-match") == etag:
        return Response(status_code=304, headers=headers)
    answer.headers.update(headers)
    return answer


def _linked(run: Run) -> dict[str, View]:
    """The tables whose rows have pages."""
    to, iteration = partial(link, run=run.name), partial(link, "/iteration", run=run.name)
    return {
        "iterations": ITERATIONS.linked(lambda one: iteration(number=one.iteration_number)),
        "workers": WORKERS.linked(lambda one: to("/worker", name=one.worker.name)),
        "matches": MATCHES.linked(lambda one: iteration(number=one.iteration.iteration_number)),
        "parameters": PARAMETERS.linked(lambda one: to("/parameter", name=one.name)),
    }


def _more_about(status: Status, alarm: Alarm) -> str | None:
    """The page of the parameter or of the workers that an alarm is about."""
    run, workers = status.run.name, [one.worker for one in status.workers]
    if alarm.subject in status.run.theta:
        return link("/parameter", run=run, name=alarm.subject)
    is_theirs = any(alarm.subject in (worker.name, worker.host) for worker in workers)
    return link("/workers", run=run) if is_theirs else None


def sorted_by(request: Request, run: Run) -> Sorted:
    """The order that the query of a page asks for."""
    descending = text(request, "order") == "descending"
    return Sorted(request.url.path, run.name, text(request, "sort"), descending)


def text(request: Request, name: str) -> str | None:
    """A text of the query, or None where it is not given.

    Raises:
        HTTPException: it is longer than any name, or not printable.
    """
    value = request.query_params.get(name)
    if value and not is_printable(value, _LONGEST):
        raise HTTPException(400, f"{name} is not a printable text of at most {_LONGEST} characters")
    return value


def needed(request: Request, name: str) -> str:
    """A text that has to be given."""
    value = text(request, name)
    if value is None:
        raise HTTPException(400, f"{name} is missing: add {name}=... to the address")
    return value


def whole(request: Request, name: str, most: int = _LARGEST) -> int | None:
    """A number of the query from 1 to `most`, or None where it is not given.

    Raises:
        HTTPException: it is something else.
    """
    value = request.query_params.get(name)
    if value is None:
        return None
    if not (re.fullmatch("[0-9]{1,10}", value) and 1 <= int(value) <= most):
        raise HTTPException(400, f"{name} is not a whole number from 1 to {most}")
    return int(value)


def own_page(address: str) -> str:
    """The address, if browsers read it as one of this server; else "/". A link may hold any.

    `//host` is another site, also with `\\` for a slash, or with a tab between, which they drop.
    """
    return address if re.fullmatch(r"/(?![/\\])[!-~]{0,999}", address) else "/"


def asked_for(request: Request) -> str:
    """The page that a request names, with its query."""
    query = f"?{request.url.query}" if request.url.query else ""
    return own_page(request.url.path + query)
