"""The answer that a status begins with: how much Elo, how sure, what to do, how long still."""

from collections.abc import Iterator
from dataclasses import dataclass

from spsa.report.events import MINOR, STANDSTILL, Alarm, AlarmKind, grouped
from spsa.report.formats import duration, plus_minus
from spsa.report.matches import ratio
from spsa.report.status import Status, building, open_match, players
from spsa.text import plural

LOOK = "look"
MAX_MOVED = 3
_UNMEASURED = "not measured: `spsa-master validate` plays the tuned values against the start"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the page of a run opens with.

    `measured` is Elo with its 95% interval, empty where nothing was; `measured_by` says by what, or
    how to. `word` is go on, stop, extend or look, `why` one sentence: in the last case `cause`.
    `pace` has time left and speed, where games are played.
    """

    measured: str
    measured_by: str
    word: str
    why: str
    pace: str
    cause: Alarm | None = None


def answer(status: Status) -> Answer:
    """The answer of a status."""
    found, look = status.measured_elo, _to_look_at(status)
    return Answer(
        measured="" if found is None else f"{plus_minus(found.value, found.error)} Elo",
        measured_by=_measured_by(status),
        word=LOOK if look else str(status.verdict.advice),
        why=str(look) if look else status.verdict.reason,
        pace=_pace(status),
        cause=look,
    )


def _to_look_at(status: Status) -> Alarm | None:
    """The first alarm that makes the verdict wait."""
    serious = (a for a in status.alarms if a.kind not in MINOR)
    if status.is_over:
        serious = (a for a in status.alarms if a.kind is AlarmKind.WORSE)
    return next(serious, None)


def _measured_by(status: Status) -> str:
    if status.strength is not None:
        return f"{status.over} (95%), all matches to result {status.strength.ks[-1]:,}"
    match = status.measuring
    if match is None:
        return _UNMEASURED
    which = match.theta or "tuned"
    return f"{status.over} (95%), by {plural(match.tally.games, 'game')} of {which} theta"


def headline(status: Status) -> str:
    """`run first: running, 3 of 100 iterations, 24 games, mixture, seed 42; 2 alarms`."""
    run, alarms = status.run, len(status.alarms)
    match = open_match(status)
    what = "matches of engines"
    if run.tunes:
        what = f"{run.applied:,} of {plural(run.max_iterations, 'iteration')}"
    if match is not None:
        what += f", a validation of {plural(match.target_games, 'game')}"
        what += f", LLR {ratio(test)}" if (test := status.validations[-1].test) else ""
    if not run.tunes:
        return f"run {run.name}: {what}"
    told = f"run {run.name}: {run.status}, {what}, {plural(status.games.games, 'game')}"
    told += f", {run.algorithm}, seed {run.seed}"
    return told + (f"; {plural(alarms, 'alarm')}" if alarms else "")


def answer_lines(status: Status) -> Iterator[str]:
    """The answer as sentences, after the headline: of a run without theta, that of its matches."""
    found = answer(status)
    if not status.run.tunes:
        told = (line for match in status.validations[-1:] for line in match.sentences())
        yield "; ".join(told) or "no match has been played"
        yield found.pace or (found.why if found.cause else "nothing is played now")
        return
    yield f"measured: {found.measured} {found.measured_by}" if found.measured else _UNMEASURED
    yield f"verdict: {found.word}; {found.why}"
    if found.pace:
        yield found.pace


def moved(status: Status) -> Iterator[str]:
    """The parameters that moved most, as a sentence; nothing before one has moved."""
    active = [p for p in status.parameters if p.active and p.steps_moved]
    if first := sorted(active, key=lambda p: -abs(p.steps_moved))[:MAX_MOVED]:
        steps = ", ".join(f"{p.name} {p.steps_moved:+.1f}" for p in first)
        yield f"moved most, in steps: {steps}"


def ends(status: Status) -> Iterator[str]:
    """How to take the result, what the run began from, and what the run before it came to."""
    if status.taking:
        yield f"take the result: `{status.taking}` prints it"
    if status.source is not None:
        yield f"source: {status.source}"
    if status.origin:
        yield status.origin
    if status.earlier is not None:
        yield f"earlier: {status.earlier}"


def notes(status: Status) -> Iterator[str]:
    """What else is to be known of a run, where it is."""
    run = status.run
    if run.reason and not status.is_paused:
        yield f"reason: {run.reason}"
    if run.tunes:
        yield believed(status)
    for match in status.validations[-1:]:
        if run.tunes and match.test is not None:
            yield from match.sentences()
    if status.builds.iterations:
        yield building(status.builds)
    if gone := [one for one in status.workers if not one.is_present]:
        yield f"{plural(len(gone), 'worker')} of this database not heard of for two minutes"
    if status.purged_games:
        purged = plural(status.purged_games, "game")
        yield f"{purged} removed by {plural(run.purges, 'purge')}"
    if status.void_games:
        yield f"{plural(status.void_games, 'void game')} (played again, never counted)"
    if status.bounded:
        yield f"{plural(status.bounded, 'step')} bounded: a result was implausibly one-sided"


def believed(status: Status) -> str:
    """The Elo that the rule believes to have gained, or why it is unknown."""
    found = status.verdict
    if found.gained is None:
        return f"believed gain: not known, because {found.unknown}"
    return (
        f"believed gain: about {found.gained:+.1f} Elo, by the rule's own model; the games do not "
        "say how wrong that is"
    )


def _pace(status: Status) -> str:
    """`left: 2h 3m, at 1,200 games an hour; 3 workers on 12 slots`; empty if nothing is played."""
    if status.is_over or any(alarm.kind in STANDSTILL for alarm in status.alarms):
        return ""
    left, rate = duration(status.seconds_left) or "not known yet", 3600 * status.games_per_second
    return f"left: {left}, at {rate:,.0f} games an hour; {players(status)}"


def alarm_lines(status: Status) -> Iterator[str]:
    """A line an alarm, alike ones in one, without what the answer says."""
    said = answer(status).cause
    yield from (f"alarm: {one}" for one in grouped([a for a in status.alarms if a is not said]))


def sentences(status: Status) -> Iterator[str]:
    """All that a status says beside its tables."""
    yield headline(status)
    told = (answer_lines, ends, alarm_lines, notes)
    yield from (f"  {line}" for some in told for line in some(status))
