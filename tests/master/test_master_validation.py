"""A validation on real stores: opened once, gone on with however interrupted, never half told."""

from dataclasses import replace

import pytest
from builders import TERMS, new_worker, play
from cutting import CutStore
from masters import FakeSleep, FixedDelivery, RunUnderTest, Watched, settings

from spsa.core.params import PlayedValues
from spsa.core.scoring import Tally
from spsa.db.tables import Compared
from spsa.errors import BuildFailed, NothingToDo, TuningError
from spsa.lifecycle import IterationStatus, Purpose, RunStatus
from spsa.master.validation import ValidationMatch, sprt_of, validate
from spsa.protocol import Failure

pytestmark = pytest.mark.slow_on("postgresql")

MATCH = ValidationMatch(
    sides=PlayedValues({"margin": 60.0}, {"margin": 50.0}),
    settings=settings(2, 2),
    game_settings=TERMS,
    games=12,
)


@pytest.fixture
def tested(store):
    """A run that is finished."""
    tested = RunUnderTest(store, iterations=2)
    assert tested.master(FakeSleep(lambda: play(store))).run() is RunStatus.FINISHED
    return tested


def validated(tested, fake_sleep=None, store=None, match=MATCH, delivery=None):
    store = store or tested.store
    master_lease = tested.store.acquire_master_lease(tested.run.id, "m", 1000)
    fake_sleep = fake_sleep or FakeSleep(lambda: play(tested.store))
    return validate(store, master_lease, delivery or FixedDelivery(), match, Watched(), fake_sleep)


def one_move():
    """Lets a master act until it would rest for the first time."""
    return FakeSleep(lambda: None, most=1)


def matches(tested):
    return tested.store.iterations(tested.run.id, purpose=Purpose.VALIDATE)


def test_a_match_goes_from_open_to_complete_and_theta_rests(tested):
    before = tested.now()
    row = validated(tested)
    assert (row.status, row.games_played, row.tally.games) == (IterationStatus.COMPLETE, 12, 12)
    assert PlayedValues(row.plus_parameters, row.minus_parameters) == MATCH.sides
    assert row.elo_diff is not None
    now = tested.now()
    assert (now.theta, now.applied, now.status) == (before.theta, 2, RunStatus.FINISHED)
    assert len(matches(tested)) == 1


def test_an_interrupted_match_goes_on(tested):
    assert validated(tested, one_move()) is None
    (opened,) = matches(tested)
    assert opened.status is IterationStatus.PENDING
    delivery = FixedDelivery()
    row = validated(tested, delivery=delivery)
    assert (row.id, row.status) == (opened.id, IterationStatus.COMPLETE)
    assert delivery.prepared == []


@pytest.mark.slow
@pytest.mark.parametrize("cut", ["before", "after"])
def test_cut_off_at_any_call_there_is_one_match_and_it_ends(database_url, store, tested, cut):
    with CutStore(database_url) as queries:
        queries.writes = 0
        validated(tested, store=queries)
        calls = queries.writes
        assert calls > 3
        for at in range(1, calls + 1):
            before = len(matches(tested))
            queries.writes, queries.at, queries.cut = 0, at, cut
            assert validated(tested, store=queries).status is IterationStatus.COMPLETE
            assert len(matches(tested)) == before + 1, at


@pytest.mark.slow
def test_a_match_that_cannot_be_played_is_given_up_loudly(tested):
    worker = tested.store.register_worker(new_worker())

    def fail():
        if (claim := tested.store.claim(f"try {fake_sleep.count}", worker, 1000)) is not None:
            tested.store.fail(claim, Failure(reason="the engine crashed"))

    fake_sleep = FakeSleep(fail)
    with pytest.raises(TuningError, match="cannot be played: the engine crashed"):
        validated(tested, fake_sleep)
    assert [row.status for row in matches(tested)] == [IterationStatus.ABANDONED]
    assert tested.now().status is RunStatus.FINISHED
    assert [e.kind for e in tested.store.events(tested.run.id)][-1] == "failed"
    assert validated(tested).status is IterationStatus.COMPLETE


def test_a_match_is_not_opened_for_a_paused_run(store):
    tested = RunUnderTest(store)
    store.pause(tested.name, "anna", "the machine is needed")
    delivery = FixedDelivery()
    with pytest.raises(NothingToDo, match="the machine is needed"):
        validated(tested, delivery=delivery)
    assert (matches(tested), delivery.prepared) == ([], [])


