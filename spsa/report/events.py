"""What happened to a run: who changed what and when, and which games engines have spoilt.

What a worker has sent of a void game is text to show and never to trust.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spsa.db.read_queries import VoidGame
from spsa.db.run_queries import ALARM, ALARM_OVER
from spsa.db.tables import Event, Run
from spsa.report.alarm import alarm_of
from spsa.report.formats import time_text
from spsa.report.table import Column, View, values

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


def told(event: Event) -> str:
    """What an event says: an alarm as a sentence, else each name and its value."""
    if event.kind in (ALARM, ALARM_OVER) and (alarm := alarm_of(event)) is not None:
        return str(alarm) if event.kind == ALARM else f"{alarm.subject}: {alarm.found}"
    return "; ".join(
        value if name == "reason" else f"{name.replace('.', ' ')} {value}"
        for name, value in leaves(event.detail)
        if (name, value) != ("withdrawn", "0")
    )


EVENTS = View(
    "events",
    (
        Column("at", "time (UTC)", show=time_text, kind="word"),
        Column("kind", "event", show=lambda kind: kind.replace("_", " "), kind="word"),
        Column("actor", "by", kind="name"),
        Column("detail"),
        Column("", "detail", lambda event: event, told, kind="text"),
    ),
    "Who changed what.",
)

SETTINGS = View(
    "settings",
    (
        Column("", "setting", lambda leaf: leaf[0], kind="name"),
        Column("", "value", lambda leaf: leaf[1], kind="text"),
    ),
)
"""Of leaves."""


def place(game: VoidGame) -> str:
    """Iteration and batch, as `compete --replay` takes them."""
    return f"{game.iteration_number}.{game.seq}"


VOIDS = View(
    "void games",
    (
        Column("", "batch", lambda game: game, lambda game: place(game), kind="name"),
        *values("iteration_number", "seq"),
        Column("", "pair", "kept.pair", lambda pair: str(pair + 1), rank=1),
        Column("", "plies", lambda game: len(_moves(game)), rank=1),
        Column("machine", "machine", kind="name", rank=3),
        Column("sha256", "binary", show=lambda sha256: sha256[:12], kind="word", rank=2),
        Column("", "fault", "kept.detail", kind="text"),
        *values("kept", "values", "options"),
    ),
    "The last ones, the newest first.",
)


def void_lines(game: VoidGame, run: Run) -> Iterator[str]:
    """All there is to know about one game, to find the fault with."""
    kept = game.kept
    where = f" on machine {game.machine}" if game.machine else ""
    yield f"batch {place(game)}, pair {kept.pair + 1} of the run{where}: {kept.detail}"
    if kept.position:
        yield f"White: {kept.white}; {len(_moves(game))} plies; the position:"
        yield f"  {kept.position}"
    yield f"what {kept.culprit} wrote last:"
    yield from (f"  | {line}" for line in kept.output.splitlines() or ["(nothing)"])
    yield f"values of {kept.culprit}, binary {game.sha256}:"
    yield from (f"  {name} = {value:.12g}" for name, value in game.values.items())
    common = {**run.game_settings.engine_options, **game.options}
    if common:
        yield "options:"
        yield from (f"  setoption name {name} value {value}" for name, value in common.items())


def _moves(game: VoidGame) -> Sequence[str]:
    return game.kept.position.partition(" moves ")[2].split()
