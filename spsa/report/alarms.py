"""What is wrong with a run: cheap alarms for every reading of the status, and those of all results.

A threshold is set so that a sound run raises no alarm by chance in 99 of 100 cases; tests
simulate it.
"""

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import fsum, sqrt
from pathlib import Path

import numpy as np

from spsa.algorithms import Vector
from spsa.core.params import Space
from spsa.core.scoring import Tally, chi_square_tail, score
from spsa.db import Store
from spsa.db.history_queries import WorkerShare
from spsa.db.run_queries import ALARM, ALARM_OVER
from spsa.db.tables import Iteration, Run
from spsa.lifecycle import IterationStatus, Purpose, RunStatus
from spsa.openings import UNBALANCED
from spsa.planning.plan_warnings import space_warnings
from spsa.report.alarm import Alarm, AlarmKey, AlarmKind, standing
from spsa.report.formats import estimate
from spsa.report.history import RunHistory
from spsa.report.parameters import ParameterStatus, signal_to_noise
from spsa.report.status import RATE_SECONDS, Status
from spsa.report.workers import of_scales
from spsa.text import plural

RECENT = 30
"""Tuning iterations that are looked at one by one."""

_LONG_BUILD = 60.0
"""Seconds without an open iteration; a run of one iteration in flight always waits a little."""

_MIN_SAME = 10
_MIN_GAMES = 20
_ONE_SIDED = 0.9
_MIN_DRAWN, _DRAWN, _DRAWN_DEVIATIONS = 200, 0.9, 2.33  # games; the last: one-sided 1%
_MIN_RESULTS = 100
_MIN_FAULTS = 5
_FAULTS = 0.01  # of all games

_MIN_FREE, _SHARE_FREE = 5 * 10**9, 0.05
_MAX_EVENTS = 100_000


def with_alarms(store: Store, status: Status) -> Status:
    """The same status with what is wrong."""
    played = store.iterations(status.run.id, purpose=Purpose.TUNE, last=RECENT)
    recent = [iteration for iteration in played if iteration.status is IterationStatus.COMPLETE]
    shares = store.worker_shares(status.run.id, max(0, status.run.applied - RECENT))
    found = (
        *_of_run(status, store.age_seconds(status.run.id)),
        *_of_parameters(status, recent),
        *_of_noise(status),
        *_of_results(status.run.name, recent),
        *_of_draws(status.run, sum((it.tally for it in recent), Tally())),
        *_of_void_games(status.run, played),
        *_of_workers(status, shares),
        *_told_by_the_master(store, status.run),
    )
    return replace(status, alarms=found)


def _of_run(status: Status, age_seconds: float) -> Iterator[Alarm]:
    run = status.run
    if run.status is RunStatus.PAUSED:
        reason = f"it is paused: {run.reason}" if run.reason else "it is paused"
        yield _alarm(AlarmKind.PAUSED, run.name, reason, "continue it with `spsa-master resume`")
    elif run.status is RunStatus.RUNNING:
        yield from _of_standstill(status, age_seconds)


def _of_standstill(status: Status, age_seconds: float) -> Iterator[Alarm]:
    """The first thing that is missing for games to be played."""
    run, here = status.run, plural(len(status.present), "worker")
    if run.master_id is None:
        kind, found, advice = AlarmKind.NO_MASTER, "no master runs it", "start `spsa-master run`"
    elif status.builds.iterations and not status.open:
        if status.builds.seconds < _LONG_BUILD or not status.present:
            return
        kind = AlarmKind.WAITING_FOR_BUILDS
        found = f"{here} waited {status.builds.seconds:.0f} s for engines that are built"
        advice = "use more games an iteration"
    elif not status.present:
        kind, found, advice = AlarmKind.NO_WORKER, "no worker plays", "start `compete --spsa -c 8`"
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
        yield _alarm(
            AlarmKind.DEAD,
            name,
            found,
            "stop the run, give it a larger step or `active = false` in params.toml, and go on "
            "with `spsa-master run --from`",
        )
    for p in status.parameters:
        if p.active and p.bound and status.run.applied:
            limit = p.minimum if p.bound == "min" else p.maximum
            found = f"theta is {p.value:.6g}, at its {p.bound} {limit:.6g}"
            advice = (
                f"a wider bound may be better: stop the run, change `{p.bound}` in params.toml, "
                "and go on with `spsa-master run --from`"
            )
            yield _alarm(AlarmKind.AT_BOUND, p.name, found, advice)
    if recent and recent[-1].c_k is not None:
        for warning in space_warnings(space, recent[-1].c_k):
            yield _alarm(AlarmKind.STEP, warning.name, warning.found, warning.remedy)


def _dead(space: Space, recent: Sequence[Iteration]) -> list[str]:
    """The parameters that were perturbed in vain, each time."""
    if len(recent) < _MIN_SAME:
        return []
    return [
        p.name
        for p in space.active
        if all(it.plus_parameters.get(p.name) == it.minus_parameters.get(p.name) for it in recent)
    ]


