"""Pictures of a run as PNG or SVG, drawn by matplotlib, which is an optional extra."""

from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from io import BytesIO
from typing import Any

from spsa.errors import TuningError
from spsa.report.drawing import Kind, draw, height
from spsa.report.history import ParameterPath, RunHistory

WIDTH = 10.0  # inches
DOTS = 110  # an inch, of a PNG
USUAL_PANELS = 12
MAX_PANELS = 36

_SETTINGS = {
    "svg.fonttype": "none",  # text stays text, and a file stays small
    "svg.hashsalt": "spsa",  # the same picture gives the same file
    "text.parse_math": False,  # a name with $ is a name
    "path.simplify": False,
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
}


class NoMatplotlib(TuningError):
    """matplotlib is not installed."""

    exit_code = 2

    def __init__(self) -> None:
        super().__init__("pictures need matplotlib: pip install 'spsa-tuner[plot]'")


class NoSuchParameter(TuningError):
    """A parameter or group that the run does not tune."""

    exit_code = 2


def can_draw() -> bool:
    """Whether matplotlib is installed; it is not imported for that."""
    return find_spec("matplotlib") is not None


def chosen(
    paths: Sequence[ParameterPath], names: Sequence[str] = (), group: str | None = None
) -> tuple[ParameterPath, ...]:
    """The named parameters, those of a group, or, where neither is given, those that moved most.

    Raises:
        NoSuchParameter: a name or the group is none of the run's active parameters.
    """
    _refuse_unknown("active parameter", names, [path.name for path in paths])
    groups = {path.group for path in paths if path.group}
    _refuse_unknown("group", [] if group is None else [group], sorted(groups))
    found = [
        path
        for path in paths
        if (not names or path.name in names) and (group is None or path.group == group)
    ]
    most = USUAL_PANELS if not names and group is None else MAX_PANELS
    if len(found) > most:
        moved = sorted(found, key=lambda path: -abs(path.steps_moved))[:most]
        found = [path for path in found if path in moved]
    return tuple(found)


def _refuse_unknown(what: str, names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            close = get_close_matches(name, known)
            advice = f"did you mean {close[0]!r}?" if close else "`status` lists the parameters"
            raise NoSuchParameter(f"the run has no {what} {name!r}; {advice}")


def drawn(
    history: RunHistory,
    kinds: Sequence[Kind],
    ending: str,
    *,
    paths: Sequence[ParameterPath],
    normalised: bool = False,
) -> bytes:
    """One picture of these kinds, one below the other, as `ending`, png or svg.

    Raises:
        NoMatplotlib: it is not installed.
    """
    if not can_draw():
        raise NoMatplotlib
    heights = [height(kind, history, paths) for kind in kinds]
    with import_module("matplotlib").rc_context(_SETTINGS):
        size = (WIDTH, sum(heights))
        figure: Any = import_module("matplotlib.figure").Figure(figsize=size, layout="constrained")
        parts = figure.subfigures(len(kinds), 1, height_ratios=heights, squeeze=False)[:, 0]
        for kind, part in zip(kinds, parts, strict=True):
            draw(kind, part, history, paths, normalised)
        return _saved(figure, ending)


def _saved(figure: Any, ending: str) -> bytes:
    written = BytesIO()
    metadata = {"Date": None} if ending == "svg" else {}
    figure.savefig(written, format=ending, dpi=DOTS, metadata=metadata)
    return written.getvalue()
