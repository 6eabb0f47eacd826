"""Curves with labels, drawn to a file: what `--plot` writes.

matplotlib is an optional extra. It is looked for when the option is read, so that nobody waits for
a simulation whose picture cannot be drawn, and imported when there is something to draw.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import click

from spsa.cli.common import Option
from spsa.errors import TuningError

_ENDINGS = (".png", ".svg")
_SIZE = (8.0, 5.0)  # inches
_DOTS = 150  # an inch, of a png
_STYLES = {"line": "-", "points": "o", "dashes": "--"}


class NoDrawing(TuningError):
    """matplotlib is not installed."""

    exit_code = 2

    def __init__(self) -> None:
        super().__init__("--plot draws with matplotlib: pip install matplotlib")


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Points (x, y) under one label; `error` is one standard error of each y."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    error: Sequence[float] | None = None
    style: Literal["line", "points", "dashes"] = "line"


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """Curves on common axes; a logarithmic axis shows no value that is not positive."""

    title: str
    x_label: str
    y_label: str
    curves: Sequence[Curve]
    x_log: bool = False
    y_log: bool = False


def save(picture: Picture, file: Path) -> None:
    """Draw to a PNG or SVG by the file's ending.

    Raises NoDrawing without matplotlib, and OSError where the file cannot be written.
    """
    if find_spec("matplotlib") is None:
        raise NoDrawing
    # Loading matplotlib takes longer than most commands run, and it may not be there at all.
    figure = import_module("matplotlib.figure").Figure(figsize=_SIZE, layout="constrained")
    _fill(figure.subplots(), picture)
    figure.legend(loc="outside right upper")
    figure.savefig(file, dpi=_DOTS)


def _fill(axes: Any, picture: Picture) -> None:
    for i, curve in enumerate(picture.curves):
        axes.errorbar(
            curve.x,
            curve.y,
            yerr=curve.error,
            fmt=_STYLES[curve.style],
            label=curve.label,
            color=f"C{i % 10}",
            alpha=1.0 if i < 10 else 0.5,  # there are ten colours
            capsize=3 if curve.error else 0,
        )
    axes.set(
        title=picture.title,
        xlabel=picture.x_label,
        ylabel=picture.y_label,
        xscale="log" if picture.x_log else "linear",
        yscale="log" if picture.y_log else "linear",
    )
    if picture.x_log:
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter("{x:g}")
    if picture.y_log:
        axes.yaxis.set_major_formatter("{x:g}")
    axes.grid(alpha=0.3)


def _drawable(_context: click.Context, _option: click.Parameter, file: Path | None) -> Path | None:
    if file is None:
        return None
    if file.suffix.lower() not in _ENDINGS:
        raise click.BadParameter(f"{file.name!r} has to end with {' or '.join(_ENDINGS)}")
    if not file.absolute().parent.is_dir():
        raise click.BadParameter(f"there is no folder {str(file.parent)!r}")
    if find_spec("matplotlib") is None:
        raise NoDrawing
    return file


plot_option: Option = click.option(
    "--plot",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE.png|svg",
    callback=_drawable,
    help="Draw it too; needs matplotlib: pip install matplotlib.",
)
