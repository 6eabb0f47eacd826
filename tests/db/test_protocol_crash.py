"""A small run, cut off at every statement, and before and after every commit: the end is the same.

Twice: by somebody who asks again with the same identifiers, and by somebody who died, knows nothing
any more and starts from what the database says. The short form leaves most points out, by
SPSA_TEST_SEED; SPSA_TEST_LONG=1 takes them all.
"""

import pytest
from builders import LEASE, new_iteration, new_run, new_worker, result_of, step_from
from cutting import cut_store, statement_cut_store
from invariants import broken
from processes import LONG, SEED

from spsa.errors import DatabaseUnreachable, IllegalTransition
from spsa.lifecycle import RunStatus

ITERATIONS = 2
EVERY_WRITE, EVERY = (1, 1) if LONG else (3, 9)


class FleetWorker:
    """Plays a run to its end, each call as often as it takes.

    `dies` at the cut: the rest of what it was doing is forgotten, and its leases run out.
    """

    def __init__(self, store, sql, name, dies):
        self.store, self.sql, self.name, self.dies = store, sql, name, dies
        self.lives = self.claims = 0

    def insist(self, call):
        try:
            return call()
        except DatabaseUnreachable:
            if self.dies:
                raise
            return call()

    def play(self):
        while True:
            try:
                return self._life()
            except DatabaseUnreachable:
                self.lives += 1
                self.sql("UPDATE spsa_batch SET lease_expires_at = '2000-01-01T00:00:00+00:00'")

    def _life(self):
        run = self.store.find_run(self.name) or self.insist(self._create)
        master = self.insist(lambda: self.store.acquire_master_lease(run.id, "m1", LEASE))
        worker = self.insist(lambda: self.store.register_worker(new_worker()))
        while True:
            view = self.insist(lambda: self.store.tick(master, LEASE))
            if view.run.status is RunStatus.FINISHED:
                return
            self._move(master, view)
            self._work(worker)

    def _create(self):
        try:
            return self.store.create_run(new_run(name=self.name, max_iterations=ITERATIONS))
        except IllegalTransition:
            return self.store.run(self.name)

    def _move(self, master, view):
        run = view.run
        try:
            if view.opened < ITERATIONS and not view.open:
                new = new_iteration(k=view.opened + 1, opened_on=run.applied, max_attempts=9)
                self.insist(lambda: self.store.open_iteration(master, new))
            elif view.open and view.open[0].is_played:
                step = step_from(run, view.open[0].tally)
                self.insist(lambda: self.store.apply(master, view.open[0].id, step))
            elif not view.open:
                self.insist(lambda: self.store.finish(master))
        except IllegalTransition:
            return  # it was done: the next look will tell

    def _work(self, worker):
        """All that is free, at most two batches."""
        for _ in range(2):
            self.claims += 1
            claim_id = f"{self.name} {self.lives} {self.claims}"
            claim = self.insist(lambda c=claim_id: self.store.claim(c, worker, LEASE))
            if claim is None:
                return
            if claim.seq == 0:
                self.insist(lambda c=claim_id: self.store.renew([c], LEASE))
            self.insist(lambda c=claim: self.store.report(c, result_of(c)))


def outcome(store, name):
    """All that may not depend on what went wrong on the way."""
    run = store.run(name)
    return (
        (run.status, run.theta, run.state, run.applied),
        [(s.k, s.theta_before, s.delta, s.theta_after) for s in store.steps(run.id)],
        [(i.k, i.status, i.tally, i.elo_diff) for i in store.iterations(run.id)],
        [
            (b.iteration_number, b.seq, b.status, b.seed, b.first_pair, b.tally)
            for b in store.batches(run.id)
        ],
    )


def played(store, sql, name, dies=False):
    player = FleetWorker(store, sql, name, dies)
    player.play()
    store.at = None  # what is asked below is for the test's own eyes
    return outcome(store, name)


@pytest.mark.slow
@pytest.mark.parametrize("dies", [False, True], ids=["asks again", "starts anew"])
@pytest.mark.parametrize("cut", ["before", "after"])
def test_cut_off_anywhere_the_run_ends_the_same(database_url, sql, figures, cut, dies):
    with cut_store(database_url) as store:
        undisturbed = played(store, sql, "undisturbed")
        assert undisturbed[0][3] == ITERATIONS
        writes = store.writes
        assert writes > 15
        points = range(1 + SEED % EVERY_WRITE, writes + 1, EVERY_WRITE)
        for at in points:
            store.writes, store.at, store.cut = 0, at, cut
            assert played(store, sql, f"cut at {at}", dies) == undisturbed, at
        assert broken(sql) == []
        figures(points=len(points))


@pytest.mark.slow
@pytest.mark.parametrize("dies", [False, True], ids=["asks again", "starts anew"])
def test_without_any_one_statement_the_run_ends_the_same(database_url, sql, figures, dies):
    with statement_cut_store(database_url) as store:
        FleetWorker(store, sql, "undisturbed", dies).play()
        statements, undisturbed = store.statements, outcome(store, "undisturbed")
        assert statements > 60
        points = range(1 + SEED % EVERY, statements + 1, EVERY)
        for at in points:
            store.statements, store.at = 0, at
            assert played(store, sql, f"cut at {at}", dies) == undisturbed, at
        assert broken(sql) == []
        figures(points=len(points))