@pytest.mark.slow
def test_a_failure_of_the_tune_does_not_cost_the_match(store):
    """Only the games of the match itself say whether it can be played."""
    tested = RunUnderTest(store, in_flight=1)
    tested.master(one_move()).run()
    assert validated(tested, one_move()) is None
    worker = store.register_worker(new_worker())
    for attempt in range(2):
        store.fail(store.claim(f"try {attempt}", worker, 1000), Failure(reason="no such option"))
    with pytest.raises(NothingToDo, match="paused"):
        validated(tested)
    assert [row.status for row in matches(tested)] == [IterationStatus.PENDING]
    store.resume(tested.name, "anna")
    assert validated(tested).status is IterationStatus.COMPLETE


def test_a_match_that_is_miscounted_is_not_completed(tested, sql):
    assert validated(tested, one_move()) is None
    play(tested.store)
    (row,) = matches(tested)
    sql("UPDATE spsa_iteration SET void_games = 3 WHERE id = :id", id=row.id)
    words = "run tested cannot go on: iteration 3 has 12 games .* 3 void ones, and its batches have"
    with pytest.raises(TuningError, match=words):
        validated(tested)
    assert matches(tested)[0].status is IterationStatus.IN_PROGRESS


def test_a_match_whose_run_is_stopped_says_so(store):
    tested = RunUnderTest(store)

    def stop():
        if tested.now().status is RunStatus.RUNNING and matches(tested):
            store.stop(tested.name, "anna", "enough")

    with pytest.raises(TuningError, match="abandoned after 0 of 12 games; run tested is stopped"):
        validated(tested, FakeSleep(stop))


@pytest.mark.slow
def test_engines_that_cannot_be_built_open_nothing(tested):
    delivery = FixedDelivery(trouble=BuildFailed("expected `;`"))
    with pytest.raises(BuildFailed):
        validated(tested, delivery=delivery)
    assert delivery.cancelled
    assert matches(tested) == []


TEST = replace(MATCH, games=4000, asked=Compared(sprt=(50.0, 150.0)))
"""Made-up results are those of equal players, so it accepts 50."""


def test_a_sequential_test_ends_when_it_is_decided(tested):
    row = validated(tested, match=TEST)
    rounds = tested.store.iterations(tested.run.id, match=row.match_number)
    complete = [one for one in rounds if one.status is IterationStatus.COMPLETE]
    assert len(complete) > 1
    assert {one.status for one in rounds[len(complete) :]} <= {IterationStatus.ABANDONED}
    assert row.tally == sum((one.tally for one in complete), Tally())
    assert sprt_of(TEST.compared, row.tally).accepted == 0
    before = sum((one.tally for one in complete[:-1]), Tally())
    assert sprt_of(TEST.compared, before).accepted is None
    assert row.tally.games < 400
    again = validated(tested, match=TEST)
    assert again.match_number > row.match_number, "a decided test is not asked again"


def test_an_interrupted_test_goes_on_with_its_rounds(tested):
    assert validated(tested, FakeSleep(lambda: play(tested.store), most=2), match=TEST) is None
    (begun,) = tested.store.matches(tested.run.id)
    delivery = FixedDelivery()
    row = validated(tested, match=TEST, delivery=delivery)
    assert row.match_number == begun.match_number
    assert row.tally.games >= begun.tally.games > 0


def test_a_test_stops_at_its_limit_undecided_and_goes_on_with_another_limit(tested):
    row = validated(tested, match=replace(TEST, games=8))
    assert (row.games_played, sprt_of(TEST.compared, row.tally).accepted) == (8, None)
    more = validated(tested, match=replace(TEST, games=16))
    assert (more.match_number, more.games_played) == (row.match_number, 16)


def test_a_match_of_other_values_beside_a_left_one_is_played_too(tested):
    assert validated(tested, one_move()) is None
    other = replace(MATCH, sides=PlayedValues({"margin": 70.0}, {"margin": 50.0}))
    row = validated(tested, match=other)
    assert row.plus_parameters == other.sides.plus
    assert {one.status for one in tested.store.matches(tested.run.id)} == {IterationStatus.COMPLETE}
