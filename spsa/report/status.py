"""The runs of a database, and the status of one as a frozen value: all reports begin with it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from shlex import quote

from spsa.builds.git import SourceCommit
from spsa.core import Builds
from spsa.core.json_values import as_written
from spsa.core.scoring import Estimate, Tally
from spsa.db import Store
from spsa.db.base import COUNTS
from spsa.db.read_queries import RunOverview
from spsa.db.run_queries import VERDICT
from spsa.db.tables import Iteration, Run
from spsa.lifecycle import Purpose, RunStatus
from spsa.master.verdict import START, Advice, Verdict, measured_gain, opponent_of, verdict
from spsa.planning.strength import StrengthCurve
from spsa.report.events import ALARMS, Alarm
from spsa.report.formats import duration, estimate, plus_minus
from spsa.report.matches import (
    ITERATIONS,
    MATCHES,
    TIME_CONTROLS,
    Match,
    TimeControlStatus,
    matches_of,
    over,
    time_controls,
)
from spsa.report.parameters import PARAMETERS, ParameterStatus, parameters, trail
from spsa.report.table import Column, View, values
from spsa.report.workers import WORKERS, FleetMember, fleet
from spsa.text import plural

RATE_SECONDS = 300.0
"""Games per second are those of the last five minutes."""

VALIDATIONS = 5
"""How many of the last validations a status has."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierRun:
    """The run of the database that ended last, with the Elo that its matches measured."""

    run: RunOverview
    measured: Estimate | None
    opponent: str = START

    def __str__(self) -> str:
        run, found = self.run, self.measured
        elo = "not measured" if found is None else f"{plus_minus(found.value, found.error)} Elo"
        played = f"{run.applied:,} of {plural(run.max_iterations, 'iteration')}"
        whom = "" if self.opponent == START else f" {over(self.opponent)}"
        return f"run {run.name}: {run.status}, {played}, {elo}{whom}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """All that `status` shows."""

    run: Run
    games: Tally
    void_games: int
    age_seconds: float
    games_per_second: float
    open: tuple[Iteration, ...]
    validations: tuple[Match, ...]
    parameters: tuple[ParameterStatus, ...]
    workers: tuple[FleetMember, ...]
    bounded: int
    verdict: Verdict
    purged_games: int = 0
    measuring: Match | None = None  # the last one with games, and all games of the same sides
    strength: StrengthCurve | None = None  # where several thetas were measured
    opponent: str = START  # of those matches
    earlier: EarlierRun | None = None
    builds: Builds = field(default_factory=Builds)
    time_controls: tuple[TimeControlStatus, ...] = ()  # where there are several
    alarms: tuple[Alarm, ...] = ()  # of `spsa.report.alarms`, where they were looked for

    @property
    def origin(self) -> str:
        """Where the run started, as a sentence; empty if it was not where another run was."""
        with as_written("a column `settings`"):
            found = self.run.settings.get("origin")
            if found is None:
                return ""
            after = plural(int(found["at"]), "result")
            return (
                f"it started where run {found['run']} was after {after}, "
                f"with doubt {float(found['doubt']):g}; the games of that run are not counted here"
            )

    @property
    def source(self) -> SourceCommit | None:
        """The commit of the engine's source, if git knows one."""
        with as_written("a column `settings`"):
            found = self.run.settings.get("source")
        return None if found is None else SourceCommit.from_json(found)

    @property
    def taking(self) -> str:
        """The command that prints the tuned values; empty before the first result."""
        if self.run.applied == 0:
            return ""
        command = "diff" if self.run.has_patch else "export --format json"
        return f"spsa-master params {command} --run {quote(self.run.name)}"

    @property
    def is_over(self) -> bool:
        """Whether nothing is played any more."""
        return self.run.finished_at is not None and not self.open

    @property
    def is_paused(self) -> bool:
        return self.run.status is RunStatus.PAUSED

    @property
    def present(self) -> tuple[FleetMember, ...]:
        """The workers that are there."""
        return tuple(one for one in self.workers if one.is_present)

    @property
    def playing(self) -> tuple[FleetMember, ...]:
        """Those of them whose machines are given batches."""
        return tuple(one for one in self.present if not one.is_set_aside)

    @property
    def seconds_left(self) -> float | None:
        """Until the end at this rate; None where nothing is played, or the run is paused."""
        run, rate = self.run, self.games_per_second
        if rate <= 0.0 or self.is_paused or not self.playing:
            return None
        left = max(0, wanted_games(run) - self.games.games) if run.finished_at is None else 0
        matches = (it for it in self.open if it.purpose is Purpose.VALIDATE)
        return (left + sum(it.target_games - it.games_played for it in matches)) / rate

    @property
    def set_aside(self) -> frozenset[str]:
        """The machines that are given no batches at all."""
        return frozenset(one.worker.host for one in self.workers if one.is_set_aside)

    @property
    def over(self) -> str:
        """`over the start`, or against which engine theta is measured."""
        return over(self.opponent)

    @property
    def measured_elo(self) -> Estimate | None:
        """Elo over the opponent, by all validations together or the last one that has games."""
        match = self.measuring
        return _measured(self.strength, None if match is None else match.iteration)


