"""What each kind of picture has on it: series of a `RunHistory` on matplotlib's axes.

Every series has an id (`gid`), which an SVG keeps.
"""

from collections.abc import Sequence
from enum import StrEnum
from math import ceil
from typing import Any

import numpy as np

from spsa.algorithms import Vector
from spsa.core.scoring import Tally
from spsa.db.history_queries import ResultGroup
from spsa.report.history import ParameterPath, RunHistory, merged
from spsa.report.status import estimate
from spsa.text import plural, printable

BARS = 100
MAX_WORKERS = 20
PER_ROW = 3
NAME_LENGTH = 32
PAIRS = ("0", "½", "1", "1½", "2")
View = tuple[float, float]
_COLOURS = ("#b2182b", "#ef8a62", "#bdbdbd", "#67a9cf", "#2166ac")


class Kind(StrEnum):
    """What a picture shows."""

    THETA = "theta"
    GAIN = "gain"
    VALIDATIONS = "validations"
    RESULTS = "results"
    WORKERS = "workers"


def height(kind: Kind, history: RunHistory, paths: Sequence[ParameterPath]) -> float:
    """In inches."""
    if nothing_of(kind, history, paths):
        return 0.9
    if kind is Kind.THETA:
        return 0.6 + 2.5 * max(1, ceil(len(paths) / PER_ROW))
    if kind is Kind.WORKERS:
        return 1.0 + 0.25 * min(len(history.workers), MAX_WORKERS)
    return 5.0 if kind is Kind.RESULTS else 3.4


def draw(
    kind: Kind, part: Any, history: RunHistory, paths: Sequence[ParameterPath], normalised: bool
) -> None:
    """Draw one kind on a figure or a part of one; a sentence where there is nothing to show."""
    if reason := nothing_of(kind, history, paths):
        part.suptitle(TITLES[kind])
        part.text(0.5, 0.4, reason, ha="center")
    elif kind is Kind.THETA:
        _theta(part, history, paths, normalised)
    else:
        {
            Kind.GAIN: _gain,
            Kind.VALIDATIONS: _validations,
            Kind.RESULTS: _results,
            Kind.WORKERS: _workers,
        }[kind](part, history)


TITLES = {
    Kind.THETA: "Path of theta",
    Kind.GAIN: "Elo gained since the start, as the rule estimates it",
    Kind.VALIDATIONS: "Validations: tuned values against the start",
    Kind.RESULTS: "Results: plus against minus",
    Kind.WORKERS: "Workers",
}


def nothing_of(kind: Kind, history: RunHistory, paths: Sequence[ParameterPath]) -> str:
    """Why there is nothing to draw of a kind; empty if there is."""
    still = "" if len(history.ks) > 1 else "Theta has not moved yet."
    missing = {
        Kind.THETA: still if paths else "No parameter is active.",
        Kind.GAIN: f"It is not known, because {history.unknown_gain}."
        if history.unknown_gain
        else "",
        Kind.VALIDATIONS: ""
        if any(match.tally.pairs for match in history.validations)
        else "No validation has been played; `spsa-master validate` plays one.",
        Kind.RESULTS: "" if history.results else "No iteration is complete yet.",
        Kind.WORKERS: "" if history.workers else "No worker has reported a batch yet.",
    }
    return missing[kind]


def _theta(
    part: Any, history: RunHistory, paths: Sequence[ParameterPath], normalised: bool
) -> None:
    unit = ", in steps from the start" if normalised else ""
    part.suptitle(TITLES[Kind.THETA] + unit + _how_many(len(paths), len(history.parameters)))
    rows, columns = ceil(len(paths) / PER_ROW), min(PER_ROW, len(paths))
    grid = part.subplots(rows, columns, squeeze=False, sharex=True)
    shown = [path.normalised if normalised else path for path in paths]
    panels = zip(grid.flat, shown, views(shown, alike=normalised), strict=False)
    for i, (axes, path, view) in enumerate(panels):
        _path(axes, history, path, view, i)
    for axes in grid.flat[len(paths) :]:
        axes.remove()
    for axes in grid.flat[max(0, len(paths) - columns) : len(paths)]:
        axes.set_xlabel("games")
        axes.tick_params(labelbottom=True)
    handles, labels = grid[0, 0].get_legend_handles_labels()
    part.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8)


def _how_many(shown: int, all_of_them: int) -> str:
    return "" if shown == all_of_them else f" ({shown} of {all_of_them} parameters)"


def _path(axes: Any, history: RunHistory, path: ParameterPath, view: View, i: int) -> None:
    mean, sd = np.array(path.averaged), np.array(path.averaged_sd)
    axes.plot(history.games, path.theta, lw=1, color="C0", label="theta", gid=f"theta-{i}")
    axes.plot(history.games, mean, lw=1.5, color="C1", label="averaged", gid=f"averaged-{i}")
    _band(axes, history.games, mean, sd, color="C1", gid=f"band-{i}", label="± one deviation")
    for bound, name in ((path.minimum, "min"), (path.maximum, "max")):
        if view[0] <= bound <= view[1]:
            axes.axhline(bound, ls="--", lw=1, color="0.4", gid=f"{name}-{i}")
    axes.locator_params(axis="x", nbins=5)  # more labels would touch
    axes.set_ylim(view)
    axes.set_title(f"{_name(path.name)}\n{path.minimum:.4g} to {path.maximum:.4g}", fontsize=8)


def _band(axes: Any, x: Sequence[float], middle: Vector, half: Vector, **looks: Any) -> None:
    axes.fill_between(x, middle - half, middle + half, alpha=0.2, lw=0, **looks)