def _of_noise(status: Status) -> Iterator[Alarm]:
    """None where matches have measured that theta is better than the start."""
    curve = status.strength
    if curve is None or curve.elo[-1] <= curve.errors[-1]:
        yield from of_noise(status.run, [p for p in status.parameters if p.active])


def of_noise(run: Run, active: Sequence[ParameterStatus]) -> Iterator[Alarm]:
    """Where no trend shows after many results: a random walk is not refused at 5% (chi-square)."""
    ratios = [found for p in active if (found := signal_to_noise(p.path)) is not None]
    if run.applied < _MIN_RESULTS or not ratios:
        return
    squares = fsum(ratio * ratio for ratio in ratios)
    if chi_square_tail(squares, len(ratios)) > 0.05:
        yield _alarm(
            AlarmKind.NOISE,
            run.name,
            f"no path differs from a random walk: signal to noise {max(ratios):.1f} at most",
            "use larger steps or more games; or the start was close to the best values",
        )


def _of_results(run: str, recent: Sequence[Iteration]) -> Iterator[Alarm]:
    """One alarm for all of them, so that it is reported once."""
    one_sided = [it for it in recent if it.tally.games >= _MIN_GAMES and _is_one_sided(it)]
    if one_sided:
        last = one_sided[-1]
        found = (
            f"plus scored {score(last.tally):.0%} of {last.tally.games:,} games of iteration "
            f"{last.iteration_number}"
        )
        if len(one_sided) > 1:
            found += (
                f", and {len(one_sided)} of the last {len(recent)} iterations were as one-sided"
            )
        advice = "use smaller steps; if values break the engine, `spsa-master probe` finds them"
        yield _alarm(AlarmKind.ONE_SIDED, run, found, advice)


def _of_draws(run: Run, recent: Tally) -> Iterator[Alarm]:
    """Draws that are clearly more than 90% of the recent games."""
    if recent.games < _MIN_DRAWN:
        return
    by_chance = _DRAWN_DEVIATIONS * sqrt(_DRAWN * (1 - _DRAWN) / recent.games)
    if recent.draws / recent.games > _DRAWN + by_chance:
        kind, book = "an unbalanced book", f'[games] book = "{UNBALANCED}"'
        if run.game_settings.book.name == UNBALANCED:
            kind, book = "a less balanced book", "an EPD, FEN or PGN file in [games] book"
        found = f"{recent.draws / recent.games:.0%} of the last {recent.games:,} games were draws"
        advice = f"{kind} would teach more: `spsa-master run --from` with {book}"
        yield _alarm(AlarmKind.DRAWS, run.name, found, advice)


def _is_one_sided(iteration: Iteration) -> bool:
    return not 1 - _ONE_SIDED <= score(iteration.tally) <= _ONE_SIDED


def _of_void_games(run: Run, played: Sequence[Iteration]) -> Iterator[Alarm]:
    """In the last iterations, so that it ends when the cause is gone."""
    void, games = sum(it.void_games for it in played), sum(it.tally.games for it in played)
    if _too_many(void, games):
        found = (
            f"{plural(void, 'game')} of the last {plural(len(played), 'iteration')} were void, "
            f"beside {games:,} that count"
        )
        advice = "`spsa-master workers list` shows the machine that has most"
        if not games:
            advice = "correct the engine, its options or [time_control]: no machine plays it"
        yield _alarm(AlarmKind.VOID_GAMES, run.name, found, advice)


def _of_workers(status: Status, shares: Sequence[WorkerShare]) -> Iterator[Alarm]:
    """In the last iterations of this run: other runs, and faults that are over, say nothing.

    But a worker that has never brought a game is in no share, because others play its batches.
    """
    if not status.run.applied and not any(share.tally.games for share in shares):
        return  # nobody plays what nobody can play
    at_machine = Counter(one.worker.host for one in status.present)
    for share in shares:
        if share.machine not in status.set_aside:
            games = share.tally.games
            yield from _of_voids(share.worker, share.machine, share.void_games, games, at_machine)
            yield from _of_time_losses(share)
    for one in status.present:
        if not one.is_set_aside and one.worker.games == 0:
            worker = one.worker
            yield from _of_voids(worker.name, worker.host, worker.void_games, 0, at_machine)


def _of_voids(
    worker: str, machine: str, voids: int, games: int, at_machine: Mapping[str, int]
) -> Iterator[Alarm]:
    if _too_many(voids, games):
        found = f"{plural(voids, 'void game')} beside {games:,} that count"
        workers = at_machine[machine]
        rest = f", which ends all {workers} workers of this machine" if workers > 1 else ""
        advice = f"`spsa-master workers exclude {machine}` if it goes on{rest}"
        yield _alarm(AlarmKind.VOID_GAMES, worker, found, advice)