_EARLIER = View(
    "earlier run",
    (
        *(Column(key, "", f"run.{key}") for key in ("name", "status")),
        Column("elo", "", "measured.value"),
        Column("elo_error", "", "measured.error"),
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
        *(Column(key, "", f"run.{key}") for key in ("status", "reason", "algorithm", "seed")),
        Column("iterations_applied", "", "run.applied"),
        *(Column(key, "", f"run.{key}") for key in ("max_iterations", "priority", "share")),
        *values("games", "void_games", "purged_games"),
        Column("purges", "", "run.purges"),
        Column("bounded_steps", "", "bounded"),
        *values("games_per_second", "seconds_left"),
        Column("origin", "", lambda status: status.run.settings.get("origin")),
        Column("source", "", lambda status: status.run.settings.get("source")),
        Column("open", of=ITERATIONS),
        Column("validations", of=MATCHES),
        Column("strength"),
        Column("time_controls", of=TIME_CONTROLS),
        Column("parameters", of=PARAMETERS),
        Column("workers", of=WORKERS),
        Column("earlier_run", "", "earlier", of=_EARLIER),
        Column("verdict", of=_VERDICT),
        Column("building", "", lambda status: status.builds.to_json()),
        Column("alarms", of=ALARMS),
    ),
)


def players(status: Status) -> str:
    """`3 workers on 12 slots, 1 set aside`."""
    slots = sum(one.worker.concurrency for one in status.playing)
    aside = len(status.present) - len(status.playing)
    told = f"{plural(len(status.playing), 'worker')} on {plural(slots, 'slot')}"
    return told + (f", {aside} set aside" if aside else "")


def status(store: Store, run: Run) -> Status:
    """Look at a run; reads only."""
    overviews = store.run_overviews()
    totals = store.totals(run.id)
    age = (store.clock() - run.created_at).total_seconds()
    window = max(1.0, min(RATE_SECONDS, age))
    rate = store.games_in_the_last(run.id, window) / window
    matches = store.matches(run.id)
    measuring = (*matches_of(run, _measuring(matches)), None)[0]
    return Status(
        run=run,
        games=totals.tally,
        void_games=totals.void_games,
        age_seconds=age,
        games_per_second=rate,
        open=tuple(store.open_iterations(run.id)),
        validations=matches_of(run, matches[-VALIDATIONS:]),
        parameters=parameters(run, trail(store, run)),
        workers=fleet(store),
        bounded=totals.bounded_steps,
        verdict=verdict(run, said_stop=said_stop(store, run)),
        purged_games=sum(one.games for one in store.purges(run.id)) if run.purges else 0,
        measuring=measuring,
        strength=measured_gain(matches),
        opponent=opponent_of(matches),
        earlier=_earlier_run(store, run, overviews),
        builds=_builds(run, overviews),
        time_controls=tuple(time_controls(store, run, matches)),
    )


def said_stop(store: Store, run: Run) -> bool:
    """Whether the last verdict that its master recorded said to stop it."""
    told = store.events(run.id, 1, kinds=[VERDICT])
    return bool(told) and told[0].detail.get("advice") == Advice.STOP


def _builds(run: Run, overviews: Sequence[RunOverview]) -> Builds:
    """What the master builds; one that was killed builds nothing."""
    found = run.builds or Builds()
    has_master = any(one.has_master for one in overviews if one.name == run.name)
    return found if has_master else Builds(usual=found.usual)


def _earlier_run(store: Store, run: Run, overviews: Sequence[RunOverview]) -> EarlierRun | None:
    for one in overviews:
        if not one.live and one.name != run.name and one.max_iterations:
            matches = store.matches(store.run(one.name).id)
            elo = _measured(measured_gain(matches), (*_measuring(matches), None)[0])
            return EarlierRun(run=one, measured=elo, opponent=opponent_of(matches))
    return None


def _measuring(matches: Sequence[Iteration]) -> list[Iteration]:
    """The last match with games against the opponent, if any, with those of all like it.

    A sequential test ends where it is decided, so its games are not added to others.
    """
    told = [one for one in matches if one.games_played and one.measures(opponent_of(matches))]
    like = [one for one in told if _sides(one) == _sides(told[-1])]
    counts = {name: sum(getattr(one, name) for one in like) for name in COUNTS}
    return [replace(one, **counts) for one in told[-1:]]


def _sides(match: Iteration) -> object:
    """What matches have in common whose games are one measurement."""
    test = match.compared and match.compared.sprt and match.iteration_number
    return match.plus_parameters, match.minus_parameters, match.game_settings, test


def _measured(curve: StrengthCurve | None, last: Iteration | None) -> Estimate | None:
    """Where a curve ends, or what the last match says."""
    if curve is not None:
        return Estimate(curve.elo[-1], curve.errors[-1])
    return None if last is None else estimate(last.tally)


def wanted_games(run: Run) -> int:
    """The games of all its iterations."""
    return run.max_iterations * games_per_iteration(run)


def games_per_iteration(run: Run) -> int:
    with as_written("a column `settings`"):
        return int(run.settings["games_per_iteration"])


def open_match(status: Status) -> Iteration | None:
    """The match that is played now; not one in the background of the tuning."""
    matches = (it for it in status.open if it.purpose is Purpose.VALIDATE)
    return next((it for it in matches if not it.is_background), None)


def building(builds: Builds) -> str:
    """`building the next iteration, 1m 10s of about 2m 0s`."""
    if not (count := sum(k > 0 for k in builds.iterations)):
        return f"building the engines of a match, {duration(builds.seconds)}"
    what = "iteration" if count == 1 else f"{count} iterations"
    usual = "" if builds.usual is None else f" of about {duration(builds.usual)}"
    return f"building the next {what}, {duration(builds.seconds)}{usual}"
