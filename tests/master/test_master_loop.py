"""The master's loop on real stores: to the end, through every interruption, and never further."""

import re
import time
import uuid
from dataclasses import replace
from unittest.mock import Mock, call

import pytest
from builders import TERMS, new_engine, new_run, new_worker, play, result_of
from cutting import KillableStore, Killed
from engines.faulty import wait_until
from fuzzing import LONG, SEED
from masters import GAMES, SPACE, FakeSleep, FixedDelivery, RunUnderTest, settings
from shell import broken

from spsa import errors
from spsa.core.game_settings import TimeControl, TimeKind
from spsa.db.purge_queries import Selection
from spsa.db.run_view import RunView
from spsa.errors import BuildFailed, Fault, InvalidInput, MasterLeaseLost
from spsa.history.doctor import check_run
from spsa.history.replay import carry_out, plan
from spsa.lifecycle import RunStatus
from spsa.master import loop
from spsa.master.decide import Pacing
from spsa.master.delivery import ASSUMED_SECONDS
from spsa.master.session import AUTO, RETRY_SECONDS, TICK_SECONDS
from spsa.planning.games_needed import GamesNeeded
from spsa.planning.plan_inputs import mean_game_seconds
from spsa.report.status import status


@pytest.mark.slow
@pytest.mark.parametrize("in_flight", [1, 2, 4])
def test_a_run_goes_to_its_end(store, sql, in_flight):
    tested = RunUnderTest(store, in_flight=in_flight, iterations=5)
    assert tested.master(FakeSleep(lambda: play(store))).run() is RunStatus.FINISHED
    run = tested.now()
    assert (run.status, run.applied) == (RunStatus.FINISHED, 5)
    opened_on = [i.opened_on for i in store.iterations(run.id)]
    assert opened_on == [max(0, k - in_flight) for k in range(1, 6)]
    assert store.totals(run.id).tally.games == 5 * GAMES
    assert check_run(store, run, tested.tuning) == []
    assert broken(sql) == []
    assert tested.watched.opened_numbers == tested.watched.applied_ks == [1, 2, 3, 4, 5]
    thetas = [tested.run.theta, *(step.theta_after for step in store.steps(run.id))]
    assert [run.theta for run in tested.projected] == thetas and thetas[-1] == run.theta
    rows = store.iterations(run.id)
    assert tested.delivery.prepared == [(i.plus_parameters, i.minus_parameters) for i in rows]
    assert set(rows[0].plus_parameters) == {p.name for p in SPACE.parameters}
    assert run.theta != run.estimates.supported
    assert run.estimates.supported is not None


EVERY_CALL = 1 if LONG else 3


def brought_to_an_end(tested, queries):
    """The run, moved by as many masters as it takes."""
    while True:
        try:
            return tested.master(FakeSleep(lambda: play(tested.store)), queries).run()
        except Killed:
            continue


@pytest.mark.slow
@pytest.mark.parametrize("dies", [False, True], ids=["goes on", "is killed"])
@pytest.mark.parametrize("cut", ["before", "after"])
@pytest.mark.timeout(900)
def test_cut_off_at_any_call_theta_is_the_same_to_the_bit(database_url, store, sql, cut, dies):
    """The short form leaves most calls out, by SPSA_TEST_SEED; SPSA_TEST_LONG=1 takes them all."""
    with KillableStore(database_url) as queries:
        tested = RunUnderTest(store, "undisturbed", iterations=3)
        assert brought_to_an_end(tested, queries) is RunStatus.FINISHED
        undisturbed, calls = tested.outcome(), queries.writes
        assert calls > 10
        queries.dies = dies
        for at in range(1 + SEED % EVERY_CALL, calls + 1, EVERY_CALL):
            tested = RunUnderTest(store, f"cut at {at}", iterations=3)
            queries.writes, queries.at, queries.cut = 0, at, cut
            assert brought_to_an_end(tested, queries) is RunStatus.FINISHED
            assert tested.outcome() == undisturbed, at
            assert tested.masters == 1 + dies
            assert tested.projected[-1].theta == tested.now().theta
            if not dies:
                assert tested.watched.applied_ks == [1, 2, 3], at
        assert broken(sql) == []


@pytest.mark.slow
def test_engines_built_for_older_results_are_not_used(store):
    """Shortened while k = 3 is built, and lengthened again; k = 5 is built during a purge."""
    tested = RunUnderTest(store, iterations=6)

    class Shortened(FixedDelivery):
        def prepare(self, plus, minus):
            if len(self.prepared) == 2:
                store.extend(tested.name, "anna", 2)
            if len(self.prepared) == 5:
                planned = plan(store, tested.now(), tested.tuning, Selection())
                carry_out(store, tested.tuning, planned, "anna", "why")
            return super().prepare(plus, minus)

    def lengthen(run):
        tested.projected.append(run)
        if run.applied == 2 and run.max_iterations == 2:
            store.extend(tested.name, "anna", 5)

    delivery = Shortened()
    master = tested.master(FakeSleep(lambda: play(store)), delivery=delivery, project=lengthen)
    assert master.run() is RunStatus.FINISHED
    assert [i.opened_on for i in store.iterations(tested.run.id)] == [0, 0, 2, 2, 3]
    assert len(delivery.prepared) == 7
    assert check_run(store, tested.now(), tested.tuning) == []


