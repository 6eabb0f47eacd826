"""What was done to a run, by whom and when, for people and for programs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spsa.db.run_queries import ALARM, ALARM_OVER
from spsa.db.tables import Event
from spsa.report.alarm import alarm_of
from spsa.report.status import plain
from spsa.report.table import Column, FittedTable

Leaf = tuple[str, str]
"""A name, as `time_control.low`, and its value."""


def leaves(data: Mapping[str, Any], prefix: str = "") -> Iterator[Leaf]:
    """Every single value of nested tables; what is empty or unknown is left out."""
    for name, value in data.items():
        if isinstance(value, Mapping):
            yield from leaves(value, f"{prefix}{name}.")
        elif value not in (None, "", [], ()):
            yield f"{prefix}{name}", _text(value)


def _text(value: Any, between: str = ", ") -> str:
    """The batch 1 of iteration 5, a list in a list, is `5.1`."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return between.join(_text(part, ".") for part in value)
    return f"{value:.6g}" if isinstance(value, float) else str(value)


_NAMES = {
    "number": "purge",
    "of.host": "of the machine",
    "of.worker": "of the worker",
    "of.iterations": "of iterations",
    "of.batches": "of batches",
    "of.since": "reported since",
    "of.until": "reported before",
}


def told(event: Event) -> str:
    """What an event says: an alarm as a sentence, else each name and its value."""
    if event.kind in (ALARM, ALARM_OVER) and (alarm := alarm_of(event)) is not None:
        return str(alarm) if event.kind == ALARM else f"{alarm.subject}: {alarm.found}"
    return "; ".join(
        value if name == "reason" else f"{_NAMES.get(name, name)} {value}"
        for name, value in leaves(event.detail)
        if (name, value) != ("withdrawn", "0")
    )


def kind_told(event: Event) -> str:
    """The event in words."""
    return event.kind.replace("_", " ")


def events_table(events: Sequence[Event]) -> FittedTable:
    """A line an event, the oldest first."""
    table = FittedTable(
        "events",
        (
            Column("time (UTC)", is_number=False),
            Column("event", is_number=False),
            Column("by", is_number=False),
            Column("detail", is_number=False),
        ),
    )
    for event in events:
        table.add(f"{event.at:%Y-%m-%d %H:%M:%S}", kind_told(event), event.actor, told(event))
    return table


def to_json(events: Sequence[Event]) -> list[dict[str, Any]]:
    """For programs; times in ISO 8601."""
    return [
        {
            "at": event.at.isoformat(),
            "kind": event.kind,
            "actor": event.actor,
            "detail": plain(event.detail),
        }
        for event in events
    ]
