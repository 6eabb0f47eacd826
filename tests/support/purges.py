"""Runs played by a good and a bad worker, and what has to hold after a purge."""

import struct
import uuid

from builders import (
    LEASE,
    new_worker,
    result_of,
)
from invariants import broken
from masters import Rests, play

from spsa.core.scoring import Tally
from spsa.db.store import BatchResult
from spsa.history.doctor import check_run
from spsa.history.purge import results_of
from spsa.history.replay import replay
from spsa.lifecycle import BatchStatus, Purpose

BAD, GOOD = "bad-1", "good-1"


def bits(values):
    return {name: struct.pack("<d", value) for name, value in values.items()}


def pure(house, k=None):
    """Theta and the rule's state by the definition: every result that is left, told in order."""
    run = house.now()
    results = results_of(house.store, run, run.applied if k is None else k)
    *_, last = replay(house.tuning, results)
    return last


def violations(store, run, tuning=None):
    """What the doctor says, but that the made-up engines of these rows are nowhere."""
    found = (str(violation) for violation in check_run(store, run, tuning))
    return [words for words in found if "/engines/" not in words]


def healthy(house, sql):
    run = house.now()
    assert violations(house.store, run, house.tuning) == []
    assert broken(sql) == []
    last = pure(house)
    assert bits(run.theta) == bits(last.theta)
    assert run.state == last.state
    counted = [it.tally for it in house.store.iterations(run.id) if it.purpose is Purpose.TUNE]
    assert house.store.totals(run.id).tally == sum(counted, Tally())
    played = [b for b in house.store.batches(run.id) if b.status is BatchStatus.DONE]
    assert sum(w.games for w in house.store.workers()) == sum(b.games for b in played)
    known = house.tuning.estimates(last.state)
    assert run.estimates == known


def take_turns(store, lie=False):
    """Play all that is free, in turns by a good and a bad machine; the bad one may always say +."""
    ids = {
        name: store.register_worker(new_worker(name, host=name.split("-")[0]))
        for name in (BAD, GOOD)
    }
    names, count = (BAD, GOOD), 0
    while (claim := store.claim(uuid.uuid4().hex, ids[names[count % 2]], LEASE)) is not None:
        result = result_of(claim)
        if lie and count % 2 == 0:
            result = BatchResult(tally=sum([Tally.of_pair(2, 2)] * claim.pairs, Tally()))
        store.report(claim, result)
        count += 1


def stopped_after(rests, meanwhile):
    def then():
        meanwhile()
        if stopping.count == rests:
            stopping.set()

    stopping = Rests(then)
    return stopping


def moved(house, rests=3, lie=True):
    """The run after so many rests of its master, its games played in turns."""
    house.master(stopped_after(rests, lambda: take_turns(house.store, lie))).run()
    return house.now()


def gone_on(house):
    house.master(Rests(lambda: play(house.store))).run()
    return house.now()
