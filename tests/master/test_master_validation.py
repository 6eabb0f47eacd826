"""A validation on real stores: opened once, gone on with however interrupted, never half told."""

import threading
from contextlib import contextmanager
from dataclasses import replace

import pytest
from builders import TERMS, new_worker
from cutting import CutStore
from masters import FixedDelivery, House, Rests, Watched, play

from spsa.core.scoring import Tally
from spsa.db.store import Compared
from spsa.errors import BuildFailed, DatabaseUnreachable, MasterLeaseLost, NothingToDo, TuningError
from spsa.lifecycle import IterationStatus, Purpose, RunStatus
from spsa.master.validation import ValidationMatch, sprt_of, validate

pytestmark = pytest.mark.slow_on("postgresql")

MATCH = ValidationMatch(
    plus={"margin": 60.0},
    minus={"margin": 50.0},
    games=12,
    batch_games=4,
    max_attempts=2,
    game_settings=TERMS,
)


@pytest.fixture
def house(store):
    """A run that is finished."""
    house = House(store, iterations=2)
    assert house.master(Rests(lambda: play(store))).run() is RunStatus.FINISHED
    return house


def validated(house, rests=None, store=None, match=MATCH, delivery=None):
    store = store or house.store
    master_lease = house.store.acquire_master_lease(house.run.id, "m", 1000)
    rests = rests or Rests(lambda: play(house.store))
    return validate(store, master_lease, delivery or FixedDelivery(), match, Watched(), rests)


def one_move():
    """Lets a master act until it would rest for the first time."""
    rests = Rests(lambda: rests.set())
    return rests


def matches(house):
    return house.store.iterations(house.run.id, purpose=Purpose.VALIDATE)


def test_a_match_goes_from_open_to_complete_and_theta_rests(house):
    before = house.now()
    row = validated(house)
    assert (row.status, row.games_played, row.tally.games) == (IterationStatus.COMPLETE, 12, 12)
    assert (row.plus_parameters, row.minus_parameters) == (MATCH.plus, MATCH.minus)
    assert row.elo_diff is not None
    now = house.now()
    assert (now.theta, now.applied, now.status) == (before.theta, 2, RunStatus.FINISHED)
    assert len(matches(house)) == 1


def test_a_second_match_is_another_one(house):
    first, second = validated(house), validated(house)
    assert second.iteration_number == first.iteration_number + 1


def test_an_interrupted_match_goes_on(house):
    worker = house.store.register_worker(new_worker())
    assert validated(house, one_move()) is None
    (opened,) = matches(house)
    assert opened.status is IterationStatus.PENDING
    assert house.store.claim("one", worker, 1000).iteration_number == opened.iteration_number
    house.store.release(house.store.claim("one", worker, 1000))
    delivery = FixedDelivery()
    row = validated(house, delivery=delivery)
    assert (row.id, row.status) == (opened.id, IterationStatus.COMPLETE)
    assert delivery.prepared == []


class SilentStore(CutStore):
    """One that can be cut off while it is read, too."""

    writes, at = 0, None  # it is read while it is opened

    @contextmanager
    def _read(self):
        self.writes += 1
        if self.writes == self.at:
            raise DatabaseUnreachable("cut while it was read")
        with super()._read() as connection:
            yield connection


@pytest.mark.slow
@pytest.mark.parametrize("cut", ["before", "after"])
def test_cut_off_at_any_call_there_is_one_match_and_it_ends(database_url, store, house, cut):
    with SilentStore(database_url) as queries:
        queries.writes = 0
        validated(house, store=queries)
        calls = queries.writes
        assert calls > 3
        for at in range(1, calls + 1):
            before = len(matches(house))
            queries.writes, queries.at, queries.cut = 0, at, cut
            assert validated(house, store=queries).status is IterationStatus.COMPLETE
            assert len(matches(house)) == before + 1, at


@pytest.mark.slow
@pytest.mark.parametrize("cut", [None, "after"])
def test_a_match_that_cannot_be_played_is_given_up_loudly(database_url, house, cut):
    """Also where the answer to the giving up is lost."""
    worker = house.store.register_worker(new_worker())

    def fail():
        if (claim := house.store.claim(f"try {rests.count}", worker, 1000)) is not None:
            house.store.fail(claim, "the engine crashed")

    rests = Rests(fail)
    with AbandonCut(database_url) as queries:
        queries.lost = cut
        words = "abandoned" if cut else "cannot be played: the engine crashed"
        with pytest.raises(TuningError, match=words):
            validated(house, rests, queries)
    assert [row.status for row in matches(house)] == [IterationStatus.ABANDONED]
    assert house.now().status is RunStatus.FINISHED
    assert [e.kind for e in house.store.events(house.run.id)][-1] == "failed"
    assert validated(house).status is IterationStatus.COMPLETE


