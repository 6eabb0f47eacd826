"""A worker's verbs, what is kept of a batch, which machine is given which, and who a machine is.

`test_protocol_model` has what may be claimed, what counts and how often a batch is tried.
"""

import hashlib
import json
from dataclasses import replace

import pytest
from builders import LEASE, TERMS, new_engine, new_iteration, result_of, stage
from invariants import broken
from transcripts import headings

from spsa.core.game_settings import Book, EngineFile
from spsa.lifecycle import IterationStatus, MachineRole

COSTS = {
    "plus_nodes": 11,
    "minus_nodes": 12,
    "moves": 13,
    "plus_time_losses": 1,
    "minus_time_losses": 2,
    "seconds": 1.5,
    "think_seconds": 1.25,
    "slot": 3,
}
PLUS, MINUS = new_engine("plus").sha256, new_engine("minus").sha256
WORDS = {"plus": PLUS, "minus": MINUS, "other": "a" * 64, "long": "x" * 201}


@pytest.mark.parametrize("heading", headings(__file__))
def test_what_workers_and_their_owners_do(heading, story, sql):
    story(heading, **WORDS, unprintable="a\x1b[31m")
    assert broken(sql) == []


def iteration(run):
    return run.store.iterations(run.run.id)[-1]


def test_a_claim_says_all_that_has_to_be_played(store):
    run = stage(store)
    run.open()
    assert iteration(run).status is IterationStatus.PENDING
    claim, second, new = run.claim("a"), run.claim("b"), new_iteration()
    assert iteration(run).status is IterationStatus.IN_PROGRESS
    assert [(c.seq, c.attempt, c.first_pair, c.pairs) for c in (claim, second)] == [
        (0, 1, 0, 2),
        (1, 1, 2, 2),
    ]
    assert (claim.run_name, claim.run_seed, claim.iteration_number) == ("first", 42, 1)
    plus, minus = new.sides.plus, new.sides.minus
    assert (claim.plus.sha256, claim.plus.path) == (plus.engine.sha256, plus.engine.path)
    assert (claim.plus.options, claim.minus.options) == (plus.options, minus.options)
    assert claim.game_settings == new.row.game_settings
    assert claim.lease_seconds == LEASE


def test_a_batch_keeps_what_its_games_have_cost(store, sql):
    run = stage(store)
    run.open(batches=[4], target_games=4)
    claim = run.claim("a")
    run.store.report(claim, result_of(claim, voids={"crash": 2, "hang": 1}, **COSTS))
    (row,) = sql("SELECT * FROM spsa_batch")
    kept = row._mapping
    assert {name: kept[name] for name in COSTS} == COSTS
    voids = kept["voids"]
    assert (json.loads(voids) if isinstance(voids, str) else voids) == {"crash": 2, "hang": 1}
    assert (kept["void_games"], kept["worker_id"]) == (3, run.worker.id)
    assert kept["claim_id"] == claim.claim_id
    assert kept["leased_at"] <= kept["reported_at"] <= kept["lease_expires_at"]


def test_of_a_token_only_the_hash_is_kept(store, sql):
    token = store.invite_machine("far", MachineRole.WORKER, "me")
    assert (token[:5], len(token)) == ("spsa_", 48)
    (row,) = sql("SELECT * FROM spsa_machine")
    assert token not in str(row) and hashlib.sha256(token.encode()).hexdigest() in str(row)


BOOK, NET = hashlib.sha256(b"book").hexdigest(), hashlib.sha256(b"net").hexdigest()


def test_a_machine_is_given_the_files_of_its_own_claims_alone(store):
    """Of plus and minus, also for other kinds and of one side, of the book and the side files."""
    on = stage(store)
    settings = replace(
        TERMS,
        book=Book(name="/books/a.epd", sha256=BOOK),
        engine_files={"EvalFile": EngineFile(path="/nets/a.nnue", sha256=NET)},
    )
    third, fourth, own, other = (new_engine(name) for name in ("third", "fourth", "own", "other"))
    files = {"plus_files": {"EvalFile": own}, "minus_files": {"EvalFile": other}}
    on.open(game_settings=settings, variants={"x86-64-v3": (third, fourth)}, **files)
    names = {PLUS, MINUS, BOOK, NET, *(one.sha256 for one in (third, fourth, own, other))}

    def given(machine):
        asked = (*names, "", "0" * 64)
        return {name for name in asked if store.place_of(machine, name) is not None}

    assert given("machine") == set()
    claim = on.claim("c")
    assert given("machine") == names
    assert given("another") == set()
    store.release(claim)
    assert given("machine") == set()
    on.claim("d")
    store.stop("first", "me", "enough")
    assert given("machine") == set(), "its iteration is abandoned"
