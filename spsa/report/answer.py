"""The answer that a status begins with: how much Elo, how sure, what to do, how long still."""

from collections.abc import Iterator

from spsa.report.events import MINOR, STANDSTILL, Alarm, AlarmKind, grouped
from spsa.report.matches import Match, ratio
from spsa.report.status import Status, building, open_match, players
from spsa.report.table import duration
from spsa.text import plural

LOOK = "look"
MAX_MOVED = 3
_TO_MEASURE = "`spsa-master validate` plays the tuned values against the start"


def measured_by(status: Status) -> str:
    """What has measured Elo, with its 95% interval, or how to measure it."""
    curve, match = status.measured.curve, status.measured.last
    if curve is not None:
        return f"{status.measured.over} (95%), all matches to result {curve.ks[-1]:,}"
    if match is None:
        return _TO_MEASURE
    games = plural(match.tally.games, "game")
    went_on = match.theta and not match.measured  # final after 30 results
    which = f"theta {match.theta}" if went_on else f"{match.theta or 'tuned'} theta"
    return f"{status.measured.over} (95%), by {games} of {which}"


def judged(status: Status) -> tuple[str, str]:
    """Go on, stop, extend or look, and why: one sentence."""
    if look := _to_look_at(status):
        return LOOK, str(look)
    return str(status.verdict.advice), status.verdict.reason


def _to_look_at(status: Status) -> Alarm | None:
    """The first alarm that makes the verdict wait."""
    serious = (a for a in status.alarms if a.kind not in MINOR)
    if status.is_over:
        serious = (a for a in status.alarms if a.kind is AlarmKind.WORSE)
    return next(serious, None)


def headline(status: Status) -> str:
    """`run first: running, 3 of 100 iterations, 24 games, mixture, seed 42; 2 alarms`."""
    run, alarms = status.run, len(status.alarms)
    match = open_match(status)
    what = "matches of engines"
    if run.tunes:
        what = f"{run.applied:,} of {plural(run.max_iterations, 'iteration')}"
    if match is not None:
        what += f", a validation of {plural(match.target_games, 'game')}"
        what += f", LLR {ratio(test)}" if (test := Match(match).test) else ""
    if not run.tunes:
        return f"run {run.name}: {what}"
    told = f"run {run.name}: {run.status}, {what}, {plural(status.games.games, 'game')}"
    told += f", {run.algorithm}, seed {run.seed}"
    return told + (f"; {plural(alarms, 'alarm')}" if alarms else "")


def answer_lines(status: Status) -> Iterator[str]:
    """The answer as sentences, after the headline: of a run without theta, that of its matches."""
    if not status.run.tunes:
        told = (line for match in status.validations[-1:] for line in match.sentences())
        yield "; ".join(told) or "no match has been played"
        look = _to_look_at(status)
        yield pace(status) or (str(look) if look else "nothing is played now")
        return
    is_measured, how = status.measured.elo is not None, measured_by(status)
    yield f"measured: {status.measured} {how}" if is_measured else f"{status.measured}: {how}"
    yield f"verdict: {'; '.join(judged(status))}"
    if now := pace(status):
        yield now


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
    if made := building(status):
        yield made
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


def pace(status: Status) -> str:
    """`left: 2h 3m, at 1,200 games an hour; 3 workers on 12 slots`; empty if nothing is played."""
    if status.is_over or any(alarm.kind in STANDSTILL for alarm in status.alarms):
        return ""
    left, rate = duration(status.seconds_left) or "not known yet", 3600 * status.games_per_second
    told = f", at {rate:,.0f} games an hour" if rate >= 1 else ""
    return f"left: {left}{told}; {players(status)}"


def alarm_lines(status: Status) -> Iterator[str]:
    """A line an alarm, alike ones in one, without what the answer says."""
    said = _to_look_at(status)
    yield from (f"alarm: {one}" for one in grouped([a for a in status.alarms if a is not said]))


def sentences(status: Status) -> Iterator[str]:
    """All that a status says beside its tables."""
    yield headline(status)
    told = (answer_lines, ends, alarm_lines, notes)
    yield from (f"  {line}" for some in told for line in some(status))
