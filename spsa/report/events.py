"""What happened to a run: alarms, who changed what and when, and games that engines have spoilt.

What a worker has sent of a void game is text to show and never to trust.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from shlex import quote
from typing import Any

from spsa.db import Store
from spsa.db.read_queries import VoidGame
from spsa.db.run_queries import ALARM, ALARM_OVER, NEWS
from spsa.db.tables import Event, FailureRow, Run
from spsa.report.table import Column, View, joined, shown, spaced, values

_ALONE = 3
"""So many alarms of a kind are told one by one; more of them in one sentence."""

_NAMED = 4
_MAX_EVENTS = 100_000
LEFT_ADVICE = (
    "`spsa-master validate --run {}` continues it, with the options that it began with, "
    "as --games; that of two engines needs none"
)
_AGAIN = "and go on with `spsa-master run --from`"
_MACHINE = (
    "`spsa-master workers exclude {0}` gives it no more games, "
    "`spsa-master purge --run {run} --host {0}` removes its results"
)


class AlarmKind(StrEnum):
    """What may be wrong with a run, the most urgent first, and what to do.

    In its advice `{}` or `{0}` is the subject, and `{run}` the run.
    """

    advice: str

    def __new__(cls, name: str, advice: str) -> "AlarmKind":
        kind = str.__new__(cls, name)
        kind._value_, kind.advice = name, advice
        return kind

    PAUSED = "paused", "when its reason is gone, `spsa-master resume --run {}` goes on with it"
    NO_MASTER = "no_master", "start `spsa-master run`, or `validate` where a match is open"
    MATCH_LEFT = "match_left", LEFT_ADVICE
    NO_WORKER = (
        "no_worker",
        "start `compete --spsa -c 8` here or on any machine that reaches the database",
    )
    WAITING_FOR_BUILDS = "waiting_for_builds", "start a worker with `compete --spsa --build`"
    STALLED = "stalled", "check the logs of the workers and of the master"
    SILENT = ("silent", "see whether it runs and reaches the database, and start its worker again")
    DEAD = ("dead", f"give it a larger step or `active = false` in params.toml, {_AGAIN}")
    AT_BOUND = ("at_bound", f"a wider bound may be better: change it in params.toml, {_AGAIN}")
    WORSE = "worse", "do not use them; look for faults of engines or workers"
    ONE_SIDED = (
        "one_sided",
        "use smaller steps; if values break the engine, `spsa-master probe` finds them",
    )
    DRAWS = (
        "draws",
        "a less balanced book teaches more: [games] book, and `spsa-master run --from`",
    )
    TIME_CONTROLS = (
        "time_controls",
        "tune it under the one that matters, or give that more weight: change [[time_control]] in "
        f"config.toml {_AGAIN}",
    )
    TIME_LOSSES = (
        "time_losses",
        "start fewer slots on that machine (-c), or raise the margin of [time_control]",
    )
    VOID_GAMES = "void_games", "`spsa-master workers exclude {}` if it goes on"
    ENGINE_VOIDS = (
        "engine_voids",
        "suspect the engine, see `spsa-master status --voids`, and parameters at their bounds",
    )
    WORKER_RESULTS = "worker_results", _MACHINE
    WORKER_VOIDS = "worker_voids", _MACHINE
    WORKER_TIME_LOSSES = "worker_time_losses", _MACHINE
    WORKER_SPEED = (
        "worker_speed",
        "start fewer slots on that machine (-c) if other programs use its cores",
    )


STANDSTILL = frozenset(
    {
        *(AlarmKind.PAUSED, AlarmKind.NO_MASTER, AlarmKind.MATCH_LEFT),
        *(AlarmKind.NO_WORKER, AlarmKind.STALLED),
    }
)
"""Why nothing is played."""

MINOR = frozenset(
    {
        *(AlarmKind.WAITING_FOR_BUILDS, AlarmKind.SILENT, AlarmKind.DEAD),
        *(AlarmKind.AT_BOUND, AlarmKind.DRAWS),
        *(AlarmKind.TIME_CONTROLS, AlarmKind.WORKER_SPEED),
    }
)
"""What makes a run slower or teaches it less, and spoils no result."""

AlarmKey = tuple[str, str]
"""Kind and subject: what makes an alarm the same one at the next look."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """`subject` is the run, a parameter, a worker or a machine; `found` has the number.

    `alike` are all subjects of many alarms of one kind, that are told as one. `run` is the
    name of the run, where it is known.
    """

    kind: AlarmKind
    subject: str
    found: str
    alike: tuple[str, ...] = ()
    run: str = "NAME"

    @property
    def key(self) -> AlarmKey:
        return self.kind, self.subject

    @property
    def advice(self) -> str:
        return self.kind.advice.format(quote(self.subject), run=quote(self.run))

    @property
    def who(self) -> str:
        """The subject; `5 alike, a, b, c, d and 1 more`, or `5 workers silent, ...`."""
        if not self.alike:
            return self.subject
        are = "workers silent" if self.kind is AlarmKind.SILENT else "alike"
        more = f" and {len(self.alike) - _NAMED} more" if len(self.alike) > _NAMED else ""
        return f"{len(self.alike)} {are}, {', '.join(self.alike[:_NAMED])}{more}"

    def __str__(self) -> str:
        return f"{self.who}: {self.found}; {self.advice}"


@dataclass(frozen=True, slots=True)
class News:
    """What ended well: `finished`, `stopped`, `validation`; with `kind` the `subject` is unique."""

    kind: str
    subject: str
    found: str
    advice: str


ALARMS = View("alarms", values("kind", "subject", "found", "advice"))


def alarm_of(event: Event) -> Alarm | None:
    """The alarm that an event is about; None for one of another version, or written by hand."""
    kind, subject, found = (str(event.detail.get(one)) for one in ("kind", "subject", "found"))
    known = next((one for one in AlarmKind if one == kind), None)
    return None if known is None else Alarm(known, subject, found)


def told_alarms(store: Store, run: Run) -> dict[AlarmKey, Alarm]:
    """The alarms whose beginning is an event of the run, and whose end is not."""
    told: dict[AlarmKey, Alarm] = {}
    for event in store.events(run.id, _MAX_EVENTS, kinds=(ALARM, ALARM_OVER)):
        if (alarm := alarm_of(event)) is not None:
            told.pop(alarm.key, None)
            if event.kind == ALARM:
                told[alarm.key] = alarm
    return told


def grouped(alarms: Sequence[Alarm]) -> Iterator[Alarm]:
    """In the order of their kinds; one for all where many are alike, with the figures of one."""
    for kind in AlarmKind:
        same = [alarm for alarm in alarms if alarm.kind is kind]
        if len(same) <= _ALONE:
            yield from same
        else:
            first, names = same[0], tuple(alarm.subject for alarm in same)
            yield replace(first, found=f"{first.found} ({first.subject})", alike=names)


Leaf = tuple[str, str]
"""A name, as `time_control.low`, and its value."""


def leaves(data: Mapping[str, Any], prefix: str = "") -> Iterator[Leaf]:
    """Every single value of nested tables; what is empty or unknown is left out."""
    for name, value in data.items():
        if isinstance(value, Mapping):
            yield from leaves(value, f"{prefix}{name}.")
        elif value not in (None, "", [], ()):
            yield f"{prefix}{name}", shown(value)


def told(event: Event) -> str:
    """What an event says: an alarm as a sentence, else each name and its value."""
    if event.kind in (ALARM, ALARM_OVER) and (alarm := alarm_of(event)) is not None:
        return str(alarm) if event.kind == ALARM else f"{alarm.subject}: {alarm.found}"
    if event.kind == NEWS:
        return f"{event.detail.get('kind')}: {event.detail.get('found')}"
    return "; ".join(
        joined(value) if name == "reason" else f"{name.replace('.', ' ')} {value}"
        for name, value in leaves(event.detail)
        if (name, value) != ("withdrawn", "0")
    )


EVENTS = View(
    "events",
    (
        Column("at", "time (UTC)", kind="word"),
        Column("kind", "event", show=spaced, kind="word"),
        Column("actor", "by", kind="name"),
        Column("detail"),
        Column("", "detail", told, kind="text"),
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


def place(one: VoidGame | FailureRow) -> str:
    """Iteration and batch, as `compete --replay` takes them."""
    return f"{one.batch.iteration.iteration_number}.{one.batch.seq}"


def binary(key: str, heading: str) -> Column:
    """A column of the beginning of a hash."""
    return Column(key, heading, show=lambda sha256: sha256[:12], kind="word", rank=2)


VOIDS = View(
    "void games",
    (
        Column("", "batch", place, kind="name"),
        *values("iteration_number", of="batch.iteration"),
        *values("seq", of="batch"),
        Column("", "pair", "kept.pair", lambda pair: str(pair + 1), rank=1),
        Column("", "plies", lambda game: len(_moves(game)), rank=1),
        Column("machine", "machine", kind="name", rank=3),
        binary("sha256", "binary"),
        Column("", "fault", "kept.detail", kind="text"),
        *values("kept"),
        Column("values", get="parameters"),
        *values("options"),
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
    yield from (f"  {name} = {value:.12g}" for name, value in game.parameters.items())
    if common := {**run.game_settings.engine_options, **game.options}:
        yield "options:"
        yield from (f"  setoption name {name} value {value}" for name, value in common.items())


def _moves(game: VoidGame) -> Sequence[str]:
    return game.kept.position.partition(" moves ")[2].split()
