"""The protocol under any order of calls, and a proof that the search finds bugs.

The short form takes seconds; SPSA_TEST_EXAMPLES=n searches through n histories instead (20,000 is a
good night), SPSA_TEST_LONG=1 is 2,000, and SPSA_TEST_SEED=n repeats a search.
"""

import inspect
import os
import types

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import seed as seeded
from hypothesis.stateful import run_state_machine_as_test
from protocol import Protocol
from sqlalchemy.exc import SQLAlchemyError

from spsa.store import (
    claims,
    database,
    exchange,
    mastership,
    moves,
    opening,
    reports,
    runs,
    turns,
    view,
)

LONG = 2_000 if os.environ.get("SPSA_TEST_LONG") else 25
EXAMPLES = int(os.environ.get("SPSA_TEST_EXAMPLES", LONG))
SEED = os.environ.get("SPSA_TEST_SEED")
SEARCH = settings(
    max_examples=EXAMPLES,
    stateful_step_count=60,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture
def machine(sqlite_template):
    """The model, over copies of a migrated database; a class of its own, as a seed sticks to it."""
    chosen = type("Chosen", (Protocol,), {"template": sqlite_template})
    return chosen if SEED is None else seeded(int(SEED))(chosen)


@pytest.mark.timeout(max(300, EXAMPLES))
def test_any_history_leaves_the_database_as_it_should_be(machine):
    run_state_machine_as_test(machine, settings=SEARCH)


# name -> the module, its right words, and the wrong ones. What a constraint of the database refuses
# as well (half an iteration applied, a result applied twice) is no bug that a call could show.
BUGS = {
    "anybody may report": (
        reports,
        "        batches.c.claim_id == claim_id,\n        status == BatchStatus.LEASED",
        "        status == BatchStatus.LEASED",
    ),
    "a report needs no status": (
        reports,
        "        status == BatchStatus.LEASED,  # what was reported is a purge's to hand"
        " out again\n        may_become(status, BATCH, to),\n",
        "",
    ),
    "a report is counted twice": (
        exchange,
        "                reports.count(connection, iteration_id, counted[iteration_id])\n",
        "                reports.count(connection, iteration_id, counted[iteration_id])\n" * 2,
    ),
    "a report that is refused is counted": (
        exchange,
        "    if iteration_id is None:\n",
        "    if iteration_id is None:\n        counted[claim.iteration_id] += result\n",
    ),
    "two claims get one batch": (
        claims,
        '"p_claim_id": wanted.popleft()',
        '"p_claim_id": wanted[0]',
    ),
    "an iteration does not begin": (
        exchange,
        "            for iteration_id in sorted(begun):\n",
        "            for iteration_id in ():\n",
    ),
    "an abandoned iteration counts": (
        reports,
        "        .where(IS_BEING_PLAYED)\n",
        "",
    ),
    "a live lease is handed on": (
        claims,
        "sa.and_(IS_LEASED, batches.c.lease_expires_at < seconds_from_now(0))",
        "IS_LEASED",
    ),
    "an expired lease is kept": (
        claims,
        "batches.c.lease_expires_at < seconds_from_now(0)",
        "batches.c.lease_expires_at < seconds_from_now(-7200)",
    ),
    "attempts have no end": (
        claims,
        "            batches.c.attempt < batches.c.max_attempts,\n",
        "",
    ),
    "asking again takes another batch": (
        exchange,
        "wanted = claims.unanswered(connection, claim_ids)",
        "wanted = list(claim_ids)",
    ),
    "a release costs an attempt": (
        reports,
        "attempt=batches.c.attempt - 1",
        "attempt=batches.c.attempt",
    ),
    "a paused run hands out work": (
        turns,
        "runs.c.status == RunStatus.RUNNING,\n        and_",
        "runs.c.status != RunStatus.STOPPED,\n        and_",
    ),
    "a failed batch pauses nothing": (
        reports,
        "if row.status == BatchStatus.FAILED:",
        "if row.status == BatchStatus.DONE:",
    ),
    "an abandoned batch is renewed": (
        claims,
        ", IS_BEING_PLAYED)",
        ")",
    ),
    "a failed batch stays with its last holder": (
        view,
        "            claim_id=None,\n            lease_expires_at=None,\n            last_error",
        "            last_error",
    ),
    "two masters lead": (
        mastership,
        "                runs.c.epoch == mastership.epoch,\n"
        "                runs.c.master_id == mastership.master_id,\n",
        "",
    ),
    "a live mastership is taken": (
        mastership,
        "runs.c.lease_expires_at < seconds_from_now(0)",
        "runs.c.lease_expires_at > seconds_from_now(0)",
    ),
    "an epoch comes twice": (mastership, "epoch=runs.c.epoch + 1", "epoch=runs.c.epoch"),
    "any iteration is applied": (
        moves,
        "            iterations.c.k.is_not_distinct_from(k),\n",
        "",
    ),
    "theta moves and the log does not": (
        moves,
        '"theta": dict(step.theta_after),',
        '"theta": dict(step.delta),',
    ),
    "an iteration is opened on too few results": (
        moves,
        "if not max(0, new.k - new.in_flight) <= new.opened_on <= run.applied:",
        "if new.opened_on > run.applied:",
    ),
    "a stopped run is opened": (moves, "if run.status != RunStatus.RUNNING:", "if False:"),
    "one k is opened twice": (moves, "if known is not None:", "if False:"),
    "a stop leaves iterations open": (
        runs,
        "may_become(iterations.c.status, ITERATION, IterationStatus.ABANDONED)",
        "may_become(iterations.c.status, ITERATION, IterationStatus.COMPLETE)",
    ),
    "batches share a seed": (opening, '"batch", number, seq)', '"batch", seq)'),
}


# m1 leads and iteration 1 is open; then, word by word: who does it, or to which of the last claims
STORIES = {
    "a claim is given back": "claim release claim report",
    "a batch breaks for good": "claim fail claim fail:1 claim fail:2 claim look resume claim",
    "a zombie comes back": "claim a_lease_runs_out claim report report:1 report report:1",
    "everybody dies of a batch": "claim a_lease_runs_out claim a_lease_runs_out:1 claim"
    " a_lease_runs_out:2 claim look release:2 fail:2 report:2 renew look",
    "a report is repeated, and a lie": "claim report report lie ask_again",
    "an answer is lost": "claim:0/after ask_again ask_again report:0/after report",
    "a question is lost": "claim:0/before ask_again report:0/before report",
    "handed in and taken out": "exchange exchange:1 exchange:1 report look",
    "an exchange is lost": "exchange:0/before exchange exchange:0/after ask_again report exchange",
    "a zombie hands in": "claim a_lease_runs_out exchange exchange look",
    "nothing but what is refused": "claim stop exchange report look",
    "the owner stops it": "claim claim play stop report renew claim look apply open",
    "the owner stops it before anybody came": "stop claim look open",
    "it is stopped while engines are built": "look stop open",
    "the owner pauses it": "claim pause report claim renew resume claim",
    "two workers, no more work": "claim claim claim report report:1 claim",
    "a hasty master": "play look apply_in_haste play look apply_in_haste apply",
    "results come in the wrong order": "move play play play play look apply_in_haste apply",
    "a step is lost and done again": "look play play look apply:0/before apply:0/after apply move",
    "an opening is lost and done again": "open look open:0/after open look open",
    "a build takes too long": "look play play look apply open look open",
    "two masters": "look become_master:2 the_mastership_runs_out become_master:2 look open move:2",
    "a master comes back": "become_master look resign become_master:2 look look:2 open:2",
    "the whole run": "move play play play play move move play play play play move move finish",
}


def tell(machine, story):
    """Play a story; `act:pick/cut` are the words."""
    told = machine()
    try:
        told.begin()
        for word in story.split():
            act, _, how = word.partition(":")
            pick, _, cut = how.partition("/")
            getattr(told, act)(int(pick or 0), cut or None)
            told.the_database_is_the_model()
            told.every_count_is_right()
    finally:
        told.teardown()


@pytest.mark.parametrize("story", STORIES)
def test_a_story_goes_as_it_should(story, machine):
    tell(machine, STORIES[story])


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_spoils_a_story(bug, machine, monkeypatch):
    seed_in(monkeypatch, *BUGS[bug])
    assert any(_is_spoiled(machine, story) for story in STORIES.values())


def _is_spoiled(machine, story):
    try:
        tell(machine, story)
    except (AssertionError, SQLAlchemyError):
        return True
    return False


def seed_in(monkeypatch, module, right, wrong):
    """Replace everything that a module defines by the same with other words in one place."""
    source = inspect.getsource(module)
    assert source.count(right) >= 1, "this bug no longer fits the code"
    broken = types.ModuleType(module.__name__)
    exec(source.replace(right, wrong, 1), broken.__dict__)
    for name, value in vars(broken).items():
        if isinstance(value, types.FunctionType) and hasattr(module, name):
            monkeypatch.setattr(module, name, value)
        elif isinstance(value, type) and issubclass(value, database.Database):
            original = getattr(module, name)
            for method in vars(value):
                if isinstance(vars(original).get(method), types.FunctionType):
                    monkeypatch.setattr(original, method, vars(value)[method])
