"""What is wrong with a run: the alarms of every reading of the status.

A threshold is set so that a sound run raises no alarm by chance in 99 of 100 cases; tests
simulate it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import fsum, sqrt

from spsa.core.params import Space
from spsa.core.scoring import Tally, chi_square_tail, score
from spsa.db import Store
from spsa.db.history_queries import WorkerShare
from spsa.db.tables import Iteration
from spsa.lifecycle import IterationStatus, Purpose, RunStatus
from spsa.planning.plan_warnings import space_warnings
from spsa.report.alarm import Alarm, AlarmKind, told_alarms
from spsa.report.formats import estimate
from spsa.report.machines import MachineReport
from spsa.report.parameters import signal_to_noise
from spsa.report.status import RATE_SECONDS, Status
from spsa.text import plural

RECENT = 30
"""Tuning iterations that are looked at one by one."""

_PATIENCE = 60.0
"""Seconds: a run of one iteration in flight always waits a little, and a new one for workers."""

_MIN_SAME = 10
_MIN_GAMES = 20
_ONE_SIDED = 0.9
_MIN_DRAWN, _DRAWN, _DRAWN_DEVIATIONS = 200, 0.9, 2.33  # games; the last: one-sided 1%
_MIN_RESULTS = 100
_MIN_FAULTS = 5
_FAULTS = 0.01  # of all games
_CERTAIN = 3.29 / 1.96  # a 99.9% interval by a 95% one


def with_alarms(store: Store, status: Status) -> Status:
    """The same status with what is wrong."""
    run = status.run
    played = store.iterations(run.id, purpose=Purpose.TUNE, last=RECENT)
    recent = [iteration for iteration in played if iteration.status is IterationStatus.COMPLETE]
    shares = store.worker_shares(run.id, max(0, run.applied - RECENT))
    told = {} if run.finished_at else told_alarms(store, run)
    found = (
        *_of_standstill(status),
        *_of_parameters(status, recent),
        *of_noise(status),
        *of_validations(status),
        *_of_results(run.name, recent),
        *_of_draws(run.name, sum((it.tally for it in recent), Tally())),
        *_of_void_games(run.name, played),
        *_of_workers(status, shares, store.failed_batches(run.id)),
        *(alarm for alarm in told.values() if alarm.kind is AlarmKind.DISK),  # of the master's
    )
    return replace(status, alarms=found)


def with_machines(status: Status, machines: Sequence[MachineReport]) -> Status:
    """The same status with the alarms of machines that stand out too."""
    found = (alarm for machine in machines for alarm in machine.alarms)
    return replace(status, alarms=(*status.alarms, *found))


def _of_standstill(status: Status) -> Iterator[Alarm]:
    """The first thing that is missing for games to be played."""
    run, here = status.run, plural(len(status.present), "worker")
    waited = f"{here} waited {status.builds.seconds:.0f} s for engines that are built"
    silent = f"no game was reported in the last {RATE_SECONDS / 60:.0f} minutes"
    if run.status is RunStatus.PAUSED:
        reason = f"it is paused: {run.reason}" if run.reason else "it is paused"
        kind, found, advice = AlarmKind.PAUSED, reason, "continue it with `spsa-master resume`"
    elif run.status is not RunStatus.RUNNING:
        return
    elif run.master_id is None:
        kind, found, advice = AlarmKind.NO_MASTER, "no master runs it", "start `spsa-master run`"
    elif status.builds.iterations and not status.open:
        if status.builds.seconds < _PATIENCE or not status.present:
            return
        kind, found, advice = AlarmKind.WAITING_FOR_BUILDS, waited, "use more games an iteration"
    elif not status.present and status.age_seconds > _PATIENCE:
        kind, found, advice = AlarmKind.NO_WORKER, "no worker plays", "start `compete --spsa -c 8`"
    elif not status.present:
        return
    elif status.games_per_second == 0.0 and status.age_seconds > RATE_SECONDS:
        kind, found, advice = AlarmKind.STALLED, silent, "check the logs of the workers"
    else:
        return
    yield Alarm(kind, run.name, found, advice)


def _of_parameters(status: Status, recent: Sequence[Iteration]) -> Iterator[Alarm]:
    space, again = Space.from_json(status.run.space), "and go on with `spsa-master run --from`"
    for p in space.active:
        sides = ((it.plus_parameters.get(p.name), it.minus_parameters.get(p.name)) for it in recent)
        if len(recent) >= _MIN_SAME and all(plus == minus for plus, minus in sides):
            yield Alarm(
                AlarmKind.DEAD,
                p.name,
                f"plus and minus played the same value in the last {len(recent)} iterations",
                "stop the run, give it a larger step or `active = false` in params.toml, " + again,
            )
    for one in status.parameters:
        if one.active and one.bound and status.run.applied:
            limit = one.minimum if one.bound == "min" else one.maximum
            yield Alarm(
                AlarmKind.AT_BOUND,
                one.name,
                f"theta is {one.value:.6g}, at its {one.bound} {limit:.6g}",
                f"a wider bound may be better: stop the run, change `{one.bound}` in params.toml, "
                + again,
            )
    if recent and recent[-1].c_k is not None:
        for warning in space_warnings(space, recent[-1].c_k):
            yield Alarm(AlarmKind.STEP, warning.name, warning.found, warning.remedy)


def of_noise(status: Status) -> Iterator[Alarm]:
    """Where no trend shows after many results: a random walk is not refused at 5% (chi-square).

    None where matches have measured that theta is better than the start.
    """
    curve, active = status.strength, [p for p in status.parameters if p.active]
    ratios = [found for p in active if (found := signal_to_noise(p.path)) is not None]
    is_better = curve is not None and curve.elo[-1] > curve.errors[-1]
    if is_better or status.run.applied < _MIN_RESULTS or not ratios:
        return
    if chi_square_tail(fsum(ratio * ratio for ratio in ratios), len(ratios)) > 0.05:
        yield Alarm(
            AlarmKind.NOISE,
            status.run.name,
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
        advice = "use smaller steps; if values break the engine, `spsa-master probe` finds them"
        yield Alarm(AlarmKind.ONE_SIDED, run, found, advice)


def _is_one_sided(iteration: Iteration) -> bool:
    return not 1 - _ONE_SIDED <= score(iteration.tally) <= _ONE_SIDED


def _of_draws(run: str, recent: Tally) -> Iterator[Alarm]:
    """Draws that are clearly more than 90% of the recent games."""
    if recent.games < _MIN_DRAWN:
        return
    by_chance = _DRAWN_DEVIATIONS * sqrt(_DRAWN * (1 - _DRAWN) / recent.games)
    if recent.draws / recent.games > _DRAWN + by_chance:
        found = f"{recent.draws / recent.games:.0%} of the last {recent.games:,} games were draws"
        advice = "a less balanced book teaches more: [games] book, and `spsa-master run --from`"
        yield Alarm(AlarmKind.DRAWS, run, found, advice)


def _of_void_games(run: str, played: Sequence[Iteration]) -> Iterator[Alarm]:
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
        yield Alarm(AlarmKind.VOID_GAMES, run, found, advice)


def _of_workers(
    status: Status, shares: Sequence[WorkerShare], failed: dict[str, int]
) -> Iterator[Alarm]:
    """In the last iterations of this run: other runs, and faults that are over, say nothing.

    But a worker that has never brought a game is in no share, because others play its batches: it
    is judged by all its void games where its machine has `failed` batches of this run.
    """
    if not status.run.applied and not any(share.tally.games for share in shares):
        return  # nobody plays what nobody can play
    for share in shares:
        if share.machine not in status.set_aside:
            games = share.tally.games
            yield from _of_voids(share.worker, share.machine, share.void_games, games)
            if _too_many(share.time_losses, games):
                yield Alarm(
                    AlarmKind.TIME_LOSSES,
                    share.worker,
                    f"{share.time_losses:,} of {plural(games, 'game')} were lost on time",
                    "start fewer slots on that machine (-c), or raise the margin of [time_control]",
                )
    for worker in (one.worker for one in status.playing):
        if worker.games == 0 and worker.host in failed:
            yield from _of_voids(worker.name, worker.host, worker.void_games, 0)


def _of_voids(worker: str, machine: str, voids: int, games: int) -> Iterator[Alarm]:
    if _too_many(voids, games):
        found = f"{plural(voids, 'void game')} beside {games:,} that count"
        advice = f"`spsa-master workers exclude {machine}` if it goes on"
        yield Alarm(AlarmKind.VOID_GAMES, worker, found, advice)


def _too_many(faults: int, games: int) -> bool:
    return faults >= _MIN_FAULTS and faults > _FAULTS * games


def of_validations(status: Status) -> Iterator[Alarm]:
    """The last match says with 99.9% that the tuned values are weaker."""
    match = status.measuring
    found = None if match is None else estimate(match.tally)
    if match is not None and found is not None and found.value + _CERTAIN * found.error < 0.0:
        yield Alarm(
            AlarmKind.WORSE,
            f"validation {match.iteration.iteration_number}",
            f"the tuned values are {-found.value:.1f} ± {found.error:.1f} Elo (95%) weaker",
            "do not use them; look for faults of engines or workers",
        )
