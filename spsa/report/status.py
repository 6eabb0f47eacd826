"""The status of a run as one frozen value, and its table: every other report begins with it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from shlex import quote
from typing import Any

from spsa.core.limits import as_written
from spsa.core.run_columns import Builds
from spsa.core.scoring import Estimate, Tally
from spsa.db import Store
from spsa.db.read_queries import RunOverview
from spsa.db.run_queries import VERDICT
from spsa.db.tables import Iteration, Run
from spsa.lifecycle import Purpose, RunStatus
from spsa.master.verdict import Advice, Verdict, measured_gain, verdict
from spsa.planning.strength import StrengthCurve
from spsa.report.events import ALARMS, Alarm
from spsa.report.formats import count, duration, estimate, unless_zero
from spsa.report.matches import ITERATIONS, MATCHES, Match, measured
from spsa.report.parameters import PARAMETERS, ParameterStatus, parameters, trail
from spsa.report.runs import RUNS, EarlierRun, earlier_run, end_of, live
from spsa.report.table import Column, View, records, values
from spsa.report.workers import WORKERS, FleetMember, fleet
from spsa.text import plural

RATE_SECONDS = 300.0
"""Games per second are those of the last five minutes."""

VALIDATIONS = 5
"""How many of the last validations a status has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """All that `status` shows."""

    run: Run
    games: Tally
    void_games: int
    age_seconds: float
    games_per_second: float
    seconds_left: float | None
    open: tuple[Iteration, ...]
    validations: tuple[Match, ...]
    parameters: tuple[ParameterStatus, ...]
    workers: tuple[FleetMember, ...]
    bounded: int
    verdict: Verdict
    purged_games: int = 0
    beside: tuple[RunOverview, ...] = ()  # all runs that want games, where there are several
    strength: StrengthCurve | None = None  # where several thetas were measured
    earlier: EarlierRun | None = None
    builds: Builds = field(default_factory=Builds)
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
    def taking(self) -> str:
        """The command that prints the tuned values; empty before the first result."""
        if self.run.applied == 0:
            return ""
        return f"spsa-master params diff --run {quote(self.run.name)}"

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
    def set_aside(self) -> frozenset[str]:
        """The machines that are given no batches at all."""
        return frozenset(one.worker.host for one in self.workers if one.is_set_aside)

    @property
    def measured_elo(self) -> Estimate | None:
        """Elo over the start, by all validations together or by the last one that has games."""
        if self.strength is not None:
            return end_of(self.strength)
        match = self.measuring
        return None if match is None else estimate(match.tally)

    @property
    def measuring(self) -> Match | None:
        """The last validation against the start with games."""
        told = (one for one in reversed(self.validations) if one.compared.against == "start")
        return next((one for one in told if one.tally.pairs), None)


def _verdict_json(status: Status) -> Mapping[str, Any]:
    """Null for what is unknown; the gain has no honest interval."""
    found = status.verdict
    return {
        "gained": found.gained,
        "unknown": found.unknown or None,
        "more_games": None if found.more is None else found.more.games,
        "more_elo": None if found.more is None else found.more.elo,
        "advice": found.advice,
        "reason": found.reason,
    }


