"""How a run becomes HTML: templates in which every name is text, and the report in one file."""

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files
from json import dumps
from typing import Any

from jinja2 import BaseLoader, ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from spsa import __version__
from spsa.config.space import params_file
from spsa.core.params import Space
from spsa.report.events import EVENTS, SETTINGS, VOIDS, grouped
from spsa.report.figures import figures, moved_height
from spsa.report.matches import TIME_CONTROLS
from spsa.report.report import Report, settings_of
from spsa.report.status import progress
from spsa.report.table import shown
from spsa.report.workers import WORKERS
from spsa.text import LINE_LENGTH, html_with_commands, printable, without_passwords, words_of


def environment(*loaders: BaseLoader) -> Environment:
    """How templates become HTML: every name in them is text on one line, without passwords."""
    found = Environment(
        loader=ChoiceLoader([*loaders, PackageLoader("spsa.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
    )
    found.filters |= {
        "with_commands": lambda text: Markup(
            html_with_commands(without_passwords(text), LINE_LENGTH)
        ),
        "breakable": lambda name: Markup("<wbr>").join(
            words_of(without_passwords(name), LINE_LENGTH)
        ),
        "shown": shown,
        "grouped": grouped,
    }
    found.globals |= {
        "moved_height": moved_height,
        "progress": progress,
        "settings_of": settings_of,
        "style": Markup(asset("assets/look.css")),
        "version": __version__,
        "views": {
            "events": EVENTS,
            "settings": SETTINGS,
            "time_controls": TIME_CONTROLS,
            "voids": VOIDS,
            "workers": WORKERS,
        },
    }
    return found


def _printable(value: Any) -> Any:
    """Text of others on one line without control and bidirectional characters, and passwords."""
    is_theirs = isinstance(value, str) and not isinstance(value, Markup)
    return printable(without_passwords(value), LINE_LENGTH) if is_theirs else value


def page(report: Report) -> str:
    """The HTML of a report, in one file with its style, its figures and the script that draws."""
    scripts = [asset("assets/figures.js"), plotly_script()]
    template, drawn = environment().get_template("report.html.jinja"), figures(report.history)
    return str(
        template.render(
            report=report,
            status=report.status,
            scripts=[Markup(script) for script in scripts],
            hashes=[b64encode(sha256(one.encode()).digest()).decode() for one in scripts],
            figures=Markup(dumps(drawn).replace("<", r"\u003c")),
            params=params_file(Space.from_json(report.run.space)).splitlines(),
        )
    )


def asset(name: str) -> str:
    """A file of `spsa/report`."""
    return files("spsa.report").joinpath(name).read_text(encoding="utf-8")


@cache
def plotly_script() -> str:
    """The script that the package `plotly` ships, as it can stand inside a page."""
    text = files("plotly").joinpath("package_data/plotly.min.js").read_text(encoding="utf-8")
    # in parentheses: browsers compile the function then while they read it, and only once
    text = re.sub(r"this, (\(\) => {.*})\)\);$", r"this, (\1)));", text, flags=re.DOTALL)
    return re.sub(r"(?i)</(script)", r"<\\/\1", text)
