"""Alarms: each is raised by what it names, and a sound run raises none."""

import json
from dataclasses import replace
from datetime import datetime
from unittest.mock import patch

import numpy as np
import pytest
from builders import LEASE, new_worker, result_of, space_from, stage

from spsa.core import Builds
from spsa.core.scoring import Tally, chi_square_tail
from spsa.db.tables import Event
from spsa.protocol import BatchResult, Failure, KeptVoid
from spsa.report.alarms import look, of_noise, of_validations
from spsa.report.events import ALARMS, EVENTS, Alarm, AlarmKind, grouped, told
from spsa.report.matches import Match
from spsa.report.report import report
from spsa.report.status import STATUS, status
from spsa.report.table import record

pytestmark = pytest.mark.slow_on("postgresql")

TABLE = "[{}]\nvalue = {}\nmin = 0\nmax = {}\nstep = {}\n"
SPACE = space_from(TABLE.format("margin", 200, 400, 20) + TABLE.format("depth", 50, 100, 5))
THETA = {"margin": 200.0, "depth": 50.0}


def alarms(staged):
    found = look(staged.store, staged.now())
    json.dumps(record(STATUS, found), allow_nan=False)
    return {alarm.kind: alarm for alarm in found.alarms}


@pytest.fixture
def staged(store):
    return stage(store, SPACE, planned=40)


def test_a_sound_run_raises_none(store):
    staged = stage(store, SPACE, 6, planned=9)
    staged.open(base_parameters=THETA, plus_parameters=THETA, minus_parameters=THETA)
    assert alarms(staged) == {}
    assert report(store, staged.now()).status.alarms == ()


def test_a_run_that_began_later_is_no_earlier_one(staged):
    later = stage(staged.store, SPACE, name="later", planned=4)
    staged.store.stop("later", "me", "enough")
    assert status(staged.store, staged.now()).earlier is None
    staged.store.stop("first", "me", "enough")
    assert status(staged.store, later.now()).earlier.run.name == "first"


BUILDS = Builds(iterations=(1,), seconds=61.0, has_builder=False)
IS_OLD = "UPDATE spsa_run SET created_at = '2020-01-01 00:00:00.000'"
ALL_OLD = IS_OLD.replace("run", "iteration")
ALL_LEFT = "UPDATE spsa_worker SET last_seen_at = '2020-01-01 00:00:00.000'"


def test_what_keeps_a_run_from_moving_and_what_it_waits_for(sqlite_store, sql):
    """A run that is paused, or has no master, is in `tests/cli/test_cli_status.txt`."""
    staged = stage(sqlite_store, SPACE, planned=3)

    def said():
        return [*look(sqlite_store, staged.now()).sentences()]

    sql(IS_OLD)
    staged.store.tick(staged.master, LEASE, replace(BUILDS, seconds=900.0, has_builder=True))
    assert alarms(staged) == {} and "  building the next iteration, 15m 0s" in said()
    staged.store.tick(staged.master, LEASE, BUILDS)
    waiting = alarms(staged)[AlarmKind.WAITING_FOR_BUILDS]
    assert waiting.found == "1 worker waited 61 s for engines that no worker builds"
    assert f"  alarm: {waiting}" in said(), "the others have a sentence of their own"
    staged.store.tick(staged.master, LEASE, Builds(usual=900.0))
    assert list(alarms(staged)) == [AlarmKind.STALLED], "nothing is built, and none is open"
    staged.open()
    assert alarms(staged) == {}, "one has just been opened"
    sql(ALL_OLD)
    assert list(alarms(staged)) == [AlarmKind.STALLED]
    staged.claim("back")
    assert alarms(staged) == {}, "after a stop of the whole fleet: its first batch is being played"
    sql(ALL_OLD.replace("iteration SET created_at", "batch SET leased_at"))
    assert list(alarms(staged)) == [AlarmKind.STALLED]
    sql(ALL_LEFT)
    sql(ALL_LEFT.replace("worker SET last_seen_at", "batch SET lease_expires_at"))
    assert list(alarms(staged)) == [AlarmKind.NO_WORKER]


def test_a_worker_that_was_killed_in_a_batch_is_missed(staged, sql):
    staged.open()
    claim = staged.claim("killed")
    sql(ALL_LEFT)
    assert alarms(staged) == {}, "it renews its lease, and says nothing else in between"
    sql.expire(claim.batch_id)
    assert alarms(staged) == {}, "the run has just begun: its worker may be starting"
    sql(IS_OLD)
    assert AlarmKind.NO_WORKER in alarms(staged)


