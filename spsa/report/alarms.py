"""What is wrong with a run: the alarms of every reading of the status.

A threshold is set so that a sound run raises no alarm by chance in 99 of 100 cases; tests
simulate it.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from math import comb, sqrt
from statistics import NormalDist

from spsa.algorithms.time_controls import TimeControlSums
from spsa.core.params import Space
from spsa.core.scoring import elo, score
from spsa.db import Store
from spsa.db.tables import NARROW, Iteration, Run
from spsa.errors import TuningError
from spsa.lifecycle import IterationStatus, Purpose, RunStatus
from spsa.report.events import Alarm, AlarmKind
from spsa.report.status import RATE_SECONDS, RUNS, Status, status
from spsa.report.table import Column, View, joined, unless_zero
from spsa.report.workers import MachineReport, compared_machines
from spsa.text import plural

RECENT = 30
"""Tuning iterations that are looked at one by one."""

_START_SECONDS = 30.0
_MIN_SAME = 10
_MIN_GAMES = 20
_ONE_SIDED = 0.9
_MIN_DRAWN, _DRAWN, _DRAWN_DEVIATIONS = 200, 0.9, 2.33  # games; the last: one-sided 1%
_MIN_PULLS, _OUTSIDE = 30, 0.01  # results; the chance of one look, of a whole run 5%
_MIN_FAULTS = 5
_FAULTS, _TIMES = 0.01, 2.0  # of all games; by so much a machine differs from the others
_CERTAIN = 3.29 / 1.96  # a 99.9% interval by a 95% one


def look(store: Store, run: Run, machines: Sequence[MachineReport] | None = None) -> Status:
    """The status of a run with what is wrong; `machines` by a comparison that was made already."""
    machines = compared_machines(store, run) if machines is None else machines
    now = status(store, run)
    needed = [*NARROW, Iteration.plus_parameters, Iteration.minus_parameters]
    recent = store.iterations(run.id, purpose=Purpose.TUNE, last=RECENT, columns=needed)
    recent = [iteration for iteration in recent if iteration.status is IterationStatus.COMPLETE]
    found = (
        *_of_standstill(now),
        *_of_silence(store, now),
        *_of_parameters(now, recent),
        *of_time_controls(run, now.sums),
        *of_validations(now),
        *_of_results(run.name, recent),
        *_of_workers(store, now),
        *(alarm for machine in machines for alarm in machine.alarms),
    )
    return replace(now, alarms=tuple(replace(one, run=run.name) for one in found))


def runs_with_alarms(status_of: Callable[[str], Status]) -> View:
    """The table of runs with the number of alarms of each live one, by the status of its name."""

    def count(run: Run) -> int | None:
        with suppress(TuningError):  # of a run that this program cannot read
            if run.live:
                return len(status_of(run.name).alarms)
        return None

    alarms = Column("", "alarms", count, unless_zero, alarm=lambda run: run.live)
    return replace(RUNS, columns=(RUNS.columns[0], alarms, *RUNS.columns[1:]))


def _of_standstill(status: Status) -> Iterator[Alarm]:
    """The first thing that is missing for games to be played."""
    run, builds, here = status.run, status.builds, plural(len(status.present), "worker")
    aside = ", ".join(sorted(status.set_aside))
    said = f"; set aside (`spsa-master workers release`): {aside}" if aside else ""
    if run.status is RunStatus.PAUSED:
        reason = f": {joined(run.reason)}" if run.reason else ""
        yield Alarm(AlarmKind.PAUSED, run.name, f"it is paused{reason}")
    elif status.is_over:
        return
    elif run.master_id is None and run.finished_at and (match := status.open_match):
        left = match.iteration
        of = "" if match.test else f" of {left.target_games:,}"
        played = f"{left.games_played:,}{of} games"
        yield Alarm(AlarmKind.MATCH_LEFT, run.name, f"its validation was left after {played}")
    elif run.master_id is None:
        yield Alarm(AlarmKind.NO_MASTER, run.name, "no master runs it")
    elif not status.present and status.age_seconds < _START_SECONDS:
        return  # its first worker may be starting
    elif not status.playing:
        yield Alarm(AlarmKind.NO_WORKER, run.name, f"no worker plays{said}")
    elif builds.iterations and not status.open:  # nothing is wrong while they are built
        if not builds.has_builder:
            waited = f"{here} waited {builds.seconds:.0f} s for engines that no worker builds"
            yield Alarm(AlarmKind.WAITING_FOR_BUILDS, run.name, waited + said)
    elif status.games_per_second == 0.0 and status.waiting_seconds > RATE_SECONDS:
        silent = f"no game was reported in the last {RATE_SECONDS / 60:.0f} minutes"
        yield Alarm(AlarmKind.STALLED, run.name, silent)


def _of_silence(store: Store, status: Status) -> Iterator[Alarm]:
    """Machines that have lost a lease and were not heard of since.

    A worker that ends hands back what it holds, so its machine has lost none.
    """
    run = status.run
    lost = {} if status.is_over else store.lost_leases(run.id, max(0, run.applied - RECENT))
    newest = {one.worker.host: one for one in reversed(status.workers)}
    for machine in sorted(lost.keys() & newest.keys()):
        last, seen = newest[machine], newest[machine].worker.last_seen_at
        may_play = not (last.is_revoked or last.is_set_aside)
        if may_play and not last.is_present and seen < lost[machine]:
            found = f"silent since {seen:%Y-%m-%d %H:%M} UTC, and did not finish its games"
            yield Alarm(AlarmKind.SILENT, machine, found)


def _of_parameters(status: Status, recent: Sequence[Iteration]) -> Iterator[Alarm]:
    for p in Space.from_json(status.run.space).active:
        sides = ((it.plus_parameters.get(p.name), it.minus_parameters.get(p.name)) for it in recent)
        if len(recent) >= _MIN_SAME and all(plus == minus for plus, minus in sides):
            found = f"plus and minus played the same value in the last {len(recent)} iterations"
            yield Alarm(AlarmKind.DEAD, p.name, found)
    for one in status.parameters:
        if one.active and one.bound and status.run.applied:
            limit = one.minimum if one.bound == "min" else one.maximum
            where = "at" if one.value == limit else "within half a step of"
            found = f"theta is {one.value:.6g}, {where} its {one.bound} {limit:.6g}"
            yield Alarm(AlarmKind.AT_BOUND, one.name, found)


def of_time_controls(run: Run, sums: TimeControlSums | None) -> Iterator[Alarm]:
    """The parameters that two time controls pull apart, each outside a 95% interval.

    The interval is wider for more parameters and more pairs of time controls (Bonferroni).
    """
    limits = [str(one.time_control) for one in run.game_settings.time_controls]
    names = [p.name for p in Space.from_json(run.space).active]
    if sums is None or run.applied < _MIN_PULLS:
        return
    chance = _OUTSIDE / (len(names) * comb(len(limits), 2))
    most = NormalDist().inv_cdf(1 - chance / 2)
    for name, pulls in zip(names, sums.deviations.T.tolist(), strict=True):
        up, down = max(pulls), min(pulls)
        if up > most and down < -most:
            found = (
                f"{limits[pulls.index(up)]} pulls it up by {up:.1f} standard deviations, "
                f"{limits[pulls.index(down)]} down by {-down:.1f}"
            )
            yield Alarm(AlarmKind.TIME_CONTROLS, name, found)


def of_validations(status: Status) -> Iterator[Alarm]:
    """The last match says with 99.9% that the tuned values are weaker."""
    match = status.measured.last if status.measured.over_start else None
    if match is not None and (found := elo(match.tally)).value + _CERTAIN * found.error < 0.0:
        weaker = f"the tuned values are {-found.value:.1f} ± {found.error:.1f} Elo (95%) weaker"
        yield Alarm(AlarmKind.WORSE, f"validation {match.iteration.iteration_number}", weaker)


def _of_results(run: str, recent: Sequence[Iteration]) -> Iterator[Alarm]:
    """The last one-sided result, and draws that are clearly more than 90% of the recent games."""
    played = [it for it in recent if it.tally.games >= _MIN_GAMES]
    one_sided = [it for it in played if not 1 - _ONE_SIDED <= score(it.tally) <= _ONE_SIDED]
    for last in one_sided[-1:]:
        tally = last.tally
        found = f"plus scored {score(tally):.0%} of {tally.games:,} games of iteration {last.k}"
        yield Alarm(AlarmKind.ONE_SIDED, run, found)
    games, draws = sum(it.tally.games for it in recent), sum(it.tally.draws for it in recent)
    if games < _MIN_DRAWN:
        return
    if draws / games > _DRAWN + _DRAWN_DEVIATIONS * sqrt(_DRAWN * (1 - _DRAWN) / games):
        found = f"{draws / games:.0%} of the last {games:,} games were draws"
        yield Alarm(AlarmKind.DRAWS, run, found)


def _of_workers(store: Store, status: Status) -> Iterator[Alarm]:
    """In the last iterations of this run: other runs, and faults that are over, say nothing.

    But a worker that has never brought a game is in no share, because others play its batches: it
    is judged by all its void games where its machine has failed batches of this run. Where no
    machine stands out by void games, the engine is the suspect.
    """
    run = status.run
    shares = store.worker_shares(run.id, max(0, run.applied - RECENT))
    failed = store.failed_batches(run.id)
    counts = [
        (one.worker, one.machine, one.void_games, one.time_losses, one.tally.games)
        for one in shares
        if one.machine not in status.set_aside
    ]
    counts += [
        (one.name, one.host, one.void_games, 0, 0)
        for one in (member.worker for member in status.playing)
        if one.games == 0 and one.host in failed
    ]
    faulty, voids_on, games_on = [], Counter[str](), Counter[str]()
    for worker, machine, voids, late, games in counts:
        voids_on[machine] += voids
        games_on[machine] += games
        if _too_many(voids, games):
            where = f" in the last {RECENT} iterations" if games else ""
            found = f"{plural(voids, 'void game')} beside {games:,} that count{where}"
            faulty.append((machine, Alarm(AlarmKind.VOID_GAMES, worker, found)))
        if _too_many(late, games):
            found = f"{late:,} of {plural(games, 'game')} were lost on time"
            yield Alarm(AlarmKind.TIME_LOSSES, worker, found)
    suspects = [alarm for machine, alarm in faulty if _stands_out(machine, voids_on, games_on)]
    yield from suspects
    if faulty and not suspects:
        kept = store.void_games(run.id, 1)
        last = f"; the last one: {kept[-1].kept.detail}" if kept else ""
        where = "the only machine" if len(games_on) == 1 else "all machines"
        found = (
            f"{voids_on.total():,} void games beside {games_on.total():,} that count, on {where}"
        )
        yield Alarm(AlarmKind.ENGINE_VOIDS, run.name, found + last)


def _stands_out(machine: str, voids: Counter[str], games: Counter[str]) -> bool:
    """Whether the others, with this one's share, would have some void games, twice their own."""
    share = voids[machine] / (played := voids[machine] + games[machine])
    expected = share * (voids.total() + games.total() - played)
    return expected >= max(_MIN_FAULTS, _TIMES * (voids.total() - voids[machine]))


def _too_many(faults: int, games: int) -> bool:
    return faults >= _MIN_FAULTS and faults > _FAULTS * games
