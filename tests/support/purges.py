"""Runs played by a good and a bad worker, and what has to hold after a purge."""

import struct
import uuid

from builders import LEASE, new_worker, play, result_of
from masters import FakeSleep
from shell import broken

from spsa.core.scoring import Tally
from spsa.history.doctor import check_run
from spsa.history.replay import replay, results_of
from spsa.lifecycle import BatchStatus, Purpose
from spsa.protocol import BatchResult

BAD, GOOD = "bad-1", "good-1"


def bits(values):
    return {name: struct.pack("<d", value) for name, value in values.items()}


def pure(tested, k=None):
    """Theta and the rule's state by the definition: every result that is left, told in order."""
    run = tested.now()
    *_, last = replay(tested.tuning, results_of(tested.store, run, run.applied if k is None else k))
    return last


def violations(store, run, tuning=None):
    """What the doctor says, but that the made-up engines of these rows are nowhere."""
    return [words for words in check_run(store, run, tuning) if "/engines/" not in words]


def healthy(tested, sql):
    run = tested.now()
    assert violations(tested.store, run, tested.tuning) == []
    assert broken(sql) == []
    last = pure(tested)
    assert bits(run.theta) == bits(last.theta)
    assert run.state == last.state
    counted = [it.tally for it in tested.store.iterations(run.id) if it.purpose is Purpose.TUNE]
    assert tested.store.totals(run.id).tally == sum(counted, Tally())
    played = [b for b in tested.store.batches(run.id) if b.status is BatchStatus.DONE]
    assert sum(w.games for w in tested.store.workers()) == sum(b.games for b in played)
    assert run.estimates == last.estimates


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


def moved(tested, sleeps=3, lie=True):
    """The run after its master would have slept so many times, its games played in turns."""
    tested.master(FakeSleep(lambda: take_turns(tested.store, lie), most=sleeps)).run()
    return tested.now()


def gone_on(tested):
    tested.master(FakeSleep(lambda: play(tested.store))).run()
    return tested.now()
