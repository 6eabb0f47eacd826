"""How numbers, times and results are written for people, and what of a value JSON has."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from math import floor, isfinite, log10
from typing import Any

from spsa.core.scoring import Estimate, Tally, elo
from spsa.text import without_passwords


def by(template: str, scale: float | None = None) -> Callable[[Any], str]:
    """A format as of `str.format`, for a value times `scale`; empty where it is unknown."""

    def text(value: Any) -> str:
        return "" if value is None else template.format(value if scale is None else scale * value)

    return text


count = by("{:,}")
"""`12,345`"""

percent = by("{:.0%}")
"""`12%`"""

time_text = by("{:%Y-%m-%d %H:%M:%S}")
"""In UTC, to the second."""


def unless_zero(value: int | None) -> str:
    """A count for a cell, which is empty where there is none."""
    return count(value) if value else ""


def number(value: float | None) -> str:
    """A value with the digits that matter; a large one with all of its whole digits."""
    if value is None:
        return ""
    return f"{value:.0f}" if 999_999.5 <= abs(value) < 1e15 else f"{value:.6g}"


def duration(seconds: float | None) -> str:
    """`2d 3h`, `1h 20m`, `4m 10s`, `0.4s`: two units are enough."""
    if seconds is None:
        return ""
    if 0.0 < seconds < 9.95:
        return f"{seconds:.1g}s" if seconds < 0.95 else f"{seconds:.1f}s".replace(".0s", "s")
    whole = round(seconds)
    for size, name, part, part_name in ((86400, "d", 3600, "h"), (3600, "h", 60, "m")):
        if whole >= size:
            return f"{whole // size}{name} {whole % size // part}{part_name}"
    return f"{whole // 60}m {whole % 60}s" if whole >= 60 else f"{whole}s"


def ago(seconds: float | None) -> str:
    """`4m 10s ago`."""
    return "" if seconds is None else f"{duration(float(round(seconds)))} ago"


def estimate(tally: Tally) -> Estimate | None:
    """Elo of plus over minus with its error; None before the first pair."""
    return elo(tally) if tally.pairs else None


def elo_text(tally: Tally | None) -> str:
    """`+14.5 ± 31.0`, the 95% interval; a dash before the first pair, nothing without a tally."""
    if tally is None:
        return ""
    found = estimate(tally)
    return "-" if found is None else plus_minus(found.value, found.error)


def plus_minus(value: float, error: float) -> str:
    """`+14.5 ± 31.0`; no more decimals than the error has a use for."""
    decimals = 1 if error < 99.95 else max(0, 1 - floor(log10(error)))
    return f"{value:+.{decimals}f} ± {error:.{decimals}f}"


def results(tally: Tally | None) -> str:
    """Wins, losses and draws of plus: `8-7-9`."""
    return "" if tally is None else f"{tally.wins}-{tally.losses}-{tally.draws}"


def pentanomial(tally: Tally | None) -> str:
    """Pairs by the points of plus, 0 to 2."""
    return "" if tally is None else " ".join(str(n) for n in tally.pentanomial)


def score(tally: Tally) -> str:
    """`240: +80 -70 =90  [10 30 50 20 10]  Elo +14.5 ± 31.0`, from plus's side."""
    counts = f"+{tally.wins} -{tally.losses} ={tally.draws}  [{pentanomial(tally)}]"
    text = f"{tally.games:,}: {counts}"
    return text + ("" if not tally.pairs else f"  Elo {elo_text(tally)}")


def shown(value: Any, between: str = ", ") -> str:
    """A value of any type as people read it; empty where it is unknown.

    In a list the pair of an iteration and its batch, `[5, 1]`, is `5.1`.
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return number(value)
    if isinstance(value, datetime):
        return time_text(value)
    if isinstance(value, list | tuple):
        return between.join(shown(part, ".") for part in value)
    return "" if value is None else str(value)


def plain(value: Any) -> Any:
    """The same of what JSON has: times in ISO 8601, null for infinite numbers, no passwords.

    A tally is its counts, and Elo with half of its 95% interval; a dataclass is its fields.
    """
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, str):
        return without_passwords(value)
    if isinstance(value, Tally):
        found = estimate(value)
        both = (None, None) if found is None else (plain(found.value), plain(found.error))
        counts = {"wins": value.wins, "losses": value.losses, "draws": value.draws}
        told = {"games": value.games, **counts, "pentanomial": list(value.pentanomial)}
        return told | dict(zip(("elo", "elo_error"), both, strict=True))
    if isinstance(value, Mapping):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple | frozenset):
        return [plain(inner) for inner in value]
    if is_dataclass(value):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    return value.isoformat() if isinstance(value, datetime) else value
