"""Several runs at once: who is served, by priority and then by share."""

import random
from collections import Counter

import pytest
import sqlalchemy as sa
from builders import LEASE, new_iteration, new_run, new_validation, new_worker, result_of

from spsa.db.database import parse_url
from spsa.errors import IllegalTransition

PLAYED = 120
PLENTY = 160  # batches of one pair


class Several:
    """Runs of one database, each with its master, and a fleet that is one worker's row."""

    def __init__(self, store) -> None:
        self.store = store
        self.worker = store.register_worker(new_worker(concurrency=16))
        self.masters = {}
        self.asked = 0

    def start(self, name, batches=0, **over):
        run = self.store.create_run(new_run(name=name, **over))
        self.masters[name] = self.store.acquire_master_lease(run.id, f"m-{name}", LEASE)
        if batches:
            self.open(name, batches)

    def open(self, name, batches):
        k = self.store.run(name).applied + 1
        new = new_iteration(k=k, target_games=2 * batches, batch_games=2)
        self.store.open_iteration(self.masters[name], new)

    def claim(self):
        self.asked += 1
        return self.store.claim(f"turn-{self.asked}", self.worker, LEASE)

    def report(self, claim):
        self.store.report(claim, result_of(claim))

    def slots_held(self, slots, claims, seconds):
        """The mean number of slots of each run while a fleet plays so many batches.

        `seconds` is how long a batch of a run takes: the next slot to fall free is drawn by it.
        """
        chance = random.Random(1)
        playing = [self.claim() for _ in range(slots)]
        held = Counter()
        for _ in range(claims):
            rates = [1 / seconds.get(claim.run_name, 1.0) for claim in playing]
            lasted = 1 / sum(rates)
            for claim in playing:
                held[claim.run_name] += lasted
            done = chance.choices(range(slots), rates)[0]
            self.report(playing[done])
            playing[done] = self.claim()
        return {name: slots * time / held.total() for name, time in held.items()}


@pytest.fixture
def several(store):
    return Several(store)


def test_the_higher_priority_is_served_as_long_as_it_has_anything_free(several):
    several.start("old", batches=4)
    several.start("urgent", batches=3, priority=1)
    first = [several.claim() for _ in range(4)]
    assert [claim.run_name for claim in first] == ["urgent", "urgent", "urgent", "old"]
    for claim in first[:3]:
        several.report(claim)
    several.start("more urgent", batches=1, priority=7)
    assert [several.claim().run_name for _ in range(3)] == ["more urgent", "old", "old"]


def test_no_slot_idles_while_a_lower_priority_has_work(several):
    several.start("low", batches=2, priority=-3)
    several.start("high", priority=5)
    several.start("higher", batches=1, priority=6)
    several.store.pause("higher", "me", "a pause")
    assert [several.claim().run_name for _ in range(2)] == ["low", "low"]
    assert several.claim() is None
    several.open("high", 1)
    assert several.claim().run_name == "high"


def test_within_a_run_the_oldest_iteration_goes_first(several):
    several.start("first", max_iterations=9)
    for k in (1, 2):
        new = new_iteration(k=k, target_games=4, batch_games=2, in_flight=2)
        several.store.open_iteration(several.masters["first"], new)
    order = [(claim.iteration_number, claim.seq) for claim in iter(several.claim, None)]
    assert order == [(1, 0), (1, 1), (2, 0), (2, 1)]


def test_a_validation_of_an_ended_run_has_the_priority_of_its_run(several):
    several.start("tuned", priority=1, max_iterations=1)
    several.start("tuning", batches=1)
    several.open("tuned", 1)
    several.report(several.claim())
    several.store.stop("tuned", "me", "enough")
    match = new_validation(target_games=2, batch_games=2)
    several.store.open_iteration(several.masters["tuned"], match)
    assert [several.claim().run_name for _ in range(2)] == ["tuned", "tuning"]