class AbandonCut(CutStore):
    lost = None

    def abandon_validation(self, *arguments):
        self.cut_next(self.lost)
        super().abandon_validation(*arguments)


def test_a_match_is_not_opened_for_a_paused_run(store):
    house = House(store)
    store.pause(house.name, "anna", "the machine is needed")
    delivery = FixedDelivery()
    with pytest.raises(NothingToDo, match="the machine is needed"):
        validated(house, delivery=delivery)
    assert (matches(house), delivery.prepared) == ([], [])


@pytest.mark.slow
def test_a_failure_of_the_tune_does_not_cost_the_match(store):
    """Only the games of the match itself say whether it can be played."""
    house = House(store, in_flight=1)
    house.master(one_move()).run()
    assert validated(house, one_move()) is None
    worker = store.register_worker(new_worker())
    for attempt in range(2):
        store.fail(store.claim(f"try {attempt}", worker, 1000), "no such option")
    with pytest.raises(NothingToDo, match="paused"):
        validated(house)
    assert [row.status for row in matches(house)] == [IterationStatus.PENDING]
    store.resume(house.name, "anna")
    assert validated(house).status is IterationStatus.COMPLETE


def test_a_match_whose_run_is_stopped_says_so(store):
    house = House(store)

    def stop():
        if house.now().status is RunStatus.RUNNING and matches(house):
            store.stop(house.name, "anna", "enough")

    with pytest.raises(TuningError, match="abandoned after 0 of 12 games; run house is stopped"):
        validated(house, Rests(stop))


def test_a_match_of_a_stopped_run_is_played(store):
    house = House(store)
    store.stop(house.name, "anna", "enough")
    assert validated(house).status is IterationStatus.COMPLETE


@pytest.mark.slow
def test_engines_that_cannot_be_built_open_nothing(house):
    delivery = FixedDelivery(trouble=BuildFailed("expected `;`"))
    with pytest.raises(BuildFailed):
        validated(house, delivery=delivery)
    assert delivery.cancelled
    assert matches(house) == []


@pytest.mark.slow
def test_the_mastership_is_renewed_while_engines_are_built(house):
    ticked = threading.Event()

    class Slow(FixedDelivery):
        def prepare(self, plus, minus):
            assert ticked.wait(30)
            return super().prepare(plus, minus)

    rests = Rests(lambda: (ticked.set(), play(house.store)))
    assert validated(house, rests, delivery=Slow()).status is IterationStatus.COMPLETE


@pytest.mark.slow
def test_a_master_that_was_replaced_leaves_the_match_alone(house):
    master_lease = house.store.acquire_master_lease(house.run.id, "m", 1000)
    house.store.acquire_master_lease(house.run.id, "m", 1000)
    with pytest.raises(MasterLeaseLost):
        validate(house.store, master_lease, FixedDelivery(), MATCH, Watched(), Rests(lambda: None))
    assert matches(house) == []


TEST = replace(MATCH, games=4000, compared=Compared(sprt=(50.0, 150.0)))
"""Made-up results are those of equal players, so it accepts 50."""


def test_a_sequential_test_ends_when_it_is_decided(house):
    row = validated(house, match=TEST)
    rounds = house.store.rounds(house.run.id, row.match_number)
    complete = [one for one in rounds if one.status is IterationStatus.COMPLETE]
    assert len(complete) > 1
    assert {one.status for one in rounds[len(complete) :]} <= {IterationStatus.ABANDONED}
    assert row.tally == sum((one.tally for one in complete), Tally())
    assert sprt_of(TEST.compared, row.tally).accepted == 0
    before = sum((one.tally for one in complete[:-1]), Tally())
    assert sprt_of(TEST.compared, before).accepted is None
    assert row.tally.games < 400
    again = validated(house, match=TEST)
    assert again.match_number > row.match_number, "a decided test is not asked again"


def test_an_interrupted_test_goes_on_with_its_rounds(house):
    rests = Rests(lambda: rests.set() if rests.count == 2 else play(house.store))
    assert validated(house, rests, match=TEST) is None
    (begun,) = house.store.matches(house.run.id)
    delivery = FixedDelivery()
    row = validated(house, match=TEST, delivery=delivery)
    assert row.match_number == begun.match_number
    assert row.tally.games >= begun.tally.games > 0


def test_a_test_stops_at_its_limit_undecided(house):
    row = validated(house, match=replace(TEST, games=8))
    assert (row.games_played, sprt_of(TEST.compared, row.tally).accepted) == (8, None)


def test_a_match_of_other_values_beside_a_left_one_is_played_too(house):
    assert validated(house, one_move()) is None
    other = replace(MATCH, plus={"margin": 70.0})
    row = validated(house, match=other)
    assert row.plus_parameters == other.plus
    assert {one.status for one in house.store.matches(house.run.id)} == {IterationStatus.COMPLETE}
