"""Which batch the next claim gets: by priority, share and age of runs, and by the worker."""

import random
from collections import Counter
from itertools import count

import pytest
import sqlalchemy as sa
from builders import (
    LEASE,
    new_engine,
    new_iteration,
    new_run,
    new_validation,
    new_worker,
    result_of,
)

from spsa.db.url import parse_url
from spsa.errors import IllegalTransition

OLD = "2000-01-01 00:00:00.000"
PLAYED = 120
PLENTY = 160  # batches


class Runs:
    """Runs of one database with their masters, and workers that ask for batches of one pair."""

    def __init__(self, store, sql):
        self.store, self.sql, self.asked, self.masters = store, sql, count(), {}

    def start(self, name, batches=1, *, priority=0, share=1.0, max_iterations=3, **over):
        """A run with an iteration of so many batches; with 0 it has none yet."""
        facts = {"priority": priority, "share": share, "max_iterations": max_iterations}
        run = self.store.create_run(new_run(name=name, **facts))
        self.masters[name] = self.store.acquire_master_lease(run.id, f"m-{name}", LEASE)
        if batches:
            self.open(name, batches, **over)
        return run

    def open(self, name, batches, **over):
        new = new_iteration(target_games=2 * batches, batch_games=2, **over)
        self.store.open_iteration(self.masters[name], new)

    def worker(self, name="w", **over):
        return self.store.register_worker(new_worker(name, host=name, **over))

    def claim(self, low=0.0, high=1.0, worker=None):
        """By a claim whose first two draws fall between these."""
        ids = ((f"claim {n}", random.Random(f"claim {n}")) for n in self.asked)
        drawn = next(
            claim_id
            for claim_id, chance in ids
            if low < chance.random() < high and low < chance.random() < high
        )
        return self.store.claim(drawn, worker or self.worker(concurrency=16), LEASE)

    def play(self, claim):
        self.store.report(claim, result_of(claim))

    def next_runs(self, claims):
        return [self.claim().run_name for _ in range(claims)]

    def served(self, worker):
        """The runs of all batches that this worker is given and plays, in order."""
        names = []
        while (claim := self.claim(worker=worker)) is not None:
            names.append(claim.run_name)
            self.play(claim)
        return names

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
            self.play(playing[done])
            playing[done] = self.claim()
        return {name: slots * time / held.total() for name, time in held.items()}


@pytest.fixture
def runs(store, sql):
    return Runs(store, sql)


def test_the_higher_priority_is_served_as_long_as_it_has_anything_free(runs):
    runs.start("old", batches=4)
    runs.start("urgent", batches=3, priority=1)
    first = [runs.claim() for _ in range(4)]
    assert [claim.run_name for claim in first] == ["urgent", "urgent", "urgent", "old"]
    for claim in first[:3]:
        runs.play(claim)
    runs.start("more urgent", priority=7)
    assert runs.next_runs(3) == ["more urgent", "old", "old"]


def test_within_a_run_the_oldest_iteration_goes_first(runs):
    runs.start("first", batches=2, in_flight=2)
    runs.open("first", batches=2, k=2, in_flight=2)
    order = [(claim.iteration_number, claim.seq) for claim in iter(runs.claim, None)]
    assert order == [(1, 0), (1, 1), (2, 0), (2, 1)]


def test_a_validation_of_an_ended_run_has_the_priority_of_its_run(runs):
    runs.start("tuned", priority=1)
    runs.start("tuning")
    runs.play(runs.claim())
    runs.store.stop("tuned", "me", "enough")
    match = new_validation(target_games=2, batch_games=2)
    runs.store.open_iteration(runs.masters["tuned"], match)
    assert runs.next_runs(2) == ["tuned", "tuning"]