SHARES = [
    pytest.param(8, {"a": 3.0, "b": 1.0}, {}, 0.35, id="whole slots"),
    pytest.param(8, {"a": 3.0, "b": 1.0}, {"b": 10.0}, 0.35, id="games of other lengths"),
    pytest.param(7, {"a": 1.0, "b": 1.0, "c": 0.5}, {"a": 3.0}, 0.6, id="parts of slots"),
    pytest.param(2, {"a": 1.0, "b": 1.0, "c": 1.0}, {}, 0.2, id="more runs than slots"),
    pytest.param(1, {"a": 3.0, "b": 1.0}, {}, 0.1, id="one slot"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("slots", "shares", "seconds", "tolerance"), SHARES)
def test_runs_of_one_priority_have_their_shares_of_the_slots(
    several, slots, shares, seconds, tolerance
):
    several.start("of lower priority", batches=PLENTY, share=9.0, priority=-1)
    for name, share in shares.items():
        several.start(name, batches=PLENTY, share=share)
    held = several.slots_held(slots, PLAYED, seconds)
    due = {name: slots * share / sum(shares.values()) for name, share in shares.items()}
    assert held == pytest.approx(due, abs=tolerance)


def test_an_expired_lease_is_no_slot_in_use(several, expire):
    several.start("gone", batches=9)
    lost = [several.claim() for _ in range(4)]
    several.start("here", batches=9)
    for claim in lost:
        expire(claim.batch_id)
    served = Counter(several.claim().run_name for _ in range(8))
    assert served == {"gone": 4, "here": 4}


def test_where_others_are_taking_all_of_one_run_the_next_one_is_served(several, database_url):
    if several.store.is_file:
        return  # one writer at a time: nobody ever finds a row locked
    several.start("low", batches=1)
    several.start("high", batches=2, priority=1)
    engine = sa.create_engine(parse_url(database_url))
    with engine.begin() as other:
        other.execute(
            sa.text(
                "SELECT b.id FROM spsa_batch b JOIN spsa_iteration i ON i.id = b.iteration_id"
                " JOIN spsa_run r ON r.id = i.run_id WHERE r.name = 'high' FOR UPDATE OF b"
            )
        )
        assert several.claim().run_name == "low"
        assert several.claim() is None
    assert several.claim().run_name == "high"
    engine.dispose()


def test_priority_and_share_are_changed_while_a_run_is_live_and_told(several):
    several.start("first", batches=9)
    several.start("second", batches=9)
    several.store.prioritize("second", "me", priority=2, share=0.5)
    changed = several.store.run("second")
    assert (changed.priority, changed.share) == (2, 0.5)
    assert [several.claim().run_name for _ in range(3)] == ["second"] * 3
    several.store.prioritize("second", "me", priority=-1)
    assert several.store.run("second").share == 0.5
    assert several.claim().run_name == "first"
    told = [e.detail for e in several.store.events(changed.id) if e.kind == "prioritize"]
    assert sorted(told, key=str) == [{"priority": -1}, {"priority": 2, "share": 0.5}]


def test_an_overview_has_the_slots_and_the_master_of_each_run(several):
    several.start("ended", batches=1)
    several.store.stop("ended", "me", "enough")
    several.start("waiting", batches=2)
    several.start("busy", batches=3, priority=1)
    several.store.release_master_lease(several.masters["busy"])
    for _ in range(2):
        several.claim()
    rows = several.store.run_overviews()
    assert [(row.name, row.slots, row.has_master, row.live) for row in rows] == [
        ("busy", 2, False, True),
        ("waiting", 0, True, True),
        ("ended", 0, True, False),
    ]


def test_a_master_is_there_until_its_lease_expires(several):
    several.start("first")
    master = several.masters["first"]

    def has_master(seconds):
        several.store.tick(master, seconds)
        (row,) = several.store.run_overviews()
        return row.has_master

    assert any(has_master(0.9) for _ in range(20))  # a busy machine may be late


def test_who_is_not_there_has_no_priority(several):
    with pytest.raises(IllegalTransition, match="no run named 'nobody'"):
        several.store.prioritize("nobody", "me", priority=1)
