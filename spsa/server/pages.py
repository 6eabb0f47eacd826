"""The HTML pages."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from spsa.db.run_tables import Run
from spsa.report.alarm import Alarm, AlarmKind
from spsa.report.history import COMPARED
from spsa.report.parameters import ParameterStatus
from spsa.report.pictures import chosen
from spsa.report.status import Status
from spsa.report.text import headlines
from spsa.server import charts
from spsa.server.guard import session_of
from spsa.server.reading import MAX_PAGE, PAGE, Reader
from spsa.server.rendering import link, render
from spsa.server.tokens import People, Role
from spsa.text import is_printable

_GAIN = "Elo gained since the start, as the rule estimates it"
_EFFECT = "Its part of the estimated Elo"
EVENTS = 100
MAX_EVENTS = 1000
_LONGEST = 500
_LARGEST = 2**31 - 1


class Pages:
    """One method a page; each asks `reader` and fills a template."""

    def __init__(self, reader: Reader, people: People) -> None:
        self._reader = reader
        self._has_operator = people.operator is not None

    def runs(self, request: Request) -> Response:
        return self._page(request, "runs", runs=self._reader.runs())

    def run(self, request: Request) -> Response:
        run = self._run(request)
        found, status = self._reader.history(run), self._reader.whole_status(run)
        return self._page(
            request,
            "run",
            run=status.run,
            status=status,
            more_about=partial(_more_about, status),
            sentences=_sentences(status),
            gain=found.gain and charts.gain_chart(found, found.gain, "gain", _GAIN),
            unknown_gain=found.unknown_gain,
            validations=charts.validations_chart(found),
            results=charts.results_chart(found),
            paths=[
                charts.path_chart(found, path, f"path-{i}")
                for i, path in enumerate(chosen(found.parameters))
            ],
            count=len(found.parameters),
        )

    def parameters(self, request: Request) -> Response:
        run = self._run(request)
        wanted = Wanted(
            text=text(request, "text") or "",
            group=text(request, "group") or "",
            sort=text(request, "sort") or "",
            descending=text(request, "order") == "descending",
        )
        rows = parameter_rows(self._reader.status(run))
        groups = sorted({row.tuned.group for row in rows if row.tuned.group})
        repeats = all(row.tuned.supported_is_theta for row in rows if row.tuned.active)
        left_out = {"" if groups else "group", "supported" if repeats else ""}
        return self._page(
            request,
            "parameters",
            run=run,
            wanted=wanted,
            sorts=tuple(key for key in SORTS if key not in left_out),
            rows=chosen_rows(rows, wanted),
            count=len(rows),
            groups=groups,
        )

    def parameter(self, request: Request) -> Response:
        run = self._run(request)
        view = self._reader.parameter(run, needed(request, "name"))
        found = self._reader.history(run)
        return self._page(
            request,
            "parameter",
            run=run,
            parameter=view.tuned,
            path=view.path and charts.path_chart(found, view.path, "path"),
            effect=view.effect and charts.gain_chart(found, view.effect, "effect", _EFFECT),
            unknown_gain=found.unknown_gain,
        )

    def workers(self, request: Request) -> Response:
        run = self._run(request)
        workers = self._reader.workers(run)
        reports = {one.member.report for one in workers if one.member.report}
        return self._page(
            request,
            "workers",
            run=run,
            workers=workers,
            outliers=sorted((r for r in reports if r.findings), key=lambda r: r.machine),
            compares=len(reports) > 1,
            compared=COMPARED,
        )

    def iterations(self, request: Request) -> Response:
        run = self._run(request)
        before = whole(request.query_params.get("before"), "before")
        limit = whole(request.query_params.get("limit"), "limit", MAX_PAGE) or PAGE
        lines = self._reader.iterations(run, before, limit)
        is_last = not lines or lines[-1].iteration_number == 1
        older = None if is_last else {"before": lines[-1].iteration_number, "limit": limit}
        return self._page(request, "iterations", run=run, lines=lines, before=before, older=older)

    def iteration(self, request: Request) -> Response:
        run = self._run(request)
        number = whole(needed(request, "number"), "number")
        view = self._reader.iteration(run, number or 0)
        return self._page(request, "iteration", run=run, one=view.iteration, batches=view.batches)

    def batch(self, request: Request) -> Response:
        run = self._run(request)
        view = self._reader.batch(run, *place(request))
        return self._page(
            request,
            "batch",
            run=run,
            one=view.iteration,
            batch=view.batch,
            view=view,
            pair_points=charts.PAIR_POINTS,
        )

    def events(self, request: Request) -> Response:
        run = self._run(request)
        last = whole(request.query_params.get("last"), "last", MAX_EVENTS) or EVENTS
        events = self._reader.events(run, last)
        more = min(MAX_EVENTS, 2 * last) if len(events) == last < MAX_EVENTS else None
        return self._page(request, "events", run=run, events=events, more=more)

    def _page(self, request: Request, template: str, **values: Any) -> Response:
        """304 where the browser has this very page already."""
        session = session_of(request)
        is_operator = session is not None and session.role is Role.OPERATOR
        form_token = session.form_token if session and is_operator else None
        own = {"form_token": form_token, "can_log_in": self._has_operator and not is_operator}
        html = render(template, page=template, **own, **values)
        etag = f'"{sha256(html.encode()).hexdigest()[:32]}"'
        headers = {"ETag": etag, "Cache-Control": "private, no-cache"}
        if request.headers.get("if-none-match") == etag:
            return Response(status_code=304, headers=headers)
        return HTMLResponse(html, headers=headers)

    def _run(self, request: Request) -> Run:
        return self._reader.run(text(request, "run"))


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


@dataclass(frozen=True, slots=True)
class ParameterRow:
    """A parameter as it stands; `signal_to_noise` is None before it has moved."""

    tuned: ParameterStatus
    signal_to_noise: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A filter, and a key of `SORTS`; unknown keys leave the order of params.toml."""

    text: str = ""
    group: str = ""
    sort: str = ""
    descending: bool = False