SHARES = [
    pytest.param(8, {"a": 3.0, "b": 1.0}, {"b": 10.0}, 0.35, id="games of other lengths"),
    pytest.param(2, {"a": 1.0, "b": 1.0, "c": 1.0}, {}, 0.2, id="more runs than slots"),
    pytest.param(1, {"a": 3.0, "b": 1.0}, {}, 0.1, id="one slot"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("slots", "shares", "seconds", "tolerance"), SHARES)
def test_runs_of_one_priority_have_their_shares_of_the_slots(
    runs, slots, shares, seconds, tolerance
):
    runs.start("of lower priority", batches=PLENTY, share=9.0, priority=-1)
    for name, share in shares.items():
        runs.start(name, batches=PLENTY, share=share)
    held = runs.slots_held(slots, PLAYED, seconds)
    due = {name: slots * share / sum(shares.values()) for name, share in shares.items()}
    assert held == pytest.approx(due, abs=tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("idle", ["played", "held", "left and tried enough"])
def test_only_a_run_with_a_free_batch_takes_part_in_the_draw(runs, idle):
    """Else the run of the next number would get the share of the idle one."""
    runs.start("idle", share=10.0)
    claim = runs.claim()
    if idle == "played":
        runs.play(claim)
    elif idle != "held":
        runs.sql("UPDATE spsa_batch SET max_attempts = 1")
        runs.sql.expire(claim.batch_id)
    runs.start("b", batches=2)
    runs.start("c", batches=2)
    assert runs.claim(0.55, 0.65).run_name == "c"
    assert runs.claim(0.2, 0.3).run_name == "b"


def test_slots_in_use_are_those_of_open_iterations_and_live_leases(runs, expire):
    runs.start("gone", batches=9)
    lost = [runs.claim() for _ in range(4)]
    runs.start("here", batches=9)
    assert runs.claim(0.0, 0.1).run_name == "here", "the other one has four of five slots"
    for claim in lost:
        expire(claim.batch_id)
    assert Counter(runs.next_runs(7)) == {"gone": 4, "here": 3}


def test_where_others_are_taking_all_of_one_run_the_next_one_is_served(runs, database_url):
    if runs.store.is_file:
        return  # one writer at a time: nobody ever finds a row locked
    runs.start("low")
    runs.start("high", batches=2, priority=1)
    engine = sa.create_engine(parse_url(database_url))
    with engine.begin() as other:
        other.execute(
            sa.text(
                "SELECT b.id FROM spsa_batch b JOIN spsa_iteration i ON i.id = b.iteration_id"
                " JOIN spsa_run r ON r.id = i.run_id WHERE r.name = 'high' FOR UPDATE OF b"
            )
        )
        assert runs.next_runs(1) == ["low"]
        assert runs.claim() is None
    assert runs.next_runs(1) == ["high"]
    engine.dispose()


def test_priority_and_share_are_changed_while_a_run_is_live_and_told(runs):
    runs.start("first", batches=9)
    runs.start("second", batches=9)
    runs.store.prioritize("second", "me", priority=2, share=0.5)
    changed = runs.store.run("second")
    assert (changed.priority, changed.share) == (2, 0.5)
    assert runs.next_runs(3) == ["second"] * 3
    runs.store.prioritize("second", "me", priority=-1)
    assert runs.store.run("second").share == 0.5
    assert runs.next_runs(1) == ["first"]
    told = [e.detail for e in runs.store.events(changed.id) if e.kind == "prioritize"]
    assert sorted(told, key=str) == [{"priority": -1}, {"priority": 2, "share": 0.5}]
    with pytest.raises(IllegalTransition, match="no run named 'nobody'"):
        runs.store.prioritize("nobody", "me", priority=1)


def test_an_overview_has_the_slots_and_the_master_of_each_run(runs):
    runs.start("ended")
    runs.store.stop("ended", "me", "enough")
    runs.start("waiting", batches=2)
    runs.start("busy", batches=3, priority=1)
    runs.store.release_master_lease(runs.masters["busy"])
    runs.next_runs(2)
    rows = runs.store.run_overviews()
    assert [(row.name, row.slots, row.has_master, row.live) for row in rows] == [
        ("busy", 2, False, True),
        ("waiting", 0, True, True),
        ("ended", 0, True, False),
    ]


def test_a_worker_takes_the_runs_that_it_names(runs):
    """A name is no pattern."""
    names = ("a.b", '"', "a'b", "%")
    for name in ("a", "b", "c", "axb", *names):
        runs.start(name)
    for name in names:
        assert runs.served(runs.worker(f"w{name}", only_runs=(name,))) == [name]
    assert runs.served(runs.worker("one", only_runs=("b", "not there"))) == ["b"]
    assert sorted(runs.served(runs.worker("two", not_runs=("a", "b")))) == ["axb", "c"]
    assert runs.served(runs.worker("three", only_runs=("a",), not_runs=("a",))) == []
    assert runs.served(runs.worker("four")) == ["a"]


def test_a_worker_gets_what_requires_nothing_that_it_lacks(runs):
    runs.start("any")
    runs.start("new", requires=("linux", "x86-64-v3"))
    runs.start("fast", requires=("linux", "fast"))
    old = runs.worker("old", provides=("linux", "x86-64", "x86-64-v2"))
    assert runs.served(old) == ["any"]
    assert runs.served(runs.worker("nothing")) == []
    new = runs.worker("new", provides=("linux", "x86-64", "x86-64-v2", "x86-64-v3", "slow"))
    assert runs.served(new) == ["new"]
    again = runs.worker("nothing", provides=("fast", "linux"))  # it starts with other options
    assert runs.served(again) == ["fast"]


def test_what_is_left_is_told_with_what_it_requires(runs):
    """Also what binaries for other machines require, while they are played."""
    sides = (new_engine("plus for arm"), new_engine("minus for arm"))
    for name in ("a", "b"):
        runs.start(name, requires=("x86-64",), variants={"% aarch64 % linux %": sides})
    runs.start("c")
    runs.start("unopened", batches=0)
    runs.store.pause("b", "me", "dinner")
    runs.store.stop("c", "me", "enough")
    left = sorted((one.run, one.requires) for one in runs.store.work_left())
    assert left == [("a", ("aarch64", "linux")), ("a", ("x86-64",)), ("unopened", ())]
