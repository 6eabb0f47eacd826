"""The status of a run as one frozen value: progress, gain, workers, the verdict in sentences."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from math import isfinite
from typing import Any

from spsa.core.builds import Builds
from spsa.core.scoring import Estimate, Tally, elo
from spsa.core.stored_json import as_written
from spsa.db import Store
from spsa.db.read_queries import RunOverview, WorkerRow
from spsa.db.tables import Iteration, Run
from spsa.lifecycle import Purpose
from spsa.master.verdict import Verdict, measured_gain, verdict
from spsa.planning.strength import StrengthCurve
from spsa.report.alarm import Alarm
from spsa.report.named_theta import measured
from spsa.report.parameters import ParameterStatus, parameters
from spsa.report.runs import live, to_json
from spsa.report.trails import Trail, trails
from spsa.text import plural, without_passwords


def verdict_lines(found: Verdict) -> Iterator[str]:
    """The Elo gained, or why it is unknown; then what to do, and why."""
    if found.gained is None:
        yield f"gained: not known, because {found.unknown}; only a validation measures it"
    else:
        yield (
            f"gained: about {found.gained:+.1f} Elo as the rule believes, without an interval: "
            "the games do not say how wrong that is; only a validation measures it"
        )
    yield f"verdict: {found.advice}; {found.reason}"


def verdict_json(found: Verdict) -> dict[str, Any]:
    """For programs; null for what is unknown."""
    more = found.more
    return {
        "gained": found.gained,
        "gained_low": None,  # there is no honest interval
        "gained_high": None,
        "unknown": found.unknown or None,
        "more_games": None if more is None else more.games,
        "more_elo": None if more is None else more.elo,
        "advice": found.advice,
        "reason": found.reason,
    }


RATE_SECONDS = 300.0
"""Games per second are those of the last five minutes."""

PRESENT_SECONDS = 120.0
"""A worker that was heard of within two minutes is there; one with games in the air as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """All that `status` shows."""

    run: Run
    games: Tally
    void_games: int
    games_per_second: float
    seconds_left: float | None
    open: tuple[Iteration, ...]
    validations: tuple[Iteration, ...]
    measured: tuple[tuple[str, ...], ...]
    parameters: tuple[ParameterStatus, ...]
    workers: tuple[WorkerRow, ...]
    bounded: int
    verdict: Verdict
    purged_games: int = 0
    beside: tuple[RunOverview, ...] = ()  # all runs that want games, where there are several
    trails: Mapping[str, Trail] = field(default_factory=dict)  # by the parameter's name
    strength: StrengthCurve | None = None  # where several thetas were measured
    builds: Builds = field(default_factory=Builds)
    set_aside: frozenset[str] = frozenset()  # machines that are given no batches at all
    alarms: tuple[Alarm, ...] = ()  # of `spsa.report.alarms`, where they were looked for

    def _setting(self, key: str) -> Any:
        with as_written("a column `settings`"):
            return self.run.settings.get(key)

    @property
    def origin(self) -> str:
        """Where the run started, as a sentence; empty if it was not where another run was."""
        found = self._setting("origin")
        if found is None:
            return ""
        with as_written("a column `settings`"):
            after = plural(int(found["at"]), "result")
            doubt = f"with doubt {float(found['doubt']):g}"
            return f"it started where run {found['run']} was after {after}, {doubt}"

    @property
    def present(self) -> tuple[WorkerRow, ...]:
        """The workers that are there."""
        return tuple(worker for worker in self.workers if _is_present(worker))

    @property
    def playing(self) -> tuple[WorkerRow, ...]:
        """Those of them whose machines are given batches."""
        return tuple(worker for worker in self.present if worker.host not in self.set_aside)

    @property
    def absent(self) -> tuple[WorkerRow, ...]:
        """The workers that were there once."""
        return tuple(worker for worker in self.workers if not _is_present(worker))

    def _trail(self, name: str) -> dict[str, Any]:
        trail = self.trails.get(name, Trail(()))
        return {"path": trail.values, "signal_to_noise": trail.signal_to_noise}

    def to_json(self) -> dict[str, Any]:
        """For programs: plain names and numbers, null for what is infinite or unknown."""
        return {name: plain(value) for name, value in self._named().items()}

    def _named(self) -> dict[str, Any]:
        run = self.run
        return {
            "run": run.name,
            "status": run.status,
            "reason": run.reason,
            "algorithm": run.algorithm,
            "seed": run.seed,
            "origin": self._setting("origin"),
            "iterations_applied": run.applied,
            "max_iterations": run.max_iterations,
            "games": tally_json(self.games),
            "void_games": self.void_games,
            "bounded_steps": self.bounded,
            "purged_games": self.purged_games,
            "purges": run.purges,
            "games_per_second": self.games_per_second,
            "seconds_left": self.seconds_left,
            "open": [_iteration(iteration) for iteration in self.open],
            "validations": [
                _iteration(one) | {"theta": list(which)} | _comparison(one)
                for one, which in zip(self.validations, self.measured, strict=True)
            ],
            "strength": None if self.strength is None else asdict(self.strength),
            "parameters": [
                {**fields_json(p), "steps_moved": p.steps_moved, "bound": p.bound}
                | self._trail(p.name)
                for p in self.parameters
            ],
            "workers": [asdict(worker) for worker in self.workers],
            "priority": run.priority,
            "share": run.share,
            "runs": to_json(self.beside),
            "verdict": verdict_json(self.verdict),
            "building": self.builds.to_json(),
            "alarms": [asdict(alarm) for alarm in self.alarms],
        }