def test_a_fleet_that_is_set_aside_does_not_play(sqlite_store):
    staged = stage(sqlite_store, SPACE, 1, planned=3)
    assert (status(sqlite_store, staged.now()).seconds_left or 0.0) > 0.0
    staged.store.set_aside("machine", "too hot", "me")
    assert status(sqlite_store, staged.now()).seconds_left is None
    told = alarms(staged)[AlarmKind.NO_WORKER].found
    assert told == "no worker plays; set aside (`spsa-master workers release`): machine"


EVEN = Tally(0, 0, 20, (0, 0, 10, 0, 0))


def whole(staged, result=None, **over):
    """An iteration of one batch in which margin is perturbed, with this result."""
    values = {"plus_parameters": {**THETA, "margin": 220.0}, "minus_parameters": dict(THETA)}
    usual = {"base_parameters": THETA, "target_games": 20, "batch_games": 20}
    staged.open(**usual | values | over)
    claim = staged.claim(f"{staged.run.name}-{staged.now().applied}")
    assert claim is not None
    staged.store.report(claim, result or result_of(claim))
    staged.apply(delta=dict.fromkeys(THETA, 0.0), theta=THETA)


def test_a_parameter_that_both_sides_play_the_same(staged):
    for _ in range(9):
        whole(staged)
    assert AlarmKind.DEAD not in alarms(staged)
    whole(staged)
    dead = alarms(staged)[AlarmKind.DEAD]
    assert dead.subject == "depth" and "the last 10 iterations" in dead.found
    whole(staged, plus_parameters={"margin": 220.0, "depth": 60.0})
    assert AlarmKind.DEAD not in alarms(staged)


def test_results_that_are_too_one_sided(staged):
    whole(staged, BatchResult(tally=Tally(18, 0, 2, (0, 0, 0, 2, 8))))
    told = alarms(staged)[AlarmKind.ONE_SIDED].found
    assert told == "plus scored 95% of 20 games of iteration 1"
    whole(staged, BatchResult(tally=Tally(0, 14, 6, (4, 6, 0, 0, 0))))
    assert "iteration 1" in alarms(staged)[AlarmKind.ONE_SIDED].found, "15% is none"


def test_draws_that_teach_little(staged):
    """188 of 200 games are not significantly more than 90%, 380 of 400 are."""
    for draws in (188, 192):
        pairs, decided = draws // 2, 100 - draws // 2
        tally = Tally(decided, decided, draws, (0, 0, pairs + decided, 0, 0))
        whole(staged, BatchResult(tally=tally), target_games=200, batch_games=200)
        assert (AlarmKind.DRAWS in alarms(staged)) == (draws == 192)


def test_void_games_and_time_losses_until_the_last_iterations_have_none(staged, monkeypatch):
    kinds = {AlarmKind.ENGINE_VOIDS, AlarmKind.TIME_LOSSES}
    whole(staged, BatchResult(tally=EVEN, voids={"crash": 4}, plus_time_losses=4))
    assert not kinds & alarms(staged).keys()
    whole(staged, BatchResult(tally=EVEN, voids={"crash": 2}, minus_time_losses=1))
    found = alarms(staged)
    assert [found[kind].subject for kind in AlarmKind if kind in kinds] == ["machine-1", "first"]
    assert "5 of 40 games were lost on time" in found[AlarmKind.TIME_LOSSES].found
    monkeypatch.setattr("spsa.report.alarms.RECENT", 3)
    for is_told in True, False:
        whole(staged, BatchResult(tally=EVEN))
        assert (kinds <= alarms(staged).keys()) is is_told


@pytest.mark.parametrize("voids", [0, 2, 9])
def test_void_games_of_one_machine_and_of_an_engine(staged, voids):
    """A machine is blamed beside others that play as much without them; else it is the engine."""
    other = staged.store.register_worker(new_worker("sound", host="other"))
    where = {"pair": 0, "culprit": "plus", "white": "plus", "position": "", "output": ""}
    illegal = KeptVoid(detail="illegal move: e2e5", **where)
    with_voids = BatchResult(tally=EVEN, voids={"illegal move": 10}, kept_voids=(illegal,))
    whole(staged, with_voids)
    alone = alarms(staged)
    assert AlarmKind.VOID_GAMES not in alone
    found = alone[AlarmKind.ENGINE_VOIDS]
    told = "10 void games beside 20 that count, on the only machine; the last one: illegal move"
    assert found.found.startswith(told) and "suspect the engine" in found.advice
    voids = {"crash": voids} if voids else {}
    whole(replace(staged, worker=other), BatchResult(tally=EVEN, voids=voids))
    beside = alarms(staged)
    if sum(voids.values()) == 9:
        assert "on all machines" in beside[AlarmKind.ENGINE_VOIDS].found
        assert AlarmKind.VOID_GAMES not in beside
    else:
        assert beside[AlarmKind.VOID_GAMES].subject == "machine-1"
        assert AlarmKind.ENGINE_VOIDS not in beside