def test_a_failed_build_ends_the_master_and_pauses_the_run(store):
    told = BuildFailed("`cc` ended with 1\nIn file a.c\n a.c:3: error: expected `;`\n2 errors")
    tested = RunUnderTest(store, delivery=FixedDelivery(trouble=told))
    with pytest.raises(BuildFailed, match="expected `;`") as failed:
        tested.master(FakeSleep(lambda: play(store))).run()
    assert failed.value.exit_code == 4 and tested.delivery.cancelled
    run = tested.now()
    assert (run.status, store.iterations(run.id)) == (RunStatus.PAUSED, [])
    reason = "iteration k=1 cannot be built: `cc` ended with 1: a.c:3: error: expected `;`"
    assert run.reason == reason
    (event,) = store.events(run.id, kinds=["paused"])
    store.resume(run.name, "anna")
    looks = iter([lambda: None, lambda: store.acquire_master_lease(run.id, "m", 1000)])
    tested.watched.saw = lambda view: next(looks)()
    with pytest.raises(MasterLeaseLost):
        tested.master(FakeSleep(lambda: play(store))).run()
    assert (event.actor, tested.now().status) == ("master", RunStatus.RUNNING)
    del tested.delivery.trouble
    trouble = errors.IllegalTransition("it was purged"), errors.DatabaseUnreachable("it is away")
    tested.watched.saw = Mock(side_effect=[*trouble, *99 * [None]])
    fake_sleep = Mock(wraps=FakeSleep(lambda: play(store)))
    assert tested.master(fake_sleep).run() is RunStatus.FINISHED
    assert fake_sleep.wait.call_args_list[:2] == [call(TICK_SECONDS), call(RETRY_SECONDS)]


def test_a_master_that_was_replaced_stops_in_the_middle_of_a_build(store):
    tested = RunUnderTest(store)

    class Replaced(FixedDelivery):
        def prepare(self, plus, minus):
            wait_until(lambda: tested.watched.views > 2)  # another build is queued
            store.acquire_master_lease(tested.run.id, "m", 1000)
            wait_until(lambda: self.cancelled)
            return super().prepare(plus, minus)

    delivery = Replaced()
    with pytest.raises(MasterLeaseLost):
        tested.master(FakeSleep(lambda: play(store)), delivery=delivery).run()
    assert len(delivery.prepared) == 1
    assert store.iterations(tested.run.id) == []


FAULT = Fault(file="params.toml", line=3, name="margin", found="is text", remedy="give a number")


@pytest.mark.parametrize("error", [InvalidInput([FAULT]), OSError(28, "No space left on device")])
def test_a_theta_that_cannot_be_written_out_ends_no_run(store, error, caplog):
    tested = RunUnderTest(store, iterations=2)
    fake_sleep, refuse = FakeSleep(lambda: play(store)), Mock(side_effect=error)
    assert tested.master(fake_sleep, project=refuse).run() is RunStatus.FINISHED
    assert "is in the database but not in params.toml" in caplog.text


def test_engines_of_old_results_are_given_up(store, monkeypatch):
    monkeypatch.setattr(loop, "KEPT_ITERATIONS", 2)
    tested = RunUnderTest(store, in_flight=1, iterations=5)
    tested.master(FakeSleep(lambda: play(store))).run()
    named = [(i.plus_parameters, i.minus_parameters) for i in store.iterations(tested.run.id)]
    kept = {new_engine(f"{side}").sha256 for pair in named[3:] for side in pair}
    old = {new_engine(f"{side}").sha256 for pair in named[:3] for side in pair}
    assert set(tested.delivery.discarded) == old - kept
    applied = [run.applied for run in tested.projected]
    assert applied == [0, *tested.watched.applied_ks] == [*range(6)]


def test_people_see_what_is_being_built_and_how_long_it_takes(store):
    tested = RunUnderTest(store, iterations=2, in_flight=1)
    seen = []

    class Slow(FixedDelivery):
        def prepare(self, plus, minus):
            end = time.monotonic() + 60
            while time.monotonic() < end and not seen[len(self.prepared) :]:
                found = [
                    line for line in status(store, tested.now()).sentences() if "build" in line
                ]
                seen.extend(found[:1])
            views = tested.watched.views
            time.sleep(0.5)
            assert tested.watched.views < views + 5, "a master waits between two views"
            return super().prepare(plus, minus)

    delivery = Slow(source_sha256="0" * 64, usual=70.0)
    tested.master(FakeSleep(lambda: play(store)), delivery=delivery).run()
    assert re.fullmatch(r"  building the next iteration, [0-9.]+s of about 1m 10s", seen[0])
    assert seen[1].startswith("  building the next iteration, ")
    kept = tested.now().builds
    assert kept.iterations == () and kept.usual == 70.0 > min(delivery._last)
    assert not any("build" in line for line in status(store, tested.now()).sentences())


