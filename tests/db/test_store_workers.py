"""A worker's verbs, what is kept of a batch, which machine is given which, and who a machine is.

`test_protocol_model` has what may be claimed, what counts and how often a batch is tried.
"""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from builders import LEASE, TERMS, new_engine, new_worker, stage
from shell import broken
from transcripts import headings

from spsa.core.game_settings import Book, HashedFile
from spsa.errors import IllegalTransition
from spsa.lifecycle import RunStatus
from spsa.master.decide import Pause, upkeep
from spsa.protocol import Failure

PLUS, MINUS = new_engine("plus").sha256, new_engine("minus").sha256
WORDS = {"plus": PLUS, "minus": MINUS, "other": "a" * 64, "long": "x" * 201}


@pytest.mark.parametrize("heading", headings(__file__))
def test_what_workers_and_their_owners_do(heading, story, sql):
    story(heading, **WORDS, unprintable="a\x1b[31m")
    assert broken(sql) == []


BOOK, NET = hashlib.sha256(b"book").hexdigest(), hashlib.sha256(b"net").hexdigest()


def test_a_machine_is_given_the_files_of_its_own_claims_alone(store):
    """Of plus and minus, also for other kinds and of one side, of the book and the side files."""
    on = stage(store)
    settings = replace(
        TERMS,
        book=Book(name="/books/a.epd", sha256=BOOK),
        engine_files={"EvalFile": HashedFile(path="/nets/a.nnue", sha256=NET)},
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
    binaries = Path(claim.plus.path).parent
    assert store.place_of("machine", BOOK) == str(binaries / BOOK), "which stays as the run began"
    assert given("another") == set()
    store.release(claim)
    assert given("machine") == set()
    on.claim("d")
    store.stop("first", "me", "enough")
    assert given("machine") == set(), "its iteration is abandoned"


def test_a_run_is_paused_only_for_the_obstacles_that_its_master_saw(store):
    on = stage(store)
    on.open(max_attempts=1)
    store.fail(on.claim("c"), Failure(reason="no book"))
    seen = store.tick(on.master, LEASE)
    needed = upkeep(seen)
    assert isinstance(needed, Pause)
    another = store.register_worker(new_worker("late", host="another"))
    with pytest.raises(IllegalTransition, match="other obstacles"):
        store.pause_at_obstacles(on.master, seen, needed.reasons, needed.batch_ids)
    assert on.now().status is RunStatus.RUNNING and upkeep(on.view()) is None
    store.fail(store.claim("d", another, LEASE), Failure(reason="no book either"))
    assert on.view().run.reason == "iteration 1 batch 0: no book either (tried by 2 machines)"
