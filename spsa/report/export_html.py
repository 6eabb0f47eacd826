"""A report as one HTML file: no network, no script, and every name is text."""

import re
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from importlib.resources import files
from shlex import quote
from typing import Any
from xml.etree import ElementTree

from jinja2 import BaseLoader, Environment, StrictUndefined
from markupsafe import Markup

from spsa import __version__
from spsa.config.projection import params_file
from spsa.core.params import Space
from spsa.report.drawing import TITLES, Kind, nothing_of
from spsa.report.events import events_table
from spsa.report.export_json import Report
from spsa.report.history import RunHistory
from spsa.report.pictures import can_draw, chosen, drawn
from spsa.report.table import Column, FittedTable
from spsa.report.text import headlines
from spsa.text import LINE_LENGTH, html_with_commands, printable, without_passwords, words_of

WITHOUT_PICTURES = "The pictures need matplotlib: pip install 'spsa-tuner[plot]'"
_CAPTIONS = {
    Kind.THETA: "Each parameter's value as games were played, with its weighted average, which "
    "late iterations dominate, and how far theta wanders about it. Its bounds are under its name.",
    Kind.GAIN: "What the rule believes theta to have gained in Elo, judged by all games so far. "
    "It is a model's estimate; only a validation measures strength.",
    Kind.VALIDATIONS: "Matches of tuned values against those of the start, with 95% intervals.",
    Kind.RESULTS: "The games theta was tuned by: plus against minus, and the pairs by the points "
    "of plus.",
    Kind.WORKERS: "Games of this run by worker, and how fast a slot of each plays.",
}
_LOOKS = {
    "name": "name",
    "machine": "name",
    "setting": "name",
    "value": "long",
    "detail": "long",
    "path": "drawn",
    "in its bounds": "drawn",
}


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture with its caption; where there is nothing to draw, the caption says so alone."""

    svg: Markup | None
    caption: str


def page(report: Report) -> str:
    """The HTML of a report; without matplotlib a sentence stands in the place of the pictures."""
    style, run = _text("report.css"), report.run
    html: str = _template().render(
        report=report,
        version=__version__,
        style=Markup(style),  # ours, and no page of others has it
        style_hash=Markup(b64encode(sha256(style.encode()).digest()).decode()),
        sentences=tuple(headlines(replace(report.status, alarms=()))),
        alarms=report.status.alarms,
        pictures=tuple(_figures(report.history)) if can_draw() else (),
        without_pictures=WITHOUT_PICTURES,
        tables=(*report.tables(), _settings(report), events_table(report.events)),
        params=params_file(Space.from_json(run.space)).splitlines(),
        quoted=quote,
    )
    return html


def _figures(history: RunHistory) -> Iterator[Figure]:
    paths = chosen(history.parameters)
    for kind in Kind:
        if reason := nothing_of(kind, history, paths):
            yield Figure(None, f"{TITLES[kind]}: {reason}")
            continue
        svg = inline_svg(drawn(history, [kind], "svg", paths=paths), kind, TITLES[kind])
        yield Figure(Markup(svg), _CAPTIONS[kind])


def _settings(report: Report) -> FittedTable:
    columns = (Column("setting", is_number=False), Column("value", is_number=False))
    table = FittedTable("settings", columns)
    for name, value in report.settings:
        table.add(name, value)
    return table


def environment(loader: BaseLoader | None = None) -> Environment:
    """How templates become HTML: every name in them is text on one line, without passwords."""
    found = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["with_commands"] = lambda text: Markup(
        html_with_commands(without_passwords(text), LINE_LENGTH)
    )
    found.filters["breakable"] = lambda name: Markup("<wbr>").join(
        words_of(without_passwords(name), LINE_LENGTH)
    )
    return found


@cache
def _template() -> Any:
    own = environment()
    own.filters["look"] = _look
    return own.from_string(_text("report.html.jinja"))


def _printable(value: Any) -> Any:
    """Text of others on one line without control and bidirectional characters, and passwords."""
    is_theirs = isinstance(value, str) and not isinstance(value, Markup)
    return printable(without_passwords(value), LINE_LENGTH) if is_theirs else value


def _look(column: Column) -> str:
    """The class of a column in the style sheet."""
    return "number" if column.is_number else _LOOKS.get(column.heading, "text")


def _text(name: str) -> str:
    return files("spsa.report").joinpath(name).read_text(encoding="utf-8")


_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"
_HREF = f"{{{_XLINK}}}href"
_DROPPED = {f"{{{_SVG}}}metadata", f"{{{_SVG}}}style"}


def inline_svg(svg: bytes, name: str, label: str) -> str:
    """The element `<svg>`; `name` begins all its ids, `label` is read out in its place.

    What stands in `style="..."` becomes attributes, which say the same and are no inline styles.
    """
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", _XLINK)
    root = ElementTree.fromstring(svg)
    for element in root.iter():
        for child in [child for child in element if child.tag in _DROPPED]:
            element.remove(child)
        _rename(element, name)
        _restyle(element)
    for size in ("width", "height"):
        root.attrib.pop(size, None)
    root.attrib |= {"role": "img", "aria-label": label, "stroke-linejoin": "round"}
    return ElementTree.tostring(root, encoding="unicode")


def _rename(element: ElementTree.Element, name: str) -> None:
    """Several pictures of a page share no id."""
    for key, value in element.attrib.items():
        if key == "id":
            element.set(key, f"{name}-{value}")
        elif key == _HREF:
            element.set(key, value.replace("#", f"#{name}-", 1))
        elif key == "clip-path":
            element.set(key, re.sub(r"#", f"#{name}-", value, count=1))


def _restyle(element: ElementTree.Element) -> None:
    for style in element.attrib.pop("style", "").split(";"):
        key, _, value = (part.strip() for part in style.partition(":"))
        if key == "font":  # how older versions write both
            size, _, family = value.partition(" ")
            element.attrib |= {"font-size": size, "font-family": family}
        elif key:
            element.set(key, value)
