"""Purges among lost answers and everything else that a fleet does."""

from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import replace
from threading import Event

import pytest
from asking import Store
from builders import result_of, stage
from cutting import CutStore
from invariants import broken
from masters import RunUnderTest
from purges import BAD, healthy, moved, violations
from sqlalchemy import event

from spsa.db.purge_queries import Selection
from spsa.errors import DatabaseUnreachable, NothingToDo
from spsa.history.replay import carry_out, plan


@pytest.mark.slow
@pytest.mark.parametrize("cut", ["before", "after"])
def test_a_purge_whose_response_is_lost_is_done_or_not(database_url, sql, cut):
    """It is one transaction: a process that is killed in it leaves nothing behind."""
    store = CutStore(database_url)
    tested = RunUnderTest(store, iterations=6)
    run = moved(tested)
    planned = plan(store, run, tested.tuning, Selection(worker=BAD))
    store.cut_next(cut)
    with pytest.raises(DatabaseUnreachable):
        carry_out(store, tested.tuning, planned, "me", "why")
    assert (store.writes, tested.now() == run) == (store.at, cut == "before")
    again = pytest.raises(NothingToDo) if cut == "after" else nullcontext()
    with again:
        carry_out(store, tested.tuning, planned, "me", "why")
    assert tested.now().purges == 1
    healthy(tested, sql)
    store.close()


@pytest.mark.parametrize("until", ["UPDATE spsa_iteration", "commit"])
def test_a_report_during_a_purge_of_the_same_iteration_counts(database_url, sql, until):
    """It has counted in its batch alone, or in the iteration too, and is not committed yet."""
    with (
        Store(database_url, durable=False) as store,
        Store(database_url, durable=False) as slow,
        ThreadPoolExecutor(2) as pool,
    ):
        run = stage(store)
        run.open()
        first, second = run.claim("first"), run.claim("second")
        store.report(first, result_of(first))
        planned = plan(store, run.now(), None, Selection(batches=((1, 0),)))
        reached, go_on = Event(), Event()

        def waits(*details):
            if until == "commit" or until in details[2]:
                reached.set()
                assert go_on.wait(60)

        name = "commit" if until == "commit" else "before_cursor_execute"
        event.listen(slow._engine, name, waits)
        report = pool.submit(slow.report, second, result_of(second))
        assert reached.wait(60)
        purge = pool.submit(carry_out, store, None, planned, "me", "why")
        wait([purge], 0.5)  # on PostgreSQL it may be done; it may have to wait for the report
        go_on.set()
        assert (report.result(60), purge.result(60).games) == ("accepted", 4)
        (iteration,) = store.iterations(run.run.id)
        assert iteration.tally == result_of(second).tally
        assert broken(sql) == []


@pytest.mark.slow
def test_a_run_of_another_version_of_the_rule_is_one_finding(store, monkeypatch):
    """It moved theta farther; what follows from that is not told parameter by parameter."""
    tested = RunUnderTest(store, iterations=6, algorithm="mixture")
    moved(tested)
    other = replace(tested.tuning, space=replace(tested.tuning.space))
    monkeypatch.setattr("spsa.algorithms.mixture._LONGEST", 0.01)
    (violation,) = violations(store, tested.now(), tested.tuning)
    assert "iteration 1: delta of step k=1, margin: " in violation
    assert "more differ from there on: did another version of the rule" in violation
    monkeypatch.undo()
    assert violations(store, tested.now(), other) == []
