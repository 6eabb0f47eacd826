"""Iterations in flight that follow the fleet: on real stores, with builds that end when told to."""

import uuid
from dataclasses import replace

import pytest
from builders import new_worker, result_of
from invariants import broken
from masters import GAMES, FakeSleep, FixedDelivery, RunUnderTest, settings

from spsa.history.doctor import check_run
from spsa.lifecycle import RunStatus
from spsa.master.decide import Pacing
from spsa.master.delivery import ASSUMED_SECONDS, BuildThreads
from spsa.master.session import AUTO, Pacer
from spsa.planning.games_needed import GamesNeeded
from spsa.planning.plan_inputs import USUAL_PLIES, mean_game_seconds

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


class Bench(BuildThreads):
    """Its builds have lasted so many seconds."""

    def __init__(self, seconds):
        super().__init__(FixedDelivery())
        self._seconds.append(seconds)


def pacer(build_seconds=30.0, **over):
    return Pacer(long_run(**over), Bench(build_seconds))


def seen(store, **over):
    tested = RunUnderTest(store, uuid.uuid4().hex)
    view = store.tick(tested.store.acquire_master_lease(tested.run.id, "m", 1000), 1000)
    run = replace(view.run, applied=1)
    return replace(view, **{"run": run, "active_slots": 8, "game_seconds": 10.0} | over)


def test_more_slots_want_more_games_and_longer_builds_too(store):
    found = [
        pacer(build_seconds).pacing(seen(store, active_slots=slots)).wanted
        for slots, build_seconds in ((8, 30.0), (64, 30.0), (64, 60.0))
    ]
    assert found[0] < found[1] < found[2]
    assert found[1] > 64 / 10 * 30.0


@pytest.mark.parametrize(
    ("over", "slots", "seconds"),
    [
        ({}, 8, 10.0),
        ({"leased_batches": 11}, 11, 10.0),
        ({"game_seconds": None}, 8, mean_game_seconds(long_run().game_settings, USUAL_PLIES, 1e6)),
    ],
)
def test_the_games_that_are_wanted_are_those_of_the_machines_that_are_seen(
    store, over, slots, seconds
):
    asked = pacer(7.0, games_per_iteration=40, batch_size=10)
    sizes = {"games": 40, "batch_games": 10, "build_seconds": 7.0}
    wanted = GamesNeeded(slots=slots, game_seconds=seconds, **sizes).wanted
    builders = asked.build_threads.builders
    found = asked.pacing(seen(store, **over))
    assert found == Pacing(in_flight=1, wanted=wanted, games=40, builders=builders)


def test_engines_of_four_threads_want_the_games_of_a_quarter_of_the_slots(store):
    game_settings = replace(long_run().game_settings, engine_options={"threads": "4"})
    for_one, for_four = pacer(), pacer(game_settings=game_settings)
    fewer, more = seen(store, active_slots=16), seen(store, active_slots=64)
    assert for_four.pacing(more).wanted == for_one.pacing(fewer).wanted
    assert for_four.batches(more) == for_one.batches(fewer)


def test_nothing_is_known_of_builds_before_the_first(store):
    unproved = BuildThreads(FixedDelivery(source_sha256="0" * 64))
    assert unproved.seconds == ASSUMED_SECONDS
    assert BuildThreads(FixedDelivery()).seconds == 0.0


def test_depth_grows_with_the_results_up_to_what_the_length_of_the_run_bears(store):
    view = seen(store)
    numbers_in_flight = [
        pacer().pacing(replace(view, run=replace(view.run, applied=n))).in_flight
        for n in (0, 4, 99)
    ]
    assert numbers_in_flight == [1, 2, 10]
    assert pacer(planned_iterations=99).pacing(view).in_flight == 1


def test_a_batch_is_a_fair_share_of_what_is_left(store):
    few, many = seen(store, active_slots=2), seen(store, active_slots=64)
    one = pacer(games_per_iteration=40, batch_size=10)
    assert one.batches(few) == (10, 10, 10, 4, 2, 2, 2)
    assert one.batches(many) == (2,) * 20
    assert pacer(iterations_in_flight=2).batches(many) == (4,) * (GAMES // 4)