def status(store: Store, run: Run) -> Status:
    """Look at a run; reads only."""
    standings = store.run_overviews()
    beside = live(standings)
    open_ones = tuple(store.open_iterations(run.id))
    totals = store.totals(run.id)
    rate = _rate(store, run)
    validations = tuple(store.matches(run.id, last=5))
    return Status(
        run=run,
        games=totals.tally,
        void_games=totals.void_games,
        games_per_second=rate,
        seconds_left=_seconds_left(run, totals.tally.games, open_ones, rate),
        open=open_ones,
        validations=validations,
        measured=tuple(measured(run, validation) for validation in validations),
        parameters=parameters(run),
        workers=tuple(store.workers()),
        bounded=totals.bounded_steps,
        verdict=verdict(run),
        purged_games=sum(one.games for one in store.purges(run.id)) if run.purges else 0,
        beside=beside if len(beside) > 1 else (),
        trails=trails(store, run),
        strength=measured_gain(store.match_lines(run.id)),
        builds=_builds(run, standings),
        set_aside=frozenset(
            one.machine for one in store.machines_set_aside() if one.sha256 is None
        ),
    )


def _builds(run: Run, standings: Sequence[RunOverview]) -> Builds:
    """What the master builds; one that was killed builds nothing."""
    found = Builds.from_json(run.builds)
    has_master = any(one.has_master for one in standings if one.name == run.name)
    return found if has_master else Builds(usual=found.usual)


def estimate(tally: Tally) -> Estimate | None:
    """Elo of plus over minus with its error; None before the first pair."""
    return elo(tally) if tally.pairs else None


def wanted_games(run: Run) -> int:
    """The games of all its iterations."""
    with as_written("a column `settings`"):
        return run.max_iterations * int(run.settings["games_per_iteration"])


def _is_present(worker: WorkerRow) -> bool:
    return worker.seconds_since_seen < PRESENT_SECONDS or worker.games_leased > 0


def fields_json(value: Any) -> dict[str, Any]:
    """The fields of a dataclass; unlike `asdict` it copies no values: a path has thousands."""
    return {field.name: getattr(value, field.name) for field in fields(value)}


def plain(value: Any) -> Any:
    """The same of what JSON has: times in ISO 8601, null for infinite numbers, no passwords."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, str):
        return without_passwords(value)
    if isinstance(value, Mapping):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value.isoformat() if isinstance(value, datetime) else value


def _rate(store: Store, run: Run) -> float:
    age = store.age_seconds(run.id)
    window = max(1.0, min(RATE_SECONDS, age))
    return store.games_in_the_last(run.id, window) / window


def _seconds_left(
    run: Run, games: int, open_ones: Sequence[Iteration], rate: float
) -> float | None:
    if rate <= 0.0:
        return None
    left = max(0, wanted_games(run) - games) if run.finished_at is None else 0
    matches = [it for it in open_ones if it.purpose is Purpose.VALIDATE]
    return (left + sum(it.target_games - it.games_played for it in matches)) / rate


def tally_json(tally: Tally) -> dict[str, Any]:
    """Games, results, pentanomial, and Elo with the half width of its 95% interval."""
    found = estimate(tally)
    return {
        "games": tally.games,
        "wins": tally.wins,
        "losses": tally.losses,
        "draws": tally.draws,
        "pentanomial": tally.pentanomial,
        "elo": None if found is None else found.value,
        "elo_error": None if found is None else found.error,
    }


def _comparison(match: Iteration) -> dict[str, Any]:
    """What a validation compares; null where its row does not say."""
    compared = None if match.compared is None else match.compared.to_json()
    return {"opened_on": match.opened_on, "compared": compared}


def _iteration(iteration: Iteration) -> dict[str, Any]:
    return {
        "iteration_number": iteration.iteration_number,
        "k": iteration.k,
        "purpose": iteration.purpose,
        "status": iteration.status,
        "games_played": iteration.games_played,
        "target_games": iteration.target_games,
        "void_games": iteration.void_games,
        "result": tally_json(iteration.tally),
    }
