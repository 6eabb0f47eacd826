"""The addresses for people: what each reads, shown as a page or as JSON of the same values."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from spsa.db import Store
from spsa.db.tables import Run
from spsa.errors import NothingToDo
from spsa.report.alarm import Alarm, AlarmKind
from spsa.report.history import COMPARED
from spsa.report.parameters import ParameterStatus, parameters
from spsa.report.pictures import chosen
from spsa.report.status import Status, plain
from spsa.report.text import headlines
from spsa.report.workers import fleet
from spsa.server.reading import Reader
from spsa.server.rendering import IN_JSON, METRICS_TYPE, link, metrics, render
from spsa.text import is_printable

EVENTS = 100
MAX_EVENTS = 1000
PAGE = 50
MAX_PAGE = 500
_LONGEST = 500
_LARGEST = 2**31 - 1

Values = dict[str, Any]
"""What the template of a page needs, and what its JSON is made of."""


class Pages:
    """One method an address, which reads its values.

    The methods raise NothingToDo for what is not there.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._reader = Reader(store)

    def routes(self) -> list[Route]:
        """The pages, the same under /api as JSON, and the metrics."""
        both = {name: getattr(self, name) for name in IN_JSON if name != "history"}
        pages = {**both, "parameters": self.parameters}
        found = {**both, "history": self.history}
        return [
            *(
                Route("/" if name == "runs" else f"/{name}", partial(_page, name, read))
                for name, read in pages.items()
            ),
            *(Route(f"/api/{name}", partial(_json, name, read)) for name, read in found.items()),
            Route("/metrics", self._metrics),
        ]

    def runs(self, _request: Request) -> Values:
        return {"runs": self._store.run_overviews()}

    def run(self, request: Request) -> Values:
        run = self._run(request)
        history, status = self._reader.history(run), self._reader.whole_status(run)
        return {
            "run": status.run,
            "status": status,
            "history": history,
            "more_about": partial(_more_about, status),
            "sentences": _sentences(status),
            "paths": chosen(history.parameters),
        }

    def history(self, request: Request) -> Values:
        run = self._run(request)
        return {"run": run, "history": self._reader.history(run)}

    def parameters(self, request: Request) -> Values:
        run = self._run(request)
        wanted = {name: text(request, name) or "" for name in ("text", "group", "sort", "order")}
        rows = _rows(self._reader.status(run))
        groups = sorted({one.group for one, _ in rows if one.group})
        repeats = all(one.supported_is_theta for one, _ in rows if one.active)
        left_out = {"" if groups else "group", "supported" if repeats else ""}
        return {
            "run": run,
            "wanted": wanted,
            "sorts": tuple(key for key in SORTS if key not in left_out),
            "rows": _chosen(rows, wanted),
            "count": len(rows),
            "groups": groups,
        }

    def parameter(self, request: Request) -> Values:
        run, name = self._run(request), needed(request, "name")
        tuned = next((one for one in parameters(run) if one.name == name), None)
        if tuned is None:
            raise NothingToDo(f"run {run.name} has no parameter {name!r}")
        path, effect = self._reader.path(run, name)
        history = self._reader.history(run)
        return {
            "run": run,
            "parameter": tuned,
            "path": path,
            "effect": effect,
            "history": history,
        }

    def workers(self, request: Request) -> Values:
        """Those heard of last first."""
        run = self._run(request)
        shares = {share.worker: share for share in self._reader.shares(run)}
        members = fleet(self._store, self._reader.machines(run))
        reports = {member.report for member in members if member.report}
        return {
            "run": run,
            "workers": [
                {"member": member, "share": shares.get(member.worker.name)} for member in members
            ],
            "outliers": sorted((r for r in reports if r.findings), key=lambda r: r.machine),
            "compares": len(reports) > 1,
            "compared": COMPARED,
        }

    def iterations(self, request: Request) -> Values:
        """The newest first."""
        run = self._run(request)
        before = whole(request, "before")
        limit = whole(request, "limit", MAX_PAGE) or PAGE
        lines = self._store.iterations(run.id, before=before, last=limit, narrow=True)[::-1]
        is_last = not lines or lines[-1].iteration_number == 1
        older = None if is_last else {"before": lines[-1].iteration_number, "limit": limit}
        return {"run": run, "lines": lines, "before": before, "older": older}

    def iteration(self, request: Request) -> Values:
        run = self._run(request)
        number = needed_number(request, "number")
        for found in self._store.iterations(run.id, number=number):
            return {"run": run, "one": found, "batches": self._store.batch_lines(found.id)}
        raise NothingToDo(f"run {run.name} has no iteration {number}")

    def batch(self, request: Request) -> Values:
        """A batch, the machines that failed it, and its results that were purged."""
        seq = needed_number(request, "seq", least=0)
        values = self.iteration(request)
        run, one, batches = values["run"], values["one"], values["batches"]
        batch = next((batch for batch in batches if batch.seq == seq), None)
        if batch is None:
            said = f"iteration {one.iteration_number} of run {run.name} has no batch {seq}"
            raise NothingToDo(said)
        purged = self._store.purged_batches(run.id, one.id) if run.purges else ()
        return values | {
            "batch": batch,
            "pairs": range(batch.first_pair, batch.first_pair + batch.games // 2),
            "is_last": batch is batches[-1],
            "failures": self._store.batch_failures(one.id, seq),
            "purged": [result for result in purged if result.seq == seq],
        }

    def events(self, request: Request) -> Values:
        """The newest first."""
        run = self._run(request)
        last = whole(request, "last", MAX_EVENTS) or EVENTS
        found = self._store.events(run.id, last)[::-1]
        more = min(MAX_EVENTS, 2 * last) if len(found) == last < MAX_EVENTS else None
        return {"run": run, "events": found, "more": more}

    def _metrics(self, _request: Request) -> Response:
        runs, read = self._store.run_overviews(), self._reader.whole_status
        live = [read(self._store.run(run.name)) for run in runs if run.live]
        return Response(metrics(runs, live, fleet(self._store)), media_type=METRICS_TYPE)

    def _run(self, request: Request) -> Run:
        """The run that is named, or the newest one."""
        return self._store.run(text(request, "run"))


Read = Callable[[Request], Values]


def _page(name: str, read: Read, request: Request) -> Response:
    """The page of these values; 304 where the browser has this very page already."""
    state = request.state
    html = render(name, page=name, role=state.role, can_log_in=state.can_log_in, **read(request))
    etag = f'"{sha256(html.encode()).hexdigest()[:32]}"'
    headers = {"ETag": etag, "Cache-Control": "private, no-cache"}
    if request.headers.get("if-none-match") == etag:
        return Response(status_code=304, headers=headers)
    return HTMLResponse(html, headers=headers)


def _json(name: str, read: Read, request: Request) -> Response:
    values = read(request)
    own = {"run": values["run"].name} if "run" in values else {}
    return JSONResponse(plain(own | IN_JSON[name](values)), headers={"Cache-Control": "no-store"})


def _sentences(status: Status) -> list[str]:
    """What the page says beside its figures and its alarms."""
    run, lines = status.run, headlines(replace(status, alarms=()), figures=False)
    return [*(line.strip() for line in lines), f"rule: {run.algorithm}, seed {run.seed}"]


_OF_WORKERS = (
    *(AlarmKind.WORKER_RESULTS, AlarmKind.WORKER_VOIDS, AlarmKind.WORKER_TIME_LOSSES),
    *(AlarmKind.WORKER_SPEED, AlarmKind.VOID_GAMES, AlarmKind.TIME_LOSSES),
)


def _more_about(status: Status, alarm: Alarm) -> str | None:
    """The page of the parameter or of the workers that an alarm is about."""
    run = status.run.name
    if alarm.subject in status.run.theta:
        return link("/parameter", run=run, name=alarm.subject)
    return link("/workers", run=run) if alarm.kind in _OF_WORKERS else None


ParameterRow = tuple[ParameterStatus, float | None]
"""A parameter as it stands, and its signal to noise, which is None before it has moved."""

SORTS: Mapping[str, Callable[[ParameterRow], float | str | None]] = {
    "name": lambda row: row[0].name,
    "start": lambda row: row[0].start,
    "value": lambda row: row[0].value,
    "moved": lambda row: abs(row[0].steps_moved),
    "signal": lambda row: row[1],
    "averaged": lambda row: row[0].averaged,
    "supported": lambda row: row[0].supported,
    "bound": lambda row: row[0].bound,
    "group": lambda row: row[0].group,
}


def _rows(status: Status) -> list[ParameterRow]:
    """All parameters of a run, in the order of params.toml."""
    return [
        (one, status.trails[one.name].signal_to_noise if one.active else None)
        for one in status.parameters
    ]


def _chosen(rows: Sequence[ParameterRow], wanted: Mapping[str, str]) -> list[ParameterRow]:
    """Those whose name holds the text in any case, and of the group; unknown values come last.

    Other keys than those of `SORTS` leave the order.
    """
    text, group = wanted["text"].casefold(), wanted["group"]
    found = [row for row in rows if text in row[0].name.casefold() and group in ("", row[0].group)]
    key = SORTS.get(wanted["sort"])
    if key is None:
        return found
    known = [row for row in found if key(row) is not None]
    known.sort(key=key, reverse=wanted["order"] == "descending")  # type: ignore[arg-type]
    return known + [row for row in found if key(row) is None]


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


def whole(request: Request, name: str, most: int = _LARGEST, *, least: int = 1) -> int | None:
    """A number of the query from `least` to `most`, or None where it is not given.

    Raises:
        HTTPException: it is something else.
    """
    value = request.query_params.get(name)
    if value is None:
        return None
    is_number = value.isascii() and value.isdecimal() and len(value) < 12
    if not (is_number and least <= int(value) <= most):
        raise HTTPException(400, f"{name} is not a whole number from {least} to {most}")
    return int(value)


def needed_number(request: Request, name: str, *, least: int = 1) -> int:
    """A number that has to be given."""
    needed(request, name)
    return whole(request, name, least=least) or 0
