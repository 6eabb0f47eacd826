"""One thing that is wrong with a run: what, how much, and what to do."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum

from spsa.db import Store
from spsa.db.run_queries import ALARM, ALARM_OVER
from spsa.db.tables import Event, Run

_ALONE = 3
"""So many alarms of a kind are told one by one; more of them in one sentence."""

_NAMED = 4
_MAX_EVENTS = 100_000

AlarmKey = tuple[str, str]
"""Kind and subject: what makes an alarm the same one at the next look."""


class AlarmKind(StrEnum):
    """What is wrong, the most urgent first."""

    PAUSED = "paused"
    NO_MASTER = "no_master"
    NO_WORKER = "no_worker"
    WAITING_FOR_BUILDS = "waiting_for_builds"
    STALLED = "stalled"
    DEAD = "dead"
    AT_BOUND = "at_bound"
    STEP = "step"
    NOISE = "noise"
    WORSE = "worse"
    ONE_SIDED = "one_sided"
    DRAWS = "draws"
    TIME_LOSSES = "time_losses"
    VOID_GAMES = "void_games"
    WORKER_RESULTS = "worker_results"
    WORKER_VOIDS = "worker_voids"
    WORKER_TIME_LOSSES = "worker_time_losses"
    WORKER_SPEED = "worker_speed"
    DISK = "disk"


STANDSTILL = frozenset(
    {AlarmKind.PAUSED, AlarmKind.NO_MASTER, AlarmKind.NO_WORKER, AlarmKind.STALLED}
)
"""Why nothing is played."""

MINOR = frozenset(
    {
        *(AlarmKind.WAITING_FOR_BUILDS, AlarmKind.DEAD, AlarmKind.AT_BOUND, AlarmKind.STEP),
        *(AlarmKind.NOISE, AlarmKind.DRAWS, AlarmKind.WORKER_SPEED),
    }
)
"""What makes a run slower or teaches it less, and spoils no result."""


@dataclass(frozen=True, slots=True)
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


def event_detail(alarm: Alarm) -> dict[str, str]:
    """What the event of an alarm says."""
    return {name: str(value) for name, value in asdict(alarm).items()}


def alarm_of(event: Event) -> Alarm | None:
    """The alarm that an event is about; None for one of another version, or written by hand."""
    try:
        found = Alarm(**event.detail)
        return Alarm(AlarmKind(found.kind), *map(str, (found.subject, found.found, found.advice)))
    except (TypeError, ValueError):
        return None


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
        yield from same if len(same) <= _ALONE else (_together(same),)


def _together(same: Sequence[Alarm]) -> Alarm:
    first, names = same[0], [alarm.subject for alarm in same]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    subject = f"{len(names)} alike, {', '.join(names[:_NAMED])}{more}"
    return Alarm(first.kind, subject, f"{first.found} ({first.subject})", first.advice)