LONG = 1000  # iterations planned: a run that bears ten in flight


def long_run(**over):
    return replace(settings(AUTO, LONG), **over)


def play_some(store, batches=1):
    """Play that many batches, as a fleet does that is in the middle of its games."""
    worker = store.register_worker(new_worker(concurrency=16))
    for _ in range(batches):
        claim = store.claim(uuid.uuid4().hex, worker, 1000)
        if claim is not None:
            store.report(claim, result_of(claim, seconds=4.0))


@pytest.mark.slow
def test_a_run_that_follows_its_fleet_goes_to_its_end_and_can_be_computed_again(store, sql):
    tested = RunUnderTest(store, in_flight=AUTO, iterations=8)
    master = tested.master(FakeSleep(lambda: play_some(store)), settings=long_run())
    assert master.run() is RunStatus.FINISHED
    run, rows = tested.now(), store.iterations(tested.run.id)
    assert [i.opened_on for i in rows] != [i - 1 for i in range(1, 9)]
    assert [i.in_flight for i in rows] == [i.k - i.opened_on for i in rows]
    assert check_run(store, run, tested.tuning) == []
    assert broken(sql) == []


def pacing(view, build_seconds=30.0, **over):
    return long_run(**over).pacing(view, FixedDelivery(usual=build_seconds))


def seen(**over):
    facts = {
        "run": new_run(id=1, applied=1),
        "opened": 1,
        "ready_games": 0,
        "leased_batches": 0,
        "game_seconds": 10.0,
        "active_slots": 8,
    }
    return RunView(open=[], failed=[], **facts | over)


def test_more_slots_want_more_games_and_longer_builds_too_and_threads_fewer():
    found = [
        pacing(seen(active_slots=slots), build_seconds).wanted
        for slots, build_seconds in ((8, 30.0), (64, 30.0), (64, 60.0))
    ]
    assert found[0] < found[1] < found[2]
    assert found[1] > 64 / 10 * 30.0
    four = {"game_settings": replace(long_run().game_settings, engine_options={"threads": "4"})}
    fewer, more = seen(active_slots=16), seen(active_slots=64)
    assert pacing(more, **four).wanted == pacing(fewer).wanted
    assert long_run(**four).batches(more) == long_run().batches(fewer)
    to_depth = replace(TERMS, time_control=TimeControl(kind=TimeKind.DEPTH, low=9, high=9))
    unknown = pacing(seen(game_seconds=None), game_settings=to_depth).wanted
    assert unknown == pacing(seen(game_seconds=10.0)).wanted
    unproved = FixedDelivery(source_sha256="0" * 64)
    assert unproved.seconds == ASSUMED_SECONDS, "before the first build"
    unproved.usual, unproved._last = 70.0, [8.0, 9.0] * 4
    assert unproved.seconds == 9.0, "eight that were measured are enough"
    assert FixedDelivery().seconds == 0.0


@pytest.mark.parametrize(
    ("over", "slots", "seconds"),
    [
        ({}, 8, 10.0),
        ({"leased_batches": 11}, 11, 10.0),
        ({"game_seconds": None}, 8, mean_game_seconds(long_run().game_settings, 1e6)),
    ],
)
def test_the_games_that_are_wanted_are_those_of_the_machines_that_are_seen(over, slots, seconds):
    sizes = {"games": 40, "batch_games": 10, "build_seconds": 7.0}
    wanted = GamesNeeded(slots=slots, game_seconds=seconds, **sizes).wanted
    found = pacing(seen(**over), 7.0, games_per_iteration=40, batch_size=10)
    assert found == Pacing(in_flight=1, wanted=wanted, games=40, builders=1)


def test_depth_grows_with_the_results_up_to_what_the_length_of_the_run_bears():
    view = seen()
    numbers_in_flight = [
        pacing(replace(view, run=replace(view.run, applied=n))).in_flight for n in (0, 4, 99)
    ]
    assert numbers_in_flight == [1, 2, 10]
    assert pacing(view, planned_iterations=99).in_flight == 1


def test_a_batch_is_a_fair_share_of_what_is_left():
    few, many = seen(active_slots=2), seen(active_slots=64)
    one = long_run(games_per_iteration=40, batch_size=10)
    assert one.batches(few) == (10, 10, 10, 4, 2, 2, 2)
    assert one.batches(many) == (2,) * 20
    assert long_run(iterations_in_flight=2).batches(many) == (4,) * (GAMES // 4)
