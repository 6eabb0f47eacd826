"""What constraints refuse, and what a master compares before a step."""

import re
from pathlib import Path

import pytest
import sqlalchemy as sa
from builders import result_of, stage, step_from

from spsa.errors import IllegalTransition
from spsa.history.doctor import check_run
from spsa.lifecycle import RunStatus


@pytest.fixture
def run(store):
    """One complete iteration, one with all its games, and one with a batch of two reported."""
    started = stage(store, max_iterations=9)
    started.whole_iteration()
    started.open(in_flight=2)
    started.play()
    started.open(k=3, opened_on=1, in_flight=2)
    claim = started.claim("x")
    store.report(claim, result_of(claim, voids={"crash": 1}))
    return started


def rows(run):
    return run.store.iterations(run.run.id), run.store.batches(run.run.id)


_CASES = Path(__file__).with_name("counts.txt").read_text(encoding="utf-8")
REFUSED, MISCOUNTED = (
    dict(re.findall(r"^(a .*|half .*|more .*)\n {4}(.*)", part, re.MULTILINE))
    for part in _CASES.split("What they do not see")
)


@pytest.mark.parametrize("name", REFUSED)
def test_counts_that_cannot_be_are_refused(run, sql, name):
    before = rows(run)
    with pytest.raises(sa.exc.IntegrityError, match=r"_counts|_costs"):
        sql(REFUSED[name])
    assert rows(run) == before


@pytest.mark.parametrize("name", MISCOUNTED)
def test_no_step_is_made_of_counts_that_are_not_the_sums_over_the_batches(run, sql, name):
    store, before = run.store, run.now()
    played = store.iterations(run.run.id)[1]
    sql(MISCOUNTED[name])
    for _ in range(2):
        with pytest.raises(IllegalTransition, match=r"iteration 2 has .*its batches have"):
            store.apply(run.master, played.id, *step_from(before, played.tally))
        run.view()
    now = run.now()
    assert (now.status, now.applied, now.theta) == (RunStatus.PAUSED, 1, before.theta)
    assert "`spsa-master doctor` shows both" in now.reason
    told = [event.kind for event in store.events(run.run.id)]
    assert told.count("paused") == 1 and "failed" not in told
    assert any(" iteration 2: " in violation for violation in check_run(store, now))


def test_reads_at_one_moment_do_not_see_what_is_written_meanwhile(store):
    run = stage(store)
    run.open(target_games=4)
    with store.at_one_moment() as frozen:
        before = frozen.batches(run.run.id), frozen.run("first")
        store.report(claim := run.claim("x"), result_of(claim))
        store.pause("first", "me", "why")
        assert (frozen.batches(run.run.id), frozen.run("first")) == before
    assert store.batches(run.run.id) != before[0]
    assert store.run("first").status == "paused"
