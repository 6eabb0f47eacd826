"""The protocol under any order of calls: on both databases, by workers of both kinds.

The short form takes seconds; SPSA_TEST_LONG=1 searches through 1,000 histories each way,
SPSA_TEST_EXAMPLES=n through n, and SPSA_TEST_SEED=n repeats a search.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from cutting import CutStore
from hypothesis import HealthCheck, settings
from hypothesis import seed as seeded
from hypothesis.stateful import run_state_machine_as_test
from protocol_machine import Place, ProtocolMachine
from protocol_stories import STORIES, tell
from served import serving
from shell import Shell

from spsa.db import base

LONG = bool(os.environ.get("SPSA_TEST_LONG"))
SEED = os.environ.get("SPSA_TEST_SEED")
EXAMPLES = int(os.environ.get("SPSA_TEST_EXAMPLES", 1_000 if LONG else 6))
SEARCH = settings(
    max_examples=EXAMPLES,
    stateful_step_count=60,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def database(shared_database_url: str) -> Iterator[Place]:
    with CutStore(shared_database_url) as store:
        shell = Shell(shared_database_url)
        yield Place(store, shell)
        shell.close()


@pytest.fixture(scope="module", params=["direct", "remote"])
def place(request: pytest.FixtureRequest, database: Place) -> Iterator[Place]:
    if request.param == "direct":
        yield database
    else:
        with serving(database.store) as url:
            yield Place(database.store, database.sql, url)


def machine_at(place: Place) -> type[ProtocolMachine]:
    """The model in a place; a class of its own, because a seed sticks to it."""
    chosen = type("Chosen", (ProtocolMachine,), {"place": place})
    return chosen if SEED is None else seeded(int(SEED))(chosen)


@pytest.mark.timeout(max(300, 6 * EXAMPLES))
def test_any_history_leaves_the_database_as_it_should_be(place: Place) -> None:
    run_state_machine_as_test(machine_at(place), settings=SEARCH)


@pytest.mark.slow_on("direct-postgresql")
@pytest.mark.slow_on("remote-sqlite")
@pytest.mark.parametrize("story", STORIES)
def test_a_story_goes_as_it_should(story: str, place: Place) -> None:
    tell(machine_at(place), STORIES[story])


REPEATED = "a report is repeated, and a lie"
DEFECTS = {
    "a report that comes twice counts twice": (
        "report",
        "AND worker_id = :worker_id AND status = 'leased'",
        "AND worker_id = :worker_id AND status IN ('leased', 'done')",
        REPEATED,
    ),
    "any claim may report a batch": ("report", "AND claim_id = :claim_id", "", "a late report"),
    "any worker may report a claim": ("report", "AND worker_id = :worker_id", "", "forged"),
    "a report may have another number of games": ("report", "AND games = :games", "", "forged"),
    "void games are written, not added": (
        "report",
        "void_games + :void_games",
        ":void_games",
        "void games of attempts add up",
    ),
    "an iteration has the counts of the last report": (
        "report.count",
        "plus_wins = plus_wins + :plus_wins",
        "plus_wins = :plus_wins",
        "two workers, no more work",
    ),
    "a report counts in an iteration that was abandoned": (
        "report.count",
        "AND status = 'in_progress'",
        "",
        "the owner stops it",
    ),
    "another result of a claim is the same": ("report.again", "'conflict'", "'already'", REPEATED),
    "a lease that has not expired is free": (
        "claim.tried",
        "AND b.lease_expires_at < spsa_time(0)",
        "",
        "a released machine may try again",
    ),
    "a lease is no lease": (
        "claim.tried",
        "b.lease_expires_at < ",
        "b.lease_expires_at >= ",
        "a late report",
    ),
    "a batch is given up for as long as no machine failed it": (
        "exhausted",
        "AND NOT (",
        "AND (",
        "all machines that are there break a batch",
    ),
    "one claim gets two batches": (
        "claim",
        "AND NOT EXISTS (SELECT 1 FROM spsa_batch c WHERE c.claim_id = :claim_id)",
        "",
        "a response is lost",
    ),
    "a claim is no attempt": ("claim", "attempt = attempt + 1,", "", "a claim is given back"),
    "an expired lease is forgotten": (
        "claim.tried",
        "CASE WHEN status = 'leased' THEN worker_id END",
        "NULL",
        "every machine dies of a batch",
    ),
    "a machine that failed a batch gets it again": (
        "claim.tried",
        "f.failures > 0",
        "1 = 0",
        "a released machine may try again",
    ),
    "a paused run is served": (
        "claim.iterations",
        "r.status = 'running'",
        "1 = 1",
        "the owner pauses it",
    ),
    "a revoked machine is served": (
        "claim.iterations",
        "m.revoked_at IS NOT NULL",
        "1 = 0",
        "a machine is revoked",
    ),
    "an abandoned iteration is renewed": (
        "renew",
        "AND i.status = 'in_progress'",
        "",
        "the owner stops it",
    ),
    "any worker renews any claim": (
        "renew",
        "AND worker_id = :worker_id",
        "",
        "a machine is revoked",
    ),
    "who had a batch before may return it": ("give_back", "AND claim_id = :claim_id", "", "forged"),
    "a batch that is given back keeps the attempt": (
        "give_back",
        "attempt = attempt - :attempts,",
        "",
        "a claim is given back",
    ),
    "a withdrawn batch keeps its claim": (
        "withdraw",
        "claim_id = NULL, ",
        "",
        "a purge while others play",
    ),
    "a purged result is never played again": (
        "purge.again",
        "i.status IN ('pending', 'in_progress')",
        "1 = 0",
        "a result is purged and played again",
    ),
    "a failed batch stays tried after a resume": (
        "resume",
        "attempt = 0",
        "attempt = attempt",
        "three machines break a batch",
    ),
    "the second failure of a machine is not counted": (
        "fail.machine",
        "spsa_failure.failures + EXCLUDED.failures",
        "spsa_failure.failures",
        "all but one are set aside",
    ),
}
"""A statement of protocol.sql, a part of it, what stands there instead, and who finds it."""


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_story_finds_a_defect(
    defect: str, sqlite_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, old, new, story = DEFECTS[defect]
    text = base._expanded(base._texts()["name", name])
    assert old in text, text
    mutated = {**base._texts(), ("name", name): text.replace(old, new)}
    monkeypatch.setattr(base, "_texts", lambda: mutated)
    url = f"sqlite:///{shutil.copy(sqlite_template, tmp_path / 'spsa.db')}"
    base._statement.cache_clear()
    try:
        with CutStore(url) as store, closing(Shell(url)) as shell, pytest.raises(AssertionError):
            tell(machine_at(Place(store, shell)), STORIES[story])
    finally:
        base._statement.cache_clear()
