"""The runs of a database, and the status of one as a frozen value: all reports begin with it.

A status says in sentences how much Elo was measured, how sure, what to do, and how long still.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from shlex import quote

from spsa.algorithms.time_controls import TimeControlSums
from spsa.core import Builds
from spsa.core.json_values import as_written
from spsa.db import Store
from spsa.db.read_queries import Totals
from spsa.db.run_queries import VERDICT
from spsa.db.tables import Iteration, Run
from spsa.lifecycle import Purpose, RunStatus
from spsa.master.session import RunSettings
from spsa.master.verdict import Advice, Verdict, verdict
from spsa.report.events import ALARMS, MINOR, STANDSTILL, Alarm, AlarmKind, grouped
from spsa.report.matches import (
    ITERATIONS,
    MATCHES,
    TIME_CONTROLS,
    Match,
    Strength,
    TimeControlStatus,
    matches_of,
    measured,
    ratio,
    time_control_sums,
    time_controls,
)
from spsa.report.parameters import PARAMETERS, ParameterStatus, parameters, trail
from spsa.report.table import Column, View, duration, joined, values
from spsa.report.workers import WORKERS, FleetMember, fleet
from spsa.text import plural

RATE_SECONDS = 300.0
"""Games per second are those of the last five minutes."""

VALIDATIONS = 5
"""How many of the last validations a status shows."""

MAX_MOVED = 3
MAX_LOOKS = 5

RUNS = View(
    "runs",
    (
        Column("name", "name", kind="name"),
        Column("status", "status", kind="word"),
        Column("priority", "priority", rank=2),
        Column("share", "share", rank=2),
        Column("claimed_batches", "claimed batches", "slots"),
        Column(
            "", "iterations", lambda run: run, lambda run: f"{run.applied:,}/{run.max_iterations:,}"
        ),
        Column("has_master", "master", kind="word", rank=1),
        *values("applied", "max_iterations", "live"),
    ),
    "In the order in which they are served; what ended longest ago comes last.",
    "There is no run yet. `spsa-master run` starts one.",
)


def progress(run: Run) -> str:
    return f"{run.applied:,} of {plural(run.max_iterations, 'iteration')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierRun:
    """The run of the database that ended last, and what its matches measured."""

    run: Run
    measured: Strength

    def __str__(self) -> str:
        run, found = self.run, self.measured
        whom = "" if found.over_start else f" {found.over}"
        return f"run {run.name}: {run.status}, {progress(run)}, {found}{whom}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parent:
    """The run where this one started, after its result `at`, and the games that it had by then."""

    run: str
    at: int
    games: int | None  # None if it is not in this database any more

    def __str__(self) -> str:
        after = plural(self.at, "result")
        games = "the games" if self.games is None else plural(self.games, "game")
        return (
            f"it started where run {self.run} was after {after}: on top of {games} of {self.run}, "
            "not counted here"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """All that `status` shows."""

    run: Run
    totals: Totals
    age_seconds: float
    # since a game could be reported: the oldest open iteration, or else the run, and the oldest
    # claim that is held, were there
    waiting_seconds: float
    games_per_second: float
    open: tuple[Iteration, ...]
    matches: tuple[Match, ...]
    parameters: tuple[ParameterStatus, ...]
    workers: tuple[FleetMember, ...]
    verdict: Verdict
    said_stop: bool  # by the last verdict that its master recorded
    purged_games: int
    measured: Strength
    origin: Parent | None = None
    earlier: EarlierRun | None = None
    builds: Builds = field(default_factory=Builds)
    time_controls: tuple[TimeControlStatus, ...] = ()  # where there are several
    sums: TimeControlSums | None = None  # by time control
    alarms: tuple[Alarm, ...] = ()  # of `spsa.report.alarms`, where they were looked for

    @property
    def taking(self) -> Sequence[tuple[str, str]]:
        """The commands that take the result, each with what it prints: the tuned values first."""
        name = quote(self.run.name)
        told = "A patch of the source for `git apply`; for UCI options, `setoption` lines"
        if RunSettings.of(self.run).delivery.get("kind") == "command":
            told = "The tuned values as the program reads them that writes the files"
        return (
            (told, f"spsa-master params diff --run {name}"),
            (
                "The tuned values as the lines that OpenBench takes",
                f"spsa-master params export --format openbench --run {name}",
            ),
            ("A match of the tuned values against the start", f"spsa-master validate --run {name}"),
        )

    @property
    def validations(self) -> tuple[Match, ...]:
        """The last matches."""
        return self.matches[-VALIDATIONS:]

    @property
    def is_over(self) -> bool:
        """Whether nothing is played any more."""
        return self.run.finished_at is not None and not self.open

    @property
    def open_tuning(self) -> tuple[Iteration, ...]:
        """The open iterations of the tuning."""
        return tuple(it for it in self.open if it.purpose is Purpose.TUNE)

    @property
    def present(self) -> tuple[FleetMember, ...]:
        """The workers that are there."""
        return tuple(one for one in self.workers if one.is_present)

    @property
    def playing(self) -> tuple[FleetMember, ...]:
        """Those of them whose machines are given batches."""
        return tuple(one for one in self.present if not one.is_set_aside)

    @property
    def games_left(self) -> int:
        """Games of the tuning still to play; what a purge took from closed iterations is not."""
        played = sum(it.games_played for it in self.open_tuning)
        closed = self.run.applied * games_per_iteration(self.run)
        return max(0, wanted_games(self.run) - closed - played)

    @property
    def seconds_left(self) -> float | None:
        """Until the end at this rate; None where nothing is played, as in a run that is paused.

        Nor is it known of a sequential test.
        """
        rate, match = self.games_per_second, self.open_match
        if rate <= 0.0 or not self.playing or (match is not None and match.test is not None):
            return None
        left = self.games_left if self.run.finished_at is None else 0
        matches = (it for it in self.open if it.purpose is Purpose.VALIDATE)
        return (left + sum(it.target_games - it.games_played for it in matches)) / rate

    @property
    def set_aside(self) -> frozenset[str]:
        """The machines that are given no batches at all."""
        return frozenset(one.worker.host for one in self.workers if one.is_set_aside)

    @property
    def measured_by(self) -> str:
        """What has measured Elo, with its 95% interval, or how to measure it."""
        curve, match = self.measured.curve, self.measured.last
        if curve is not None:
            return f"{self.measured.over} (95%), all matches to result {curve.ks[-1]:,}"
        if match is None:
            asked = f"`spsa-master validate --run {quote(self.run.name)}`"
            return f"{asked} plays the tuned values against the start"
        games, theta = plural(match.tally.games, "game"), match.theta.removeprefix("theta ")
        return f"{self.measured.over} (95%), by {games} of theta {theta}"

    @property
    def judged(self) -> tuple[str, str]:
        """Go on, stop, extend or look, and why: one sentence."""
        if look := self._to_look_at:
            return "look", str(look)
        return str(self.verdict.advice), self.verdict.reason

    @property
    def _to_look_at(self) -> Alarm | None:
        """The first alarm that makes the verdict wait."""
        serious = (a for a in self.alarms if a.kind not in MINOR)
        if self.is_over:
            serious = (a for a in self.alarms if a.kind is AlarmKind.WORSE)
        return next(serious, None)

    @property
    def headline(self) -> str:
        """`run first: running, 2 alarms, 3 of 100 iterations, 24 games, mixture, seed 42`."""
        run, matched = self.run, self.matched
        if not run.tunes:
            return f"run {run.name}: matches of engines{matched}"
        alarms = f", {plural(len(self.alarms), 'alarm')}" if self.alarms else ""
        games = plural(self.totals.tally.games, "game")
        told = f"run {run.name}: {run.status}{alarms}, {progress(run)}{matched}, {games}"
        return f"{told}, {run.algorithm}, seed {run.seed}"

    def answer_lines(self) -> Iterator[str]:
        """The answer after the headline; of a run without theta, that of its matches."""
        if not self.run.tunes:
            told = (line for match in self.validations[-1:] for line in match.sentences())
            yield "; ".join(told) or "no match has been played"
            look = self._to_look_at
            yield self.pace or (str(look) if look else "nothing is played now")
            return
        is_measured, how = self.measured.elo is not None, self.measured_by
        yield f"measured: {self.measured} {how}" if is_measured else f"{self.measured}: {how}"
        yield f"verdict: {'; '.join(self.judged)}"
        if now := self.pace:
            yield now

    def moved(self) -> Iterator[str]:
        """The parameters that moved most, as a sentence; nothing before one has moved."""
        active = [p for p in self.parameters if p.active and p.steps_moved]
        if first := sorted(active, key=lambda p: -abs(p.steps_moved))[:MAX_MOVED]:
            steps = ", ".join(f"{p.name} {p.steps_moved:+.1f}" for p in first)
            yield f"moved most, in steps: {steps}"

    def ends(self) -> Iterator[str]:
        """How to take the result, what the run began from, and what the run before it came to."""
        if self.run.applied:
            (_, command), *_ = self.taking
            yield f"take the result: `{command}` prints it"
        if (source := RunSettings.of(self.run).source) is not None:
            yield f"source: {source}"
        if self.origin is not None:
            yield str(self.origin)
        if self.earlier is not None:
            yield f"earlier: {self.earlier}"

    def notes(self) -> Iterator[str]:
        """What else is to be known of a run, where it is."""
        run = self.run
        if run.reason and run.status is not RunStatus.PAUSED:
            yield f"reason: {joined(run.reason)}"
        if run.tunes:
            yield self.believed
        if looks := [f"{p.name}: {p.step_looks}" for p in self.parameters if p.step_looks]:
            more = ("...",) if len(looks) > MAX_LOOKS else ()
            yield "; ".join((*looks[:MAX_LOOKS], *more))
        for match in self.validations[-1:]:
            if run.tunes and match.test is not None:
                yield from match.sentences()
        if gone := [one for one in self.workers if not (one.is_present or one.is_revoked)]:
            yield f"{plural(len(gone), 'worker')} of this database not heard of for two minutes"
        if self.purged_games:
            purged = plural(self.purged_games, "game")
            yield f"{purged} removed by {plural(run.purges, 'purge')}"
        if voids := self.totals.void_games:
            yield f"{plural(voids, 'void game')} (played again, never counted)"
        if bounded := self.totals.bounded_steps:
            yield f"{plural(bounded, 'step')} bounded: a result was implausibly one-sided"

    @property
    def believed(self) -> str:
        """The Elo that the rule believes to have gained, or why it is unknown."""
        found = self.verdict
        if found.gained is None:
            return f"believed gain: not known, because {found.unknown}"
        return (
            f"believed gain: about {found.gained:+.1f} Elo, by the rule's own model; the games do "
            "not say how wrong that is"
        )

    @property
    def pace(self) -> str:
        """`left: 2h, at 90 games an hour; 3 workers on 12 slots, 1 set aside`; "" if at rest."""
        if self.is_over or any(alarm.kind in STANDSTILL for alarm in self.alarms):
            return ""
        seconds, rate = self.seconds_left, 3600 * self.games_per_second
        left = "not known yet" if seconds is None else duration(seconds)
        told = f", at {rate:,.0f} games an hour" if rate >= 1 else ""
        slots = plural(sum(one.worker.concurrency for one in self.playing), "slot")
        players = f"{plural(len(self.playing), 'worker')} on {slots}"
        aside = len(self.present) - len(self.playing)
        return f"left: {left}{told}; {players}" + (f", {aside} set aside" if aside else "")

    def alarm_lines(self) -> Iterator[str]:
        """A line an alarm, alike ones in one, without what the answer says."""
        said = self._to_look_at
        yield from (f"alarm: {one}" for one in grouped([a for a in self.alarms if a is not said]))

    def sentences(self) -> Iterator[str]:
        """All that a status says beside its tables."""
        yield self.headline
        told = (self.answer_lines(), [self.building], self.ends(), self.alarm_lines(), self.notes())
        yield from (f"  {line}" for lines in told for line in lines if line)

    @property
    def open_match(self) -> Match | None:
        """The newest match that is open; not one in the background of the tuning.

        A sequential one has the sums over its rounds, as they were at the last look at all matches.
        """
        rounds = (it for it in reversed(self.open) if it.purpose is Purpose.VALIDATE)
        if (last := next((it for it in rounds if not it.is_background), None)) is None:
            return None
        if last.asked.sprt is None:
            return Match(last)
        matches = (one for one in self.matches if one.iteration.match_number == last.match_number)
        return next(matches, Match(last))

    @property
    def matched(self) -> str:
        """`, a validation of 400 games`, or the state of its test; "" where no match is open."""
        if (match := self.open_match) is None:
            return ""
        if (test := match.test) is not None:
            played = plural(match.tally.games, "game")
            return f", a sequential validation after {played}, LLR {ratio(test)}"
        return f", a validation of {plural(match.iteration.target_games, 'game')}"

    @property
    def played(self) -> tuple[int, int] | None:
        """How many games were played, of how many: of the open match or of the tune.

        None for a sequential test, whose end is not known.
        """
        if (match := self.open_match) is None:
            return (wanted := wanted_games(self.run)) - self.games_left, wanted
        its = match.iteration
        return None if match.test else (its.games_played, its.target_games)

    @property
    def building(self) -> str:
        """`building the next iteration, 1m 10s of about 2m 0s`; "" where nothing is built."""
        if not (builds := self.builds).iterations:
            return ""
        count, made = sum(k > 0 for k in builds.iterations), duration(builds.seconds)
        how = "building" if builds.has_builder else "no worker builds"
        if not count:
            return f"{how} the engines of a match, {made}"
        usual = "" if builds.usual is None else f" of about {duration(builds.usual)}"
        return (
            f"{how} the next {'iteration' if count == 1 else f'{count} iterations'}, {made}{usual}"
        )


_EARLIER = View(
    "earlier run",
    (
        *values("name", "status", of="run"),
        Column("elo", "", "measured.elo.value"),
        Column("elo_error", "", "measured.elo.error"),
    ),
)
_VERDICT = View(
    "verdict",
    (
        Column("gained"),
        Column("unknown", "", lambda verdict: verdict.unknown or None),
        *(Column(f"more_{key}", "", f"more.{key}") for key in ("games", "elo")),
        *values("advice", "reason"),
    ),
)
STATUS = View(
    "status",
    (
        Column("run", "", "run.name"),
        *values("status", "reason", "algorithm", "seed", of="run"),
        Column("iterations_applied", "", "run.applied"),
        *values("max_iterations", "priority", "share", of="run"),
        Column("games", "", "totals.tally"),
        *values("void_games", of="totals"),
        *values("purged_games"),
        *values("purges", of="run"),
        *values("bounded_steps", of="totals"),
        *values("games_per_second", "seconds_left"),
        Column("origin"),
        Column("source", "", lambda status: status.run.settings.get("source")),
        Column("open", of=ITERATIONS),
        Column("validations", of=MATCHES),
        Column("strength", "", "measured.curve"),
        Column("time_controls", of=TIME_CONTROLS),
        Column("parameters", of=PARAMETERS),
        Column("workers", of=WORKERS),
        Column("earlier_run", "", "earlier", of=_EARLIER),
        Column("verdict", of=_VERDICT),
        Column("building", "", "builds"),
        Column("alarms", of=ALARMS),
    ),
)


def status(store: Store, run: Run) -> Status:
    """Look at a run; reads only."""
    overviews = store.run_overviews()
    now, open_ones = store.clock(), tuple(store.open_iterations(run.id))
    age = (now - run.created_at).total_seconds()
    window = max(1.0, min(RATE_SECONDS, age))
    is_given_out = run.status is not RunStatus.PAUSED
    rate = store.games_in_the_last(run.id, window) / window if is_given_out else 0.0
    began = min((it.created_at for it in open_ones), default=run.created_at)
    claims = [one.held_since for one in overviews if one.name == run.name and one.held_since]
    matches, verdicts = store.matches(run.id), store.events(run.id, 1, kinds=[VERDICT])
    said_stop = bool(verdicts) and verdicts[0].detail.get("advice") == Advice.STOP
    sums = time_control_sums(run)
    has_master = {one.name for one in overviews if one.has_master}
    return Status(
        run=run,
        totals=store.totals(run.id),
        age_seconds=age,
        waiting_seconds=(now - max((began, *claims))).total_seconds(),
        games_per_second=rate,
        open=open_ones,
        matches=matches_of(run, matches),
        parameters=parameters(run, trail(store, run)),
        workers=fleet(store),
        verdict=verdict(run, said_stop=said_stop),
        said_stop=said_stop,
        purged_games=sum(one.games for one in store.purges(run.id)) if run.purges else 0,
        measured=measured(run, matches),
        origin=_parent(store, run),
        earlier=_earlier_run(store, run, overviews),
        # a master that was killed builds nothing
        builds=run.builds if run.name in has_master else Builds(),
        time_controls=tuple(time_controls(store, run, sums, matches)),
        sums=sums,
    )


def _parent(store: Store, run: Run) -> Parent | None:
    with as_written("a column `settings`"):
        if (found := RunSettings.of(run).origin) is None:
            return None
        name, at = str(found["run"]), int(found["at"])
    parent = store.find_run(name)
    games = None if parent is None else store.totals(parent.id, at).tally.games
    return Parent(run=name, at=at, games=games)


def _earlier_run(store: Store, run: Run, overviews: Sequence[Run]) -> EarlierRun | None:
    for one in (one for one in overviews if not one.live and one.max_iterations):
        its = store.run(one.name)
        if its.id < run.id:
            return EarlierRun(run=one, measured=measured(its, store.matches(its.id)))
    return None


def wanted_games(run: Run) -> int:
    """The games of all its iterations."""
    return run.max_iterations * games_per_iteration(run)


def games_per_iteration(run: Run) -> int:
    return RunSettings.of(run).games_per_iteration
