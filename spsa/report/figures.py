"""A figure is one function from a run's history to a figure of Plotly, as plain JSON.

The page, its JSON and the report in one file have the same. A colour is the name of one in the
style sheet, as `var(--first)`, so that a figure follows the theme; `assets/figures.js` reads it.
Names in hover texts and axes are text on one line without markup, because Plotly knows some tags.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from spsa.core.scoring import elo
from spsa.db.read_queries import WorkerShare
from spsa.report.parameters import ParameterStatus
from spsa.report.report import RunHistory
from spsa.report.table import number, plain, plus_minus
from spsa.text import NAME_LENGTH, plural, printable

Figure = Mapping[str, Any]
"""`data` and `layout`, as https://plotly.com/javascript/reference/ describes them."""

Trace = dict[str, Any]

_LEGEND = 12
"""Names in a legend at most; of more the hover text and the search say which is which."""

_BESIDE_END = 1.03
"""How far the axis goes beyond the planned games, where a final match stands with its whisker."""

_COLOURS = 8
_ROW = 22  # pixels


def figures(history: RunHistory) -> dict[str, Figure]:
    """The figures of a run by name, without those that have nothing to show yet."""
    found = {"elo": elo_figure(history)}
    if len(history.ks) > 1:
        found |= {"parameters": parameters_figure(history), "moved": moved_figure(history)}
    return {name: plain(figure) for name, figure in found.items() if figure["data"]}


def _figure(traces: Sequence[Trace], x: str, y: str, **layout: Any) -> Figure:
    """Of these traces; what is given for an axis stands beside its title."""
    axes = {"xaxis": {"title": {"text": x}}, "yaxis": {"title": {"text": y}}}
    axes = {name: title | layout.pop(name, {}) for name, title in axes.items()}
    return {"data": traces, "layout": axes | layout}


def _ticks(names: Sequence[str]) -> dict[str, Any]:
    """An axis with these names at 0, 1, 2 and so on, for which no name has to be measured twice."""
    axis = {"automargin": True, "zeroline": False, "ticklabeloverflow": "allow"}
    return {"tickvals": list(range(len(names))), "ticktext": names, **axis}


def _name(text: str) -> str:
    return escape(printable(text, NAME_LENGTH), quote=False)


def _trace(name: str, x: Sequence[float], y: Sequence[float], **more: Any) -> Trace:
    return {"type": "scatter", "mode": "lines", "name": name, "x": x, "y": y, **more}


def _line(name: str, x: Sequence[float], y: Sequence[float], colour: str, **more: Any) -> Trace:
    line = {"color": f"var(--{colour})", "width": 2} | more.pop("line", {})
    return _trace(name, x, y, line=line, **more)


def elo_figure(history: RunHistory) -> Figure:
    """Elo by games: matches, the curve through all of them, the rule's estimate over the start."""
    traces: list[Trace] = []
    if (curve := history.measured.curve) is not None:
        games, both = history.games(curve.ks), list(zip(curve.elo, curve.errors, strict=True))
        edge = [mid - error for mid, error in both] + [mid + error for mid, error in both[::-1]]
        band = {"fill": "toself", "fillcolor": "var(--band)", "line": {"width": 0}}
        name, x = "95% interval of all matches together", [*games, *games[::-1]]
        traces.append(_trace(name, x, edge, hoverinfo="skip", **band))
        traces.append(_line("all matches together", games, curve.elo, "first"))
    if history.measured.over_start:
        traces += _estimate("estimate of the rule's model", history, "second")
    traces += _matches("a match, with its 95% interval", history, "measured")
    (end,) = history.games([max(history.run.max_iterations, history.ks[-1])])
    axis = {"range": [0, _BESIDE_END * end], "rangemode": "tozero"}
    return _figure(
        traces,
        "games",
        f"Elo {_name(history.measured.over)}",
        xaxis=axis,
        yaxis={"zeroline": True, "rangemode": "tozero"},
        annotations=_last_label(history),
    )


def _last_label(history: RunHistory) -> list[dict[str, Any]]:
    """The measured Elo, that of the answer, beside its point."""
    curve, last, found = history.measured.curve, history.measured.last, history.measured.elo
    if found is None or last is None:
        return []
    look = {"showarrow": False, "xanchor": "right", "yanchor": "bottom", "yshift": 8, "xshift": -6}
    (x,) = history.games([last.iteration.opened_on if curve is None else curve.ks[-1]])
    told = {"text": plus_minus(found.value, found.error), "font": {"color": "var(--text)"}}
    return [{"x": x, "y": found.value, **told, **look}]


def _matches(name: str, history: RunHistory, colour: str) -> list[Trace]:
    """What each match measured, with its 95% interval; nothing before the first pair of any."""
    played = [match for match in history.measured.matches if match.tally.pairs]
    if not played:
        return []
    found = [elo(match.tally) for match in played]
    trace = _trace(
        name,
        history.games([match.iteration.opened_on for match in played]),
        [one.value for one in found],
        mode="markers",
        error_y={"type": "data", "array": [one.error for one in found], "width": 5},
        marker={"size": 9, "color": f"var(--{colour})"},
        text=[plural(match.tally.games, "game") for match in played],
        hovertemplate="%{y:+.1f} ± %{error_y.array:.1f} Elo, %{text}<extra></extra>",
    )
    return [trace]