SORTS: Mapping[str, Callable[[ParameterRow], float | str | None]] = {
    "name": lambda row: row.tuned.name,
    "start": lambda row: row.tuned.start,
    "value": lambda row: row.tuned.value,
    "moved": lambda row: abs(row.tuned.steps_moved),
    "signal": lambda row: row.signal_to_noise,
    "averaged": lambda row: row.tuned.averaged,
    "supported": lambda row: row.tuned.supported,
    "bound": lambda row: row.tuned.bound,
    "group": lambda row: row.tuned.group,
}


def parameter_rows(status: Status) -> list[ParameterRow]:
    """All parameters of a run, in the order of params.toml."""
    return [
        ParameterRow(p, status.trails[p.name].signal_to_noise if p.active else None)
        for p in status.parameters
    ]


def chosen_rows(rows: Sequence[ParameterRow], wanted: Wanted) -> list[ParameterRow]:
    """Those whose name holds the text in any case, and of the group; unknown values come last."""
    text = wanted.text.casefold()
    found = [
        row
        for row in rows
        if text in row.tuned.name.casefold() and wanted.group in ("", row.tuned.group)
    ]
    key = SORTS.get(wanted.sort)
    if key is None:
        return found
    known = [row for row in found if key(row) is not None]
    known.sort(key=key, reverse=wanted.descending)  # type: ignore[arg-type]
    return known + [row for row in found if key(row) is None]


def text(request: Request, name: str) -> str | None:
    """A text, or None where it is not given.

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


def place(request: Request) -> tuple[int, int]:
    """The numbers of an iteration and of one of its batches, which begin with 0."""
    number = whole(needed(request, "number"), "number") or 0
    return number, whole(needed(request, "seq"), "seq", least=0) or 0


def whole(value: str | None, name: str, most: int = _LARGEST, *, least: int = 1) -> int | None:
    """A number from `least` to `most`, or None where it is not given.

    Raises:
        HTTPException: it is something else.
    """
    if value is None:
        return None
    is_number = value.isascii() and value.isdecimal() and len(value) < 12
    if not (is_number and least <= int(value) <= most):
        raise HTTPException(400, f"{name} is not a whole number from {least} to {most}")
    return int(value)
