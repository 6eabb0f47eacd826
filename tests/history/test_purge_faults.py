"""Purges among deaths, lost answers and everything else that a fleet does.

SPSA_TEST_LONG=1 searches through more histories, SPSA_TEST_SEED=n repeats a search.
"""

import os
import signal
import sys
from dataclasses import replace
from itertools import count
from random import Random

import pytest
from cutting import cut_store
from hypothesis import HealthCheck, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test
from invariants import broken
from masters import RunUnderTest
from protocol import CUTS, OPEN, Plan, Protocol, refuse
from purges import BAD, healthy, moved, violations
from sqlalchemy import event

from spsa.core.estimates import NOTHING_KNOWN
from spsa.core.scoring import Tally
from spsa.db.store import NewPurge, PurgeVerdict, Selection, open_store
from spsa.errors import DatabaseUnreachable, IllegalTransition, NothingToDo
from spsa.history.purge import carry_out, plan
from spsa.master.session import tuning_of

LONG = bool(os.environ.get("SPSA_TEST_LONG"))
SEED = os.environ.get("SPSA_TEST_SEED")


def purge_and_die(url, statement):
    """A purge whose process is killed just before it says its statement of this number."""
    with open_store(url, durable=False) as store:
        run = store.run("tested")
        tuning = tuning_of(run)
        planned = plan(store, run, tuning, Selection(worker=BAD))
        said = count(1)

        @event.listens_for(store._engine, "before_cursor_execute")
        def _(*_: object) -> None:
            if next(said) == statement:
                os.kill(os.getpid(), signal.SIGKILL)

        carry_out(store, tuning, planned, "me", "why")


def exit_code(url, statement):
    """What becomes of such a purge in a process of its own."""
    child = os.fork()
    if child == 0:
        try:
            purge_and_die(url, statement)
        finally:
            os._exit(sys.exc_info()[0] is not None)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.slow
def test_killed_before_any_of_its_statements_a_purge_is_done_or_not(store, database_url, sql):
    tested = RunUnderTest(store, iterations=6)
    before = moved(tested)
    games = len(store.matching(before.id, Selection(worker=BAD)))
    deaths = 0
    for statement in count(1):
        ended = exit_code(database_url, statement)
        if ended == 0:
            break
        assert ended == -signal.SIGKILL
        deaths += 1
        assert tested.now() == before
        assert len(store.matching(before.id, Selection(worker=BAD))) == games
        assert broken(sql) == []
    assert deaths > 10
    assert tested.now().purges == 1
    healthy(tested, sql)


@pytest.mark.slow
@pytest.mark.parametrize("cut", ["before", "after"])
def test_a_lost_answer_is_asked_for_again(database_url, sql, cut):
    store = cut_store(database_url)
    tested = RunUnderTest(store, iterations=6)
    run = moved(tested)
    planned = plan(store, run, tested.tuning, Selection(worker=BAD))
    store.cut_next(cut)
    with pytest.raises(DatabaseUnreachable):
        carry_out(store, tested.tuning, planned, "me", "why")
    done = carry_out(store, tested.tuning, planned, "me", "why")
    assert (done.number, tested.now().purges) == (1, 1)
    healthy(tested, sql)
    store.close()


class Purged(Protocol):
    """The protocol, with an owner who purges what any of the workers has reported."""

    def __init__(self):
        super().__init__()
        self.purged = 0

    @rule(chance=st.integers(0, (1 << 64) - 1))
    def an_owner_purges(self, chance):
        """Now and then; what else happens has to get somewhere."""
        dice = Random(chance)
        if dice.random() < 0.3:
            self.purge(dice.randrange(1 << 16), dice.choice(CUTS))

    def purge(self, pick, cut=None):
        """One result, or all of an iteration, decided on now; theta is made up."""
        if not self.iterations:
            return
        iteration = self.iterations[pick % len(self.iterations)]
        selected = [b for b in iteration.batches if pick % 3 == 0 or b.seq == pick % 2]
        hit = [batch for batch in selected if batch.status == "done"]
        places = tuple((batch.iteration.k, batch.seq) for batch in selected)
        new = self._new(Selection(batches=places), iteration, hit)
        plan = Plan(effect=lambda: self._purge_again(iteration, selected, new))
        self.do(
            lambda: self.store.purge(self.run_id, new), plan if hit else refuse(NothingToDo), cut
        )

    def _new(self, selection, iteration, hit):
        applied = iteration.status == "complete" and bool(hit)
        (row,) = (i for i in self.store.iterations(self.run_id) if i.k == iteration.k)
        verdicts = {row.id: PurgeVerdict(gradient=None, elo=None)} if applied else {}
        theta = {name: x + 1.0 for name, x in self.theta.items()} if applied else self.theta
        return NewPurge(
            selection=selection,
            actor="me",
            reason=f"purge {self.purged}",
            purges=self.purged,
            applied=self.applied,
            theta_before=self.theta,
            theta_after=theta,
            estimates=NOTHING_KNOWN,
            state={"purged": self.purged},
            verdicts=verdicts,
        )

    def _purge_again(self, iteration, selected, new):
        is_open = iteration.status in OPEN
        for batch in selected:
            if batch.status == "done":
                batch.left("ready" if is_open else "purged", batch.attempt - is_open)
                batch.iteration.voids -= batch.voids
                batch.tally, batch.voids = Tally(), 0
            elif batch.status == "leased" and is_open:
                batch.left("ready", batch.attempt - 1)
        self.theta, self.purged = new.theta_after, self.purged + 1

    def _planned_step(self, name, view, k, step):
        planned = super()._planned_step(name, view, k, step)
        stale = view.run.purges != self.purged
        return refuse(IllegalTransition) if stale and planned.error is None else planned

    def _planned_opening(self, name, k, opened_on):
        planned = super()._planned_opening(name, k, opened_on)
        stale = self.views[name].run.purges != self.purged and k > len(self.iterations)
        return refuse(IllegalTransition) if stale and planned.error is None else planned


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_any_history_with_purges_leaves_the_database_as_it_should_be(sqlite_template):
    machine = type("Chosen", (Purged,), {"template": sqlite_template})
    search = settings(
        max_examples=1000 if LONG else 10,
        stateful_step_count=60,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    chosen = machine if SEED is None else seeded(int(SEED))(machine)
    run_state_machine_as_test(chosen, settings=search)


@pytest.mark.slow
def test_a_run_of_another_version_of_the_rule_is_one_finding(store, monkeypatch):
    """It moved theta farther; what follows from that is not told parameter by parameter."""
    tested = RunUnderTest(store, iterations=6, algorithm="mixture")
    moved(tested)
    other = replace(tested.tuning, space=replace(tested.tuning.space))
    monkeypatch.setattr("spsa.algorithms.mixture._LONGEST", 0.01)
    (violation,) = violations(store, tested.now(), tested.tuning)
    assert "iteration 1: delta of step k=1 has margin = " in violation
    assert "more differ from there on, theta in the end by up to " in violation
    assert "another version of the rule" in violation
    planned = plan(store, tested.now(), tested.tuning, Selection(worker=BAD))
    assert planned.drift > 0.01
    monkeypatch.undo()
    assert violations(store, tested.now(), other) == []
    assert plan(store, tested.now(), tested.tuning, Selection(worker=BAD)).drift == 0.0
