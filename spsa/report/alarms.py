"""What is wrong with a run, from its rows: the alarms that are cheap enough for every look.

A level is set so that a sound run raises no alarm by chance in 99 of 100 cases (tests simulate it).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import erfc, exp, fsum, sqrt

from spsa.core.params import Space
from spsa.core.scoring import score
from spsa.db.store import Iteration, Run, Store, WorkerRow
from spsa.lab.planning.plan_warnings import space_warnings
from spsa.lifecycle import IterationStatus, Purpose, RunStatus
from spsa.report.alarm import Alarm, AlarmKind
from spsa.report.status import RATE_SECONDS, Status
from spsa.report.text import plural
from spsa.report.trails import Trail

RECENT = 30
"""Tuning iterations that are looked at one by one."""

_FEWEST_SAME = 10
_FEWEST_GAMES = 20
_ONE_SIDED = 0.9
_FEWEST_RESULTS = 100
_FEWEST_FAULTS = 5
_FAULTS = 0.01  # of all games


def with_alarms(store: Store, status: Status) -> Status:
    """The same status with what is wrong."""
    recent = [
        iteration
        for iteration in store.iterations(status.run.id, purpose=Purpose.TUNE, last=RECENT)
        if iteration.status is IterationStatus.COMPLETE
    ]
    found = (
        *_of_run(status, store.age_seconds(status.run.id)),
        *_of_parameters(status, recent),
        *of_noise(status.run, [status.trails[p.name] for p in status.parameters if p.active]),
        *_of_results(recent),
        *_of_faults(status),
    )
    return replace(status, alarms=found)


def _of_run(status: Status, age_seconds: float) -> Iterator[Alarm]:
    run = status.run
    if run.status is RunStatus.PAUSED:
        reason = f"it is paused: {run.reason}" if run.reason else "it is paused"
        yield _alarm(AlarmKind.PAUSED, run.name, reason, "`spsa-master resume` goes on")
    elif run.status is RunStatus.RUNNING:
        yield from _of_standstill(status, age_seconds)


def _of_standstill(status: Status, age_seconds: float) -> Iterator[Alarm]:
    """The first thing that is missing for games to be played."""
    run, here = status.run, plural(len(status.present), "worker")
    if run.master_id is None:
        kind, found, advice = AlarmKind.NO_MASTER, "no master runs it", "start `spsa-master run`"
    elif not status.present:
        kind, found, advice = AlarmKind.NO_WORKER, "no worker plays", "start `compete --spsa -c 8`"
    elif not status.open and run.applied < run.max_iterations:
        kind, found = AlarmKind.WAITING_FOR_BUILDS, f"no iteration is open for {here}"
        advice = "if engines are built all the time, use more games an iteration"
    elif status.games_per_second == 0.0 and age_seconds > RATE_SECONDS:
        kind, advice = AlarmKind.STALLED, "check the logs of the workers"
        found = f"no game was reported in the last {RATE_SECONDS / 60:.0f} minutes"
    else:
        return
    yield _alarm(kind, run.name, found, advice)


def _of_parameters(status: Status, recent: Sequence[Iteration]) -> Iterator[Alarm]:
    space = Space.from_json(status.run.space)
    for name in _dead(space, recent):
        found = f"plus and minus played the same value in the last {len(recent)} iterations"
        yield _alarm(AlarmKind.DEAD, name, found, "use a larger step, or freeze it")
    for p in status.parameters:
        if p.active and p.bound:
            limit = p.minimum if p.bound == "min" else p.maximum
            found = f"theta is {p.value:.6g}, at its {p.bound} {limit:.6g}"
            yield _alarm(AlarmKind.AT_BOUND, p.name, found, "a wider bound may be better")
    if recent and recent[-1].c_k is not None:
        for warning in space_warnings(space, recent[-1].c_k):
            yield _alarm(AlarmKind.STEP, warning.name, warning.found, warning.remedy)


def _dead(space: Space, recent: Sequence[Iteration]) -> list[str]:
    """The parameters that were perturbed in vain, each time."""
    if len(recent) < _FEWEST_SAME:
        return []
    return [
        p.name
        for p in space.active
        if all(it.plus_parameters.get(p.name) == it.minus_parameters.get(p.name) for it in recent)
    ]


def of_noise(run: Run, trails: Sequence[Trail]) -> Iterator[Alarm]:
    """Where no trend shows after many results: a random walk is not refused at 5% (chi-square)."""
    ratios = [found for trail in trails if (found := trail.signal_to_noise) is not None]
    if run.applied < _FEWEST_RESULTS or not ratios:
        return
    squares = fsum(ratio * ratio for ratio in ratios)
    if chi_square_tail(squares, len(ratios)) > 0.05:
        yield _alarm(
            AlarmKind.NOISE,
            run.name,
            f"no path differs from a random walk: signal to noise {max(ratios):.1f} at most",
            "use larger steps or more games; or the start was close to the best values",
        )


def _of_results(recent: Sequence[Iteration]) -> Iterator[Alarm]:
    for it in recent:
        won = score(it.tally)
        if it.tally.games >= _FEWEST_GAMES and not 1 - _ONE_SIDED <= won <= _ONE_SIDED:
            yield _alarm(
                AlarmKind.ONE_SIDED,
                f"iteration {it.iteration_number}",
                f"plus scored {won:.0%} of {it.tally.games} games",
                "smaller steps, or an engine that some values break",
            )


def _of_faults(status: Status) -> Iterator[Alarm]:
    if _too_many(status.void_games, status.games.games):
        part = status.void_games / status.games.games
        found = f"{status.void_games} games were void, {part:.1%}"
        yield _alarm(AlarmKind.VOID_GAMES, status.run.name, found, "see the workers' output")
    for worker in status.workers:
        yield from _of_worker(worker)


def _of_worker(worker: WorkerRow) -> Iterator[Alarm]:
    if _too_many(worker.void_games, worker.games):
        found = f"{worker.void_games} void games beside {worker.games} that count"
        advice = f"`spsa-master workers exclude {worker.host}` if it goes on"
        yield _alarm(AlarmKind.VOID_GAMES, worker.name, found, advice)
    if _too_many(worker.time_losses, worker.games):
        found = f"{worker.time_losses} of {worker.games} games were lost on time"
        advice = "fewer slots on that machine, or a larger margin of the time control"
        yield _alarm(AlarmKind.TIME_LOSSES, worker.name, found, advice)


def _too_many(faults: int, games: int) -> bool:
    return faults >= _FEWEST_FAULTS and faults > _FAULTS * games


def _alarm(kind: AlarmKind, subject: str, found: str, advice: str) -> Alarm:
    return Alarm(kind=kind, subject=subject, found=found, advice=advice)


def chi_square_tail(value: float, freedom: int) -> float:
    """The chance that chi-square is larger; Wilson & Hilferty 1931 from three degrees on."""
    if freedom == 1:
        return erfc(sqrt(value / 2))
    if freedom == 2:
        return exp(-value / 2)
    spread = 2 / (9 * freedom)
    deviations = ((value / freedom) ** (1 / 3) - (1 - spread)) / spread**0.5
    return 0.5 * erfc(deviations / sqrt(2.0))