def _of_time_losses(share: WorkerShare) -> Iterator[Alarm]:
    games = share.tally.games
    if _too_many(share.time_losses, games):
        found = f"{share.time_losses:,} of {plural(games, 'game')} were lost on time"
        advice = "start fewer slots on that machine (-c), or raise the margin of [time_control]"
        yield _alarm(AlarmKind.TIME_LOSSES, share.worker, found, advice)


def _too_many(faults: int, games: int) -> bool:
    return faults >= _MIN_FAULTS and faults > _FAULTS * games


def of_disks(run: str, folders: Sequence[Path]) -> Iterator[Alarm]:
    """The first of these folders whose disk is nearly full: less than 5% and 5 GB are free."""
    for folder in folders:
        try:
            disk = shutil.disk_usage(folder)
        except OSError:
            continue
        if disk.free < min(_MIN_FREE, _SHARE_FREE * disk.total):
            found = f"{disk.free / 10**9:.2f} GB are free on the master's disk of {folder}"
            yield _alarm(AlarmKind.DISK, run, found, "make room before it is full")
            return


def _told_by_the_master(store: Store, run: Run) -> Iterator[Alarm]:
    """What only the master's machine can see."""
    if run.finished_at is None:
        told = told_alarms(store, run).values()
        yield from (alarm for alarm in told if alarm.kind is AlarmKind.DISK)


def told_alarms(store: Store, run: Run) -> dict[AlarmKey, Alarm]:
    """The alarms whose beginning is an event of the run, and whose end is not."""
    return standing(store.events(run.id, _MAX_EVENTS, kinds=(ALARM, ALARM_OVER)))


def _alarm(kind: AlarmKind, subject: str, found: str, advice: str) -> Alarm:
    return Alarm(kind=kind, subject=subject, found=found, advice=advice)


_MIN_POINTS = 80
_GROWTH = 2.0
_CERTAIN = 3.29 / 1.96  # a 99.9% interval by a 95% one


def with_history(status: Status, history: RunHistory) -> Status:
    """The same status with the alarms of its history too."""
    found = (*of_history(history), *of_slots(status, history.workers))
    return replace(status, alarms=(*status.alarms, *found))


def of_history(history: RunHistory) -> tuple[Alarm, ...]:
    """The alarms of a run's history."""
    return (
        *_of_divergence(history),
        *_of_validations(history),
        *(alarm for machine in history.machines for alarm in machine.alarms),
        *of_scales(history.workers),
    )


def _of_divergence(history: RunHistory) -> Iterator[Alarm]:
    """Steps shrink as gains decay; ones that grow say that gains are too large."""
    if len(history.ks) < _MIN_POINTS or not history.parameters:
        return
    theta = np.array([path.in_steps for path in history.parameters])
    steps = np.diff(theta, axis=1)[:, :-1]  # the last point may stand for fewer iterations
    quarter = steps.shape[1] // 4
    first, last = _size(steps[:, :quarter]), _size(steps[:, -quarter:])
    if first > 0.0 and last > _GROWTH * first:
        grown = f"theta's steps are {last / first:.1f} times as large as at the beginning"
        advice = "start again with smaller gains or steps"
        yield _alarm(AlarmKind.DIVERGING, history.run, grown, advice)


_BUSY = 1 / 3
_MIN_BUSY_RESULTS = 10  # the first games wait for the first engines


def of_slots(status: Status, shares: Sequence[WorkerShare]) -> Iterator[Alarm]:
    """The slots of the fleet have no game most of the time, by what they play in an hour.

    None while several runs share the fleet, or where a standstill says it already.
    """
    run = status.run
    early = run.applied < _MIN_BUSY_RESULTS
    if run.status is not RunStatus.RUNNING or early or status.beside:
        return
    slots = {one.worker.name: one.worker.concurrency for one in status.playing}
    hourly = sum(slots.get(share.worker, 0) * (share.games_per_hour or 0.0) for share in shares)
    busy = 3600 * status.games_per_second / hourly if hourly else 0.0
    if 0.0 < busy < _BUSY:
        found = f"the slots played {busy:.0%} of the last {RATE_SECONDS / 60:.0f} minutes"
        advice = "more iterations in flight, or more games in each, keep them busy"
        yield _alarm(AlarmKind.WAITING_FOR_WORK, run.name, found, advice)


def _size(steps: Vector) -> float:
    return float(np.sqrt(np.mean(steps**2)))


def _of_validations(history: RunHistory) -> Iterator[Alarm]:
    played = [match for match in history.validations if match.tally.pairs]
    found = estimate(played[-1].tally) if played else None
    if found is not None and found.value + _CERTAIN * found.error < 0.0:
        match = f"validation {played[-1].iteration_number}"
        weaker = f"the tuned values are {-found.value:.1f} ± {found.error:.1f} Elo (95%) weaker"
        advice = "do not use them; look for faults of engines or workers"
        yield _alarm(AlarmKind.WORSE, match, weaker, advice)
