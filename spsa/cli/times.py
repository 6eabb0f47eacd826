"""Moments and places as people write them on a command line."""

import re
from datetime import UTC, datetime, timedelta

import click

Moment = datetime | timedelta
"""A time in UTC, or how long ago it was by the database's clock."""

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_AGO = re.compile(r"((?:\d+\s*[smhdw]\s*)+)(?:ago)?", re.ASCII)
_PLACE = re.compile(r"(\d{1,9})\.(\d{1,9})", re.ASCII)


def moment(_context: click.Context, _option: click.Parameter, text: str | None) -> Moment | None:
    """A callback for `2026-11-21T14:00`, `2026-11-21 14:00:30+01:00`, `90m`, `1d12h`, `2h ago`."""
    if text is None:
        return None
    try:
        if (ago := _AGO.fullmatch(text.strip().lower())) is not None:
            return _length(ago[1])
        found = datetime.fromisoformat(text.strip())
        zoned = found.replace(tzinfo=UTC) if found.tzinfo is None else found
        return zoned.astimezone(UTC)
    except (OverflowError, ValueError):
        raise click.BadParameter(
            f"{text!r} is no time: write 2026-11-21T14:00 (UTC), or how long ago: 90m, 2h, 1d"
        ) from None


def places(
    _context: click.Context, _option: click.Parameter, texts: tuple[str, ...]
) -> tuple[tuple[int, int], ...]:
    """A callback for `12.3`: batch 3 of iteration 12."""
    return tuple(_place(text) for text in texts)


def _place(text: str) -> tuple[int, int]:
    found = _PLACE.fullmatch(text)
    if found is None:
        raise click.BadParameter(f"{text!r} is no batch: write 12.3 for batch 3 of iteration 12")
    return int(found[1]), int(found[2])


def resolved(moment: Moment | None, now: datetime) -> datetime | None:
    """The moment as a time; `now` is by the database's clock.

    Raises:
        BadParameter: it is before all calendars.
    """
    if not isinstance(moment, timedelta):
        return moment
    try:
        return now - moment
    except OverflowError:
        raise click.BadParameter(f"{moment.days} days ago there was no database") from None


def _length(text: str) -> timedelta:
    parts = re.findall(r"(\d+)\s*([smhdw])", text)
    return sum((timedelta(**{_UNITS[unit]: int(n)}) for n, unit in parts), timedelta())
