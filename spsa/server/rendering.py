"""Templates to HTML: every name is text on one line, and no password of a URL is in it."""

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse, JSONResponse, Response

from spsa import __version__
from spsa.report.events import kind_told, told
from spsa.report.runs import duration
from spsa.report.text import elo_text, estimated, number, unless_zero
from spsa.report.workers import scale_text
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