def test_a_worker_that_only_has_void_games(staged):
    """It reports no batch: others play what it hands back."""
    staged.open(target_games=20, batch_games=20)
    staged.store.fail(staged.claim("sick"), Failure(reason="void 4 times", void_games=8))
    other = staged.store.register_worker(new_worker("sound", host="other"))
    whole(replace(staged, worker=other))
    found = alarms(staged)[AlarmKind.VOID_GAMES]
    assert (found.subject, found.found) == ("machine-1", "8 void games beside 0 that count")
    second = stage(staged.store, SPACE, planned=3, name="second")
    whole(replace(second, worker=other))
    assert AlarmKind.VOID_GAMES not in alarms(second), "they were of another run"


def test_a_bound_that_games_have_moved_it_to(store):
    space = space_from(TABLE.format("margin", 395, 400, 20) + TABLE.format("depth", 50, 100, 5))
    staged = stage(store, space, planned=3)
    assert AlarmKind.AT_BOUND not in alarms(staged)
    staged.open()
    staged.play()
    staged.apply(delta=dict.fromkeys(THETA, 0.0), theta={"margin": 395.0, "depth": 50.0})
    assert "395, at its max 400" in alarms(staged)[AlarmKind.AT_BOUND].found
    whole(staged)
    assert AlarmKind.AT_BOUND not in alarms(staged), "theta has left it"


def test_many_alarms_of_a_kind_are_a_few_lines():
    many = [Alarm(AlarmKind.AT_BOUND, f"p{i}", "at its max 9") for i in range(40)]
    told = [Alarm(AlarmKind.PAUSED, "first", "it is paused")]
    first, second = map(str, grouped([*many, *told]))
    assert first == str(told[0])
    assert second.startswith("40 alike, p0, p1, p2, p3 and 36 more: at its max 9 (p0); a wider ")
    assert list(grouped(many[:3])) == many[:3]
    assert str(next(grouped(many[:4]))).startswith("4 alike, p0, p1, p2, p3: at its")


def walks(of, count, drift):
    """Runs of six parameters with paths of 15 steps."""
    rng = np.random.Generator(np.random.PCG64(1))
    steps = rng.normal(drift, 1.0, size=(count, 6, 15))
    paths = np.concatenate((np.zeros((count, 6, 1)), steps.cumsum(axis=2)), axis=2)
    one = of.parameters[0]
    return [[replace(one, path=tuple(path)) for path in run] for run in paths.tolist()]


def test_noise_is_told_from_a_trend(staged):
    now = status(staged.store, staged.now())

    def noisy(paths, applied=200):
        run = replace(staged.run, applied=applied)
        return bool(list(of_noise(replace(now, run=run, parameters=tuple(paths)))))

    walking = walks(now, 1000, 0.0)
    assert np.mean([noisy(paths) for paths in walking]) == pytest.approx(0.95, abs=0.03)
    assert np.mean([noisy(paths) for paths in walks(now, 1000, 0.6)]) < 0.01
    assert not any(noisy(paths, applied=99) for paths in walking), "too early to say"


def test_an_event_tells_an_alarm_as_a_sentence():
    alarm = Alarm(AlarmKind.WORKER_VOIDS, "rig", "3% of its batches")
    event = Event(at=datetime(2026, 1, 1), kind="alarm", actor="m", detail={})
    begun = replace(event, detail=record(ALARMS, alarm))
    assert told(begun).startswith("rig: 3% of its batches; `spsa-master workers exclude rig`")
    over = replace(begun, kind="alarm_over")
    assert (told(over), EVENTS.columns[1].text(over)) == ("rig: 3% of its batches", "alarm over")
    assert told(replace(event, detail={"kind": "unheard_of"})) == "kind unheard_of"


def test_tuned_values_that_are_measured_to_be_worse(store):
    staged = stage(store, SPACE, 2)
    staged.validate()
    found = status(store, staged.now())
    assert not [*of_validations(found)]
    with patch.object(Match, "tally", Tally(20, 45, 35, (5, 16, 20, 7, 2))):  # by 95% alone
        assert not [*of_validations(found)]
    lost = Tally(0, 40, 60, (0, 40, 10, 0, 0))
    with patch.object(Match, "tally", lost):
        (alarm,) = of_validations(found)
    assert alarm.kind is AlarmKind.WORSE and alarm.found.endswith("Elo (95%) weaker")


@pytest.mark.parametrize(
    ("value", "freedom", "chance"),
    [(18.421, 2, 0.0001), (15.137, 1, 0.0001), (12.592, 6, 0.05), (124.342, 100, 0.05)],
)
def test_the_tail_of_chi_square(value, freedom, chance):
    assert chi_square_tail(value, freedom) == pytest.approx(chance, rel=0.1)