def compared_figures(histories: Sequence[RunHistory]) -> dict[str, Figure]:
    """Elo over the start of several runs: what matches measured, and dashed what models believe."""
    traces: list[Trace] = []
    for i, history in enumerate(histories):
        name, colour = _name(history.run.name), f"path{i % _COLOURS}"
        traces += _estimate(f"{name}, estimate", history, colour)
        against = history.measured
        whom = "" if against.over_start else f" {_name(against.over)}"
        traces += _matches(f"{name}, matches{whom}", history, colour)
    figure = _figure(traces, "games", "Elo over the start", xaxis={"rangemode": "tozero"})
    return {"compared": plain(figure)} if traces else {}


def _estimate(name: str, history: RunHistory, colour: str) -> list[Trace]:
    """What the rule's model believes, dashed; nothing where it does not know."""
    if history.gain is None:
        return []
    hover = "%{y:+.1f} Elo after %{x:,} games, estimated<extra></extra>"
    look = {"line": {"dash": "dash"}, "hovertemplate": hover}
    return [_line(name, history.games(history.ks), history.gain, colour, **look)]


def parameters_figure(history: RunHistory) -> Figure:
    """All paths of theta in steps from the start, those that moved most in front."""
    traces = [_path(history, path, i) for i, path in enumerate(history.parameters)]
    traces.sort(key=lambda trace: abs(trace["y"][-1]))
    few = len(traces) <= _LEGEND
    return _figure(traces, "games", "steps from the start", showlegend=few, hovermode="closest")


def _path(history: RunHistory, path: ParameterStatus, i: int) -> Trace:
    name = _name(path.name)
    return _line(
        name,
        history.games(history.ks),
        path.in_steps,
        f"path{i % _COLOURS}",
        line={"width": 1.5, "dash": ("solid", "dot", "dashdot")[i // _COLOURS % 3]},
        customdata=[number(value) for value in path.path],
        hovertemplate=f"{name} %{{customdata}}, %{{y:+.2f}} steps, %{{x:,}} games<extra></extra>",
    )


def moved_figure(history: RunHistory) -> Figure:
    """How far each parameter has moved, the farthest on top."""
    paths = sorted(history.parameters, key=lambda path: abs(path.steps_moved))
    names = [_name(path.name) for path in paths]
    trace = _trace(
        "now",
        [path.steps_moved for path in paths],
        list(range(len(paths))),
        mode="markers",
        text=names,
        customdata=[f"{number(path.path[0])} → {number(path.path[-1])}" for path in paths],
        marker={"size": 8, "color": "var(--first)"},
        hovertemplate="%{text} %{customdata}, %{x:+.2f} steps<extra></extra>",
    )
    return _figure(
        [trace],
        "steps",
        "",
        xaxis={"rangemode": "tozero"},
        height=moved_height(len(paths)),
        yaxis={**_ticks(names), "range": [-0.7, len(paths) - 0.3]},
        showlegend=False,
        hovermode="closest",
    )


def moved_height(parameters: int) -> int:
    """The height of the plot of what moved, in pixels: a row for each parameter."""
    return max(180, 80 + _ROW * parameters)


def worker_figures(parts: Sequence[WorkerShare]) -> dict[str, Figure]:
    """Games an hour of each worker's slots, as a strip of groups of iterations."""
    groups = sorted({part.group for part in parts})
    workers = sorted({part.worker for part in parts}, reverse=True)
    rate = {(part.worker, part.group): part.games_per_hour for part in parts}
    if not any(rate.values()):
        return {}
    title = {"text": "games/h", "side": "right"}
    trace: Trace = {
        "type": "heatmap",
        "x": list(range(1, len(groups) + 1)),
        "y": list(range(len(workers))),
        "z": [[rate.get((worker, group)) for group in groups] for worker in workers],
        "text": [[_name(worker)] * len(groups) for worker in workers],
        "colorscale": "Viridis",
        "zmin": 0,  # counts only with zmax
        "zmax": max(filter(None, rate.values())),
        "hovertemplate": "%{text}, %{z:,.0f} games an hour a slot<extra></extra>",
        "colorbar": {"title": title, "thickness": 12, "ypad": 0, "nticks": 3, "tickformat": ","},
    }
    axes = {
        "xaxis": {"dtick": 1 + len(groups) // 5},  # whole numbers, few on a phone
        "yaxis": _ticks([_name(worker) for worker in workers]),
    }
    height = max(160, 90 + _ROW * len(workers))
    return {"workers": plain(_figure([trace], "part of the run", "", height=height, **axes))}


def parameter_figures(history: RunHistory, name: str) -> dict[str, Figure]:
    """The path of one parameter in its own unit, with its bounds where they are near."""
    path = next((one for one in history.parameters if one.name == name), None)
    if path is None or len(history.ks) < 2:
        return {}
    low, high = min(path.path), max(path.path)
    margin = max(high - low, path.step)
    bounds = [one for one in (path.minimum, path.maximum) if low - margin < one < high + margin]
    games, hover = history.games(history.ks), "%{y:.6g}, %{customdata:+.2f} steps, %{x:,} games"
    ends = [0, games[-1]]
    lines = [_line("bound", ends, [one, one], "faint", line={"dash": "dot"}) for one in bounds]
    more = {"customdata": path.in_steps, "hovertemplate": f"{hover}<extra></extra>"}
    theta = _line("theta", games, path.path, "first", **more)
    return {"path": plain(_figure([*lines, theta], "games", "value", showlegend=False))}
