"""One thing that is wrong with a run: what, how much, and what to do."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum

from spsa.db.run_queries import ALARM
from spsa.db.tables import Event

_ALONE = 3
"""So many alarms of a kind are told one by one; more of them in one sentence."""

_NAMED = 4

AlarmKey = tuple[str, str]
"""Kind and subject: what makes an alarm the same one at the next look."""


class AlarmKind(StrEnum):
    """What is wrong."""

    PAUSED = "paused"
    NO_MASTER = "no_master"
    NO_WORKER = "no_worker"
    WAITING_FOR_BUILDS = "waiting_for_builds"
    WAITING_FOR_WORK = "waiting_for_work"
    STALLED = "stalled"
    DEAD = "dead"
    AT_BOUND = "at_bound"
    STEP = "step"
    NOISE = "noise"
    DIVERGING = "diverging"
    WORSE = "worse"
    ONE_SIDED = "one_sided"
    DRAWS = "draws"
    TIME_LOSSES = "time_losses"
    VOID_GAMES = "void_games"
    WORKER_RESULTS = "worker_results"
    WORKER_VOIDS = "worker_voids"
    WORKER_TIME_LOSSES = "worker_time_losses"
    WORKER_SPEED = "worker_speed"
    WORKER_SCALE = "worker_scale"
    DISK = "disk"


STANDSTILL = frozenset(
    {AlarmKind.PAUSED, AlarmKind.NO_MASTER, AlarmKind.NO_WORKER, AlarmKind.STALLED}
)
"""Why nothing is played."""

MINOR = frozenset(
    {
        *(AlarmKind.WAITING_FOR_BUILDS, AlarmKind.WAITING_FOR_WORK, AlarmKind.DEAD),
        *(AlarmKind.AT_BOUND, AlarmKind.STEP, AlarmKind.NOISE, AlarmKind.DRAWS),
        *(AlarmKind.WORKER_SPEED, AlarmKind.WORKER_SCALE),
    }
)
"""What makes a run slower or teaches it less, and spoils no result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """`subject` is the run, a parameter or a worker; `found` has the number, `advice` a remedy."""

    kind: AlarmKind
    subject: str
    found: str
    advice: str

    @property
    def key(self) -> AlarmKey:
        return self.kind, self.subject

    def __str__(self) -> str:
        return f"{self.subject}: {self.found}; {self.advice}"


_EVENT = tuple(field.name for field in fields(Alarm))


def event_detail(alarm: Alarm) -> dict[str, str]:
    """What the event of an alarm says."""
    return {name: str(getattr(alarm, name)) for name in _EVENT}


def alarm_of(event: Event) -> Alarm | None:
    """The alarm that an event is about; None for one of another version, or written by hand."""
    try:
        kind, subject, found, advice = (str(event.detail[name]) for name in _EVENT)
        return Alarm(kind=AlarmKind(kind), subject=subject, found=found, advice=advice)
    except (KeyError, ValueError):
        return None


def grouped(alarms: Sequence[Alarm]) -> Iterator[Alarm]:
    """In the order of their kinds; one for all where many are alike, with the figures of one."""
    for kind in AlarmKind:
        same = [alarm for alarm in alarms if alarm.kind is kind]
        yield from same if len(same) <= _ALONE else (_together(same),)


def _together(same: Sequence[Alarm]) -> Alarm:
    first, names = same[0], [alarm.subject for alarm in same]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    subject = f"{len(names)} alike, {', '.join(names[:_NAMED])}{more}"
    found = f"{first.found} ({first.subject})"
    return Alarm(kind=first.kind, subject=subject, found=found, advice=first.advice)


def standing(events: Sequence[Event]) -> dict[AlarmKey, Alarm]:
    """The alarms that have begun and are not over, by the events of both."""
    found: dict[AlarmKey, Alarm] = {}
    for event in events:
        if (alarm := alarm_of(event)) is not None:
            found.pop(alarm.key, None)
            if event.kind == ALARM:
                found[alarm.key] = alarm
    return found