STATUS = View(
    "status",
    (
        Column("run", "", "run.name"),
        *(Column(key, "", f"run.{key}") for key in ("status", "reason")),
        Column("", "iterations", "run", lambda run: f"{run.applied:,} of {run.max_iterations:,}"),
        Column("iterations_applied", "", "run.applied"),
        Column("max_iterations", "", "run.max_iterations"),
        Column("games"),
        Column("", "games", "games.games", count),
        Column("", "workers", lambda status: status, lambda status: players(status), rank=1),
        Column("void_games", "void games", show=unless_zero, rank=1),
        Column("purged_games", "purged games", show=unless_zero, rank=1),
        Column("purges", "", "run.purges"),
        Column("bounded_steps", "bounded steps", "bounded", unless_zero, rank=1),
        *values("games_per_second", "seconds_left"),
        Column("algorithm", "rule", "run.algorithm", kind="word"),
        Column("seed", "seed", "run.seed", kind="word"),
        Column("origin", "", lambda status: status.run.settings.get("origin")),
        Column("priority", "", "run.priority"),
        Column("share", "", "run.share"),
        Column("", "priority, share", "run", lambda run: f"{run.priority}, {run.share:g}"),
        Column("open", "", lambda status: records(ITERATIONS, status.open)),
        Column("validations", "", lambda status: records(MATCHES, status.validations)),
        Column("strength"),
        Column("parameters", "", lambda status: records(PARAMETERS, status.parameters)),
        Column("workers", "", lambda status: records(WORKERS, status.workers)),
        Column("runs", "", lambda status: records(RUNS, status.beside)),
        Column("earlier_run", "", lambda status: status.earlier and status.earlier.to_json()),
        Column("verdict", "", _verdict_json),
        Column("building", "", lambda status: status.builds.to_json()),
        Column("alarms", "", lambda status: records(ALARMS, status.alarms)),
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
    standings = store.run_overviews()
    beside = live(standings)
    open_ones = tuple(store.open_iterations(run.id))
    totals = store.totals(run.id)
    age = (store.clock() - run.created_at).total_seconds()
    window = max(1.0, min(RATE_SECONDS, age))
    rate = store.games_in_the_last(run.id, window) / window
    matches = store.matches(run.id)
    return Status(
        run=run,
        games=totals.tally,
        void_games=totals.void_games,
        age_seconds=age,
        games_per_second=rate,
        seconds_left=_seconds_left(run, totals.tally.games, open_ones, rate),
        open=open_ones,
        validations=tuple(Match(one, measured(run, one)) for one in matches[-VALIDATIONS:]),
        parameters=parameters(run, trail(store, run)),
        workers=fleet(store),
        bounded=totals.bounded_steps,
        verdict=verdict(run, said_stop=said_stop(store, run)),
        purged_games=sum(one.games for one in store.purges(run.id)) if run.purges else 0,
        beside=beside if len(beside) > 1 else (),
        strength=measured_gain(matches),
        earlier=earlier_run(store, run, standings),
        builds=_builds(run, standings),
    )


def said_stop(store: Store, run: Run) -> bool:
    """Whether the last verdict that its master recorded said to stop it."""
    told = store.events(run.id, 1, kinds=[VERDICT])
    return bool(told) and told[0].detail.get("advice") == Advice.STOP


def _builds(run: Run, standings: Sequence[RunOverview]) -> Builds:
    """What the master builds; one that was killed builds nothing."""
    found = Builds.from_json(run.builds)
    has_master = any(one.has_master for one in standings if one.name == run.name)
    return found if has_master else Builds(usual=found.usual)


def wanted_games(run: Run) -> int:
    """The games of all its iterations."""
    return run.max_iterations * games_per_iteration(run)


def games_per_iteration(run: Run) -> int:
    with as_written("a column `settings`"):
        return int(run.settings["games_per_iteration"])


def _seconds_left(
    run: Run, games: int, open_ones: Sequence[Iteration], rate: float
) -> float | None:
    """None where nothing is played, or the run is paused."""
    if rate <= 0.0 or run.status is RunStatus.PAUSED:
        return None
    left = max(0, wanted_games(run) - games) if run.finished_at is None else 0
    matches = [it for it in open_ones if it.purpose is Purpose.VALIDATE]
    return (left + sum(it.target_games - it.games_played for it in matches)) / rate


def building(builds: Builds) -> str:
    """`building iteration 3, 1m 10s of about 2m 0s`."""
    if builds.iterations == (0,):
        return f"building the engines of a match, {duration(builds.seconds)}"
    what = " and ".join(str(k) for k in builds.iterations)
    usual = "" if builds.usual is None else f" of about {duration(builds.usual)}"
    name = "iterations" if len(builds.iterations) > 1 else "iteration"
    return f"building {name} {what}, {duration(builds.seconds)}{usual}"
