"""Charts of a `RunHistory`: series as paths of SVG, and a table of the numbers drawn.

`templates/chart.html.jinja` draws them. Every series has an id.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import ceil, floor, isfinite, log10

from spsa.master.verdict import EstimatedGain
from spsa.report.history import ParameterPath, RunHistory, Strength, ValidationPoint, merged
from spsa.report.status import estimate
from spsa.report.text import elo_text, number

WIDTH, HEIGHT = 480, 268
LEFT, RIGHT, TOP, BOTTOM = 10, 12, 36, 44
DIGIT = 10.5
"""How wide a character of a tick is on a narrow screen, where it is largest."""

X_TICKS, Y_TICKS = 4, 7
MAX_BARS = 80
MAX_LABEL = 9
"""Characters of a tick; what would be longer is written with an exponent."""

PAIR_POINTS = ("0", "½", "1", "1½", "2")


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps `low`..`high` linearly to `start`..`end`, in the units of the SVG."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Values beyond the scale are drawn at its edge."""
        part = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(self.start + part * (self.end - self.start), 1)


Ticks = Sequence[tuple[float, str]]
"""Where each is drawn, and its label."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Where a chart draws: both scales with their ticks, all of whose labels have room."""

    x: Scale
    y: Scale
    x_ticks: Ticks
    y_ticks: Ticks


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One drawn series: `d` is an SVG path, `look` a class of the style sheet."""

    id: str
    name: str
    look: str
    d: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """What the template draws; `rows` are the numbers behind it, under `columns`."""

    id: str
    title: str
    x_title: str
    y_title: str
    frame: Frame
    series: Sequence[Series]
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    width: int = WIDTH
    height: int = HEIGHT


def path_chart(history: RunHistory, path: ParameterPath, id_: str) -> Chart:
    """Theta of one parameter, its weighted average with a band of one deviation, its bounds."""
    lower, upper = _around(path.averaged, path.averaged_sd)
    low, high = span((*path.theta, *lower, *upper))
    frame = _frame(_whole(history.games), (low, high))
    x, y = frame.x, frame.y
    xs = [x(games) for games in history.games]
    bounds = {"minimum": path.minimum, "maximum": path.maximum}
    return Chart(
        id=id_,
        title=path.name,
        x_title="games",
        y_title="value",
        frame=frame,
        series=(
            _band(id_, "± one deviation", xs, lower, upper, y),
            _line(f"{id_}-averaged", "averaged", "second", xs, path.averaged, y),
            _line(f"{id_}-theta", "theta", "first", xs, path.theta, y),
            *(
                _line(f"{id_}-{name}", name, "bound", (x.start, x.end), (at, at), y)
                for name, at in bounds.items()
                if low <= at <= high
            ),
        ),
        columns=("iteration", "games", "theta", "averaged", "deviation"),
        rows=_rows(history.ks, history.games, path.theta, path.averaged, path.averaged_sd),
    )


def gain_chart(history: RunHistory, gain: EstimatedGain, id_: str, title: str) -> Chart:
    """Elo over the start as the rule estimates it."""
    frame = _frame(_whole(history.games), span((0.0, *gain.elo)))
    x, y = frame.x, frame.y
    xs = [x(games) for games in history.games]
    return Chart(
        id=id_,
        title=title,
        x_title="games",
        y_title="Elo",
        frame=frame,
        series=(
            _line(f"{id_}-zero", "the start", "bound", (x.start, x.end), (0.0, 0.0), y),
            _line(f"{id_}-elo", "estimated gain", "first", xs, gain.elo, y),
        ),
        columns=("iteration", "games", "Elo"),
        rows=_rows(history.ks, history.games, gain.elo),
    )


def validations_chart(history: RunHistory) -> Chart | None:
    """Measured Elo over the start with 95% intervals; None before the first pair of any match.

    The curve goes through all matches together, and its band is theirs.
    """
    played = [match for match in history.validations if match.tally.pairs]
    if not played:
        return None
    found = [one for match in played if (one := estimate(match.tally)) is not None]
    middle = [one.value for one in found]
    lower, upper = _around(middle, [one.error for one in found])
    curve = history.strength
    ends = ((), ()) if curve is None else _around(curve.curve.elo, curve.curve.errors)
    frame = _frame(_whole(history.games), span((0.0, *lower, *upper, *ends[0], *ends[1])))
    x, y = frame.x, frame.y
    xs = [x(match.games) for match in played]
    return Chart(
        id="validations",
        title="Validations: tuned values against the start",
        x_title="games of the tune",
        y_title="Elo",
        frame=frame,
        series=(
            _line("validations-zero", "the start", "bound", (x.start, x.end), (0.0, 0.0), y),
            *(() if curve is None else _together(curve, frame)),
            Series(
                id="validations-error",
                name="95% interval of a match",
                look="error",
                d="".join(
                    f"M{at:g},{y(bottom):g}V{y(top):g}"
                    for at, bottom, top in zip(xs, lower, upper, strict=True)
                ),
            ),
            Series(
                id="validations-elo",
                name="Elo of a match",
                look="point",
                d="".join(f"M{at:g},{y(value):g}h0" for at, value in zip(xs, middle, strict=True)),
            ),
        ),
        columns=("iteration", "games of the tune", "theta", "games", "Elo ± 95%", "all together"),
        rows=tuple((*_match(match), _pooled(curve, match.k)) for match in played),
    )


def results_chart(history: RunHistory) -> Chart | None:
    """Pairs of plus against minus by the points of plus; None before the first result."""
    groups = [group for group in merged(history.results, MAX_BARS) if group.tally.pairs]
    if not groups:
        return None
    frame = _frame((groups[0].first_k - 1, groups[-1].last_k), (0.0, 100.0))
    x, y = frame.x, frame.y
    shares = [
        [0.0, *accumulate(100 * n / group.tally.pairs for n in group.tally.pentanomial)]
        for group in groups
    ]
    return Chart(
        id="results",
        title="Results: pairs by the points of plus",
        x_title="iteration",
        y_title="% of pairs",
        frame=frame,
        series=tuple(
            Series(
                id=f"results-{i}",
                name=f"{points} of 2 points",
                look=f"pair{i}",
                d="".join(
                    _bar(x(group.first_k - 1), x(group.last_k), y(share[i]), y(share[i + 1]))
                    for group, share in zip(groups, shares, strict=True)
                ),
            )
            for i, points in enumerate(PAIR_POINTS)
        ),
        columns=("iterations", "games", *PAIR_POINTS, "Elo ± 95%"),
        rows=tuple(
            (
                f"{group.first_k}-{group.last_k}",
                str(group.tally.games),
                *(str(n) for n in group.tally.pentanomial),
                elo_text(group.tally),
            )
            for group in groups
        ),
    )


def _together(strength: Strength, frame: Frame) -> tuple[Series, ...]:
    """The curve through all matches, with its band."""
    xs, curve, y = [frame.x(games) for games in strength.games], strength.curve, frame.y
    bounds = _around(curve.elo, curve.errors)
    return (
        _band("validations", "95% interval of all together", xs, *bounds, y),
        _line("validations-strength", "all together", "second", xs, curve.elo, y),
    )


def _pooled(strength: Strength | None, k: int) -> str:
    """Elo by all matches together after the result k; a dash where no point of the curve is."""
    if strength is None or k not in strength.curve.ks[1:]:
        return "-"
    at = strength.curve.ks.index(k, 1)
    return f"{strength.curve.elo[at]:+.1f} ± {strength.curve.errors[at]:.1f}"


def _match(match: ValidationPoint) -> tuple[str, ...]:
    return (
        str(match.iteration_number),
        str(match.games),
        ", ".join(match.thetas),
        f"{match.tally.games}/{match.target_games}",
        elo_text(match.tally),
    )


def _whole(games: Sequence[int]) -> tuple[float, float]:
    return span(games, margin=0.0)


def _frame(x_span: tuple[float, float], y_span: tuple[float, float]) -> Frame:
    """Along x whole numbers are counted."""
    xs, ys = ticks(*x_span, X_TICKS, least=1.0), ticks(*y_span, Y_TICKS)
    x_labels, y_labels = labels(xs), labels(ys)
    left = LEFT + DIGIT * max(map(len, y_labels), default=0)
    right = max(RIGHT, DIGIT / 2 * len(x_labels[-1])) if x_labels else RIGHT
    x = Scale(*x_span, left, WIDTH - right)
    y = Scale(*y_span, HEIGHT - BOTTOM, TOP)
    x_ticks, y_ticks = (
        zip(map(x, xs), x_labels, strict=True),
        zip(map(y, ys), y_labels, strict=True),
    )
    return Frame(x, y, tuple(x_ticks), tuple(y_ticks))


def _line(
    id_: str, name: str, look: str, xs: Sequence[float], values: Iterable[float], y: Scale
) -> Series:
    return Series(id=id_, name=name, look=look, d=polyline(xs, [y(value) for value in values]))


def _band(
    id_: str,
    name: str,
    xs: Sequence[float],
    lower: Iterable[float],
    upper: Iterable[float],
    y: Scale,
) -> Series:
    d = band(xs, [y(value) for value in lower], [y(value) for value in upper])
    return Series(id=f"{id_}-band", name=name, look="band", d=d)


def _bar(left: float, right: float, bottom: float, top: float) -> str:
    return f"M{left:g},{bottom:g}V{top:g}H{right:g}V{bottom:g}Z"


def _rows(*columns: Sequence[float]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(number(value) for value in row) for row in zip(*columns, strict=True))


def _around(values: Sequence[float], errors: Sequence[float]) -> tuple[list[float], list[float]]:
    """An error less than each value, and an error more."""
    pairs = list(zip(values, errors, strict=True))
    return [value - error for value, error in pairs], [value + error for value, error in pairs]


def span(values: Iterable[float], margin: float = 0.05) -> tuple[float, float]:
    """From the lowest finite value to the highest with a margin around; never empty."""
    finite = [value for value in values if isfinite(value)] or [0.0]
    low, high = min(finite), max(finite)
    room = margin * (high - low) or max(1e-9, 0.05 * abs(high)) if margin else 0.0
    return (low - room, high + room) if high + room > low - room else (low, low + 1.0)


def ticks(low: float, high: float, most: int, least: float = 0.0) -> tuple[float, ...]:
    """At most about so many round numbers within `low`..`high`, `least` apart or more."""
    rough = max((high - low) / most, least)
    unit = 10.0 ** floor(log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)
    return tuple(i * step for i in range(ceil(low / step), floor(high / step) + 1))


def labels(values: Sequence[float]) -> tuple[str, ...]:
    """Ticks as texts with as many decimals as tell them apart."""
    if len(values) > 1:
        decimals = max(0, -floor(log10(values[1] - values[0]) + 1e-9))
        texts = tuple(f"{value:.{decimals}f}" for value in values)
        if max(map(len, texts)) <= MAX_LABEL:
            return texts
    return tuple(number(value) for value in values)


def polyline(xs: Sequence[float], ys: Sequence[float]) -> str:
    """The `d` of a path through these points."""
    return "M" + "L".join(f"{x:g},{y:g}" for x, y in zip(xs, ys, strict=True))


def band(xs: Sequence[float], lower: Sequence[float], upper: Sequence[float]) -> str:
    """The `d` of the area between two lines."""
    return polyline([*xs, *reversed(xs)], [*upper, *reversed(lower)]) + "Z"