def views(paths: Sequence[ParameterPath], *, alike: bool) -> list[View]:
    """From where to where each panel goes; `alike` gives all of them the widest view."""
    each = [_view(path) for path in paths]
    if not alike:
        return each
    return [(min(low for low, _ in each), max(high for _, high in each))] * len(each)


def _view(path: ParameterPath) -> View:
    """All that is drawn, a step more to each side, and a bound that is near."""
    mean, sd = np.array(path.averaged), np.array(path.averaged_sd)
    low = min(min(path.theta), float(np.min(mean - sd))) - path.step
    high = max(max(path.theta), float(np.max(mean + sd))) + path.step
    margin = 0.02 * (high - low)
    return low - margin, high + margin


def _gain(part: Any, history: RunHistory) -> None:
    assert history.gain is not None  # `nothing_of` has looked
    axes, label = part.subplots(), "estimate, no measurement"
    axes.plot(history.games, history.gain.elo, color="C2", gid="gain", label=label)
    axes.axhline(0.0, lw=0.8, color="0.4")
    axes.legend(fontsize=8)
    axes.set(title=TITLES[Kind.GAIN], xlabel="games", ylabel="Elo")


def _validations(part: Any, history: RunHistory) -> None:
    played = [match for match in history.validations if match.tally.pairs]
    games = [match.games for match in played]
    elo, error = _elo([match.tally for match in played])
    axes = part.subplots()
    axes.plot(games, elo, "o", color="C0", ms=4, gid="validations", label="Elo of a match")
    axes.vlines(games, elo - error, elo + error, color="C0", lw=1, gid="validation-errors")
    if history.strength is not None:
        curve, at = history.strength.curve, history.strength.games
        middle, half = np.array(curve.elo), np.array(curve.errors)
        axes.plot(at, middle, color="C1", lw=1.5, gid="strength", label="all together")
        label = "95% interval of all together"
        _band(axes, at, middle, half, color="C1", gid="validation-band", label=label)
    for match, x, y in zip(played, games, elo, strict=True):
        text = f"{y:+.1f} ({match.tally.games} games)"
        axes.annotate(text, (x, y), (4, 4), textcoords="offset points", fontsize=7)
    axes.axhline(0.0, lw=0.8, color="0.4")
    axes.legend(fontsize=8)
    axes.set(title=TITLES[Kind.VALIDATIONS], xlabel="games of the tuning", ylabel="Elo")
    axes.set_xlim(0, 1.3 * max(*games, 1))


def _elo(tallies: Sequence[Tally]) -> tuple[Vector, Vector]:
    """Elo and the half width of its 95% interval; 0 and 0 without games."""
    found = [estimate(tally) for tally in tallies]
    return (
        np.array([0.0 if one is None else one.value for one in found]),
        np.array([0.0 if one is None else one.error for one in found]),
    )


def _results(part: Any, history: RunHistory) -> None:
    groups = tuple(merged(history.results, BARS))
    middle = [(group.first_k + group.last_k) / 2 for group in groups]
    width = [0.9 * (group.last_k - group.first_k + 1) for group in groups]
    elo, error = _elo([group.tally for group in groups])
    above, below = part.subplots(2, 1, sharex=True)
    above.plot(middle, elo, "o", ms=3, color="C0", gid="results")
    above.vlines(middle, elo - error, elo + error, color="C0", lw=0.8, gid="result-errors")
    above.axhline(0.0, lw=0.8, color="0.4")
    each = groups[0].last_k - groups[0].first_k + 1
    title = TITLES[Kind.RESULTS] + (f", {each} iterations a point" if each > 1 else "")
    above.set(title=title, ylabel="Elo with 95% interval")
    _pentanomials(below, groups, middle, width)


def _pentanomials(
    axes: Any, groups: Sequence[ResultGroup], middle: Sequence[float], width: Sequence[float]
) -> None:
    counts = np.array([group.tally.pentanomial for group in groups], dtype=np.float64)
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    below = np.cumsum(share, axis=1) - share
    for i, points in enumerate(PAIRS):
        bars = axes.bar(middle, share[:, i], width, below[:, i], color=_COLOURS[i], label=points)
        for j, bar in enumerate(bars):
            bar.set_gid(f"pairs-{i}-{j}")
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5), title="plus's points")
    axes.set(xlabel="iteration", ylabel="share of pairs", ylim=(0.0, 1.0))


def _workers(part: Any, history: RunHistory) -> None:
    shown = history.workers[:MAX_WORKERS]
    names = [_name(worker.worker) for worker in shown]
    places = list(range(len(shown)))
    games, speed = part.subplots(1, 2, sharey=True)
    _bars(games, places, [worker.tally.games for worker in shown], "games")
    _bars(speed, places, [worker.games_per_hour or 0.0 for worker in shown], "speed")
    games.set_yticks(places, names)
    games.invert_yaxis()
    count = plural(len(history.workers), "worker")
    some = "" if len(shown) == len(history.workers) else f"{len(shown)} of "
    games.set(xlabel="games", title=f"{some}{count}")
    speed.set(xlabel="games an hour of one slot", title="Speed")


def _bars(axes: Any, places: Sequence[int], values: Sequence[float], gid: str) -> None:
    bars = axes.barh(places, values, height=0.6, color="C0" if gid == "games" else "C2")
    for i, bar in enumerate(bars):
        bar.set_gid(f"{gid}-{i}")
    axes.bar_label(bars, [f"{value:,.0f}" for value in values], padding=3, fontsize=7)
    axes.margins(x=0.15)
    axes.locator_params(axis="x", nbins=6)


def _name(text: str) -> str:
    return printable(text, NAME_LENGTH)
