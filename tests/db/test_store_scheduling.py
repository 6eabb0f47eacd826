"""Which batch the next claim gets: by priority, share and age of runs, and by the worker."""

import random
from collections import Counter

import pytest
import sqlalchemy as sa
from builders import result_of
from stories import Story
from transcripts import headings

from spsa.db.url import parse_url

PLAYED = 120
PLENTY = 160  # batches


@pytest.mark.parametrize("heading", headings(__file__))
def test_what_is_played_next(heading, story):
    story(heading)


@pytest.fixture
def runs(store, sql):
    """A worker of many slots, and the runs that a test opens."""
    made = Story(store, sql)
    made.here("w", concurrency=16)
    return made


def slots_held(runs, slots, claims, seconds):
    """The mean number of slots of each run while a fleet plays so many batches.

    `seconds` is how long a batch of a run takes: the next slot to fall free is drawn by it.
    """
    chance = random.Random(1)
    playing = [runs.claimed("w") for _ in range(slots)]
    held = Counter()
    for _ in range(claims):
        rates = [1 / seconds.get(claim.run_name, 1.0) for claim in playing]
        lasted = 1 / sum(rates)
        for claim in playing:
            held[claim.run_name] += lasted
        done = chance.choices(range(slots), rates)[0]
        runs.store.report(playing[done], result_of(playing[done]))
        playing[done] = runs.claimed("w")
    return {name: slots * time / held.total() for name, time in held.items()}


SHARES = [
    pytest.param(8, {"a": 3.0, "b": 1.0}, {"b": 10.0}, 0.35, id="games of other lengths"),
    pytest.param(2, {"a": 1.0, "b": 1.0, "c": 1.0}, {}, 0.2, id="more runs than slots"),
    pytest.param(1, {"a": 3.0, "b": 1.0}, {}, 0.1, id="one slot"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("slots", "shares", "seconds", "tolerance"), SHARES)
def test_runs_of_one_priority_have_their_shares_of_the_slots(
    runs, slots, shares, seconds, tolerance
):
    runs.run("of lower priority", share=9.0, priority=-1)
    for name, share in shares.items():
        runs.run(name, share=share)
    for name in ("of lower priority", *shares):
        runs.open(name, batches=PLENTY, games=2)
    held = slots_held(runs, slots, PLAYED, seconds)
    due = {name: slots * share / sum(shares.values()) for name, share in shares.items()}
    assert held == pytest.approx(due, abs=tolerance)


def test_where_others_are_taking_all_of_one_run_the_next_one_is_served(runs, database_url):
    if runs.store.is_file:
        return  # one writer at a time: nobody ever finds a row locked
    runs.open("low", batches=1)
    runs.run("high", priority=1)
    runs.open("high")
    engine = sa.create_engine(parse_url(database_url))
    with engine.begin() as other:
        other.execute(
            sa.text(
                "SELECT b.id FROM spsa_batch b JOIN spsa_iteration i ON i.id = b.iteration_id"
                " JOIN spsa_run r ON r.id = i.run_id WHERE r.name = 'high' FOR UPDATE OF b"
            )
        )
        assert runs.takes("w", 2) == "low nothing"
    assert runs.takes("w", 1) == "high"
    engine.dispose()
