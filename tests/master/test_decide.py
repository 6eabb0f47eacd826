"""The order of a master's decisions is fixed by the run's rows alone."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import new_iteration, new_run
from golden import compare_cases

from spsa.db.run_view import MachineFailures, Obstacles, RunView, TriedBatch
from spsa.db.tables import Batch, Compared, Iteration
from spsa.lifecycle import BatchStatus, Purpose, RunStatus
from spsa.master.decide import (
    BINARY_BUDGET,
    FAILURE_BUDGET,
    Apply,
    BuildProgress,
    CloseRound,
    Decision,
    GiveUpBuild,
    GiveUpRound,
    Pacing,
    Pause,
    Plain,
    SetAside,
    StartBuild,
    next_decision,
    upkeep,
)


def iteration(k, games=0):
    row: Iteration = new_iteration(k=k, target_games=10, batches=[10]).row
    return replace(row, id=k, games_played=games)


def validation(games, *, background):
    compared = Compared(background=background)
    return replace(iteration(5, games), purpose=Purpose.VALIDATE, k=None, compared=compared)


def view(applied, open_ones, *, most=10, ready=0, status=RunStatus.RUNNING, **more):
    return RunView(
        run=new_run(id=1, status=status, max_iterations=most, applied=applied),
        opened=applied + len(open_ones),
        open=open_ones,
        failed=more.pop("failed", []),
        ready_games=ready,
        leased_games=0,
        leased_batches=0,
        game_seconds=None,
        active_workers=0,
        active_slots=0,
        **more,
    )


PLAYED, OPEN, TWO = iteration(2, games=10), iteration(3), Pacing(in_flight=2)
NONE, ONE, BUILT = BuildProgress(), BuildProgress(count=1), BuildProgress(count=1, built=True)
FAILED = BuildProgress(count=1, built=True, failure="expected `;`")
BOTH, BOTH_BUILT = BuildProgress(count=2), BuildProgress(count=2, built=True)
PAUSED = {"status": RunStatus.PAUSED}
NEXT, BESIDE = iteration(10, games=10), validation(2, background=True)

# applied results, open iterations, more of the view, the pacing, what is being built
CASES: dict[str, tuple[tuple[Any, ...], Decision]] = {
    "a new run": ((0, [], {}, TWO, NONE), StartBuild(1)),
    "as many as may be in flight": ((0, [], {}, TWO, ONE), StartBuild(2)),
    "and no more": ((0, [], {}, TWO, BOTH), Plain.IDLE),
    "the first is built": ((0, [], {}, TWO, BOTH_BUILT), Plain.OPEN),
    "it cannot be built": (
        (0, [], {}, TWO, FAILED),
        GiveUpBuild("iteration k=1 cannot be built: expected `;`"),
    ),
    "nor may it, as the run is paused": ((0, [], PAUSED, TWO, FAILED), Plain.IDLE),
    "one is open": ((0, [iteration(1)], {}, TWO, NONE), StartBuild(2)),
    "both are open": ((0, [iteration(1), iteration(2)], {}, TWO, NONE), Plain.IDLE),
    "the later one is played first": ((0, [iteration(1, 8), PLAYED], {}, TWO, NONE), Plain.IDLE),
    "the next is built before a result is applied": ((1, [PLAYED], {}, TWO, NONE), StartBuild(3)),
    "and waited for": ((1, [PLAYED], {}, TWO, ONE), Plain.IDLE),
    "and opened": ((1, [PLAYED], {}, TWO, BUILT), Plain.OPEN),
    "then it is applied": ((1, [PLAYED, OPEN], {}, TWO, NONE), Apply(PLAYED)),
    "the last": ((9, [NEXT], {}, TWO, NONE), Apply(NEXT)),
    "all are applied": ((10, [], {}, TWO, NONE), Plain.FINISH),
    "finished": ((3, [PLAYED], {"status": RunStatus.FINISHED}, TWO, BUILT), Plain.STOP),
    "stopped": ((3, [PLAYED], {"status": RunStatus.STOPPED}, TWO, BUILT), Plain.STOP),
    "paused, nothing past the next opening": ((1, [PLAYED], PAUSED, TWO, NONE), Plain.IDLE),
    "paused, a result before it": ((1, [PLAYED, OPEN], PAUSED, TWO, NONE), Apply(PLAYED)),
    "paused, nothing is opened": ((1, [], PAUSED, TWO, BOTH_BUILT), Plain.IDLE),
    "paused, all are applied": ((10, [], PAUSED, TWO, NONE), Plain.IDLE),
    "a round in the background is open": ((10, [BESIDE], {}, TWO, NONE), Plain.IDLE),
}


@pytest.mark.parametrize("case", CASES)
def test_in_order(case):
    (applied, open_ones, more, pacing, in_build), right = CASES[case]
    assert next_decision(view(applied, open_ones, **more), pacing, in_build) == right


def needed(**over):
    return Pacing(**{"in_flight": 9, "wanted": 15.0, "games": 10, "builders": 4} | over)


def as_needed(seen, builds=0, **over):
    return next_decision(seen, needed(**over), BuildProgress(count=builds))


def test_as_needed_games_that_lie_ready_and_in_the_making_are_what_is_wanted():
    seen = view(0, [iteration(1)], ready=4)
    assert [as_needed(seen, builds) for builds in range(3)] == [
        StartBuild(2),
        StartBuild(3),
        Plain.IDLE,
    ]
    assert as_needed(view(0, [iteration(1)], ready=15)) == Plain.IDLE
    assert as_needed(seen, 1, builders=1) == as_needed(seen, 1, in_flight=2) == Plain.IDLE
    # results are applied while engines are built
    assert as_needed(view(1, [PLAYED]), 1, builders=1) == Apply(PLAYED)
    paused = view(1, [PLAYED], **PAUSED)
    assert next_decision(paused, needed(), BUILT) == Apply(PLAYED)
    assert as_needed(view(2, []), 1, builders=1) == Plain.IDLE
    assert as_needed(view(9, [NEXT]), wanted=99) == Apply(NEXT)
    assert as_needed(view(10, []), wanted=99) == Plain.FINISH
    match = replace(iteration(4), purpose=Purpose.VALIDATE, k=None)
    left_match = replace(view(3, [match], ready=1000), opened=3)
    assert as_needed(left_match) == Plain.IDLE


TRIED = TriedBatch(
    id=7,
    iteration_number=3,
    seq=0,
    reason="no book",
    machines=1,
    max_attempts=3,
    is_suited=True,
    is_wanted=True,
)
BAD = MachineFailures(
    machine="bad",
    batches=FAILURE_BUDGET,
    batch_ids=(1, 2, 3),
    sha256="p" * 64,
    reason="no such book",
    played=0,
    played_by_others=0,
    set_aside=frozenset(),
)
WRONG = "iteration 1 has 10 games, and its batches have 8"


def test_what_pauses_a_run_before_anything_else():
    played = [iteration(1, games=10), validation(9, background=False)]

    def shown(files):
        facts = {name: json.loads(text) for name, text in files.items()}
        status = RunStatus(facts.pop("status", "running"))
        for name, usual in (("tried", TRIED), ("failures", BAD)):
            facts[name] = [replace(usual, **one) for one in facts.get(name, ())]
        needed = upkeep(view(0, played, obstacles=Obstacles(**facts), status=status))
        if needed is not None:
            assert isinstance(needed, Pause)
            yield from needed.reasons
            yield f"fails {sorted(needed.batch_ids)}"

    compare_cases(Path(__file__).with_name("pauses.txt"), shown)


def test_no_result_is_applied_while_an_iteration_has_another_count():
    paused = view(
        0, [iteration(1, games=10)], most=1, obstacles=Obstacles(miscounted=WRONG), **PAUSED
    )
    assert next_decision(paused, Pacing(in_flight=1), NONE) == Plain.IDLE


def test_a_round_of_a_validation_is_completed_when_it_is_played():
    row = validation(10, background=False)
    assert upkeep(view(0, [row])) == CloseRound(row)
    assert upkeep(view(0, [validation(8, background=False)])) is None
    assert upkeep(view(0, [iteration(1, games=10)])) is None
    miscounted = view(0, [row], obstacles=Obstacles(miscounted=WRONG), **PAUSED)
    assert upkeep(miscounted) is None


def test_a_round_in_the_background_that_cannot_be_played_is_given_up():
    failed = Batch(
        iteration_id=5,
        seq=0,
        games=2,
        first_pair=0,
        seed=1,
        max_attempts=1,
        status=BatchStatus.FAILED,
        last_error="no book",
    )
    row = validation(0, background=True)
    assert upkeep(view(0, [row], failed=[failed])) == GiveUpRound(row, "no book")
    for other in (validation(0, background=False), iteration(5)):
        assert upkeep(view(0, [other], failed=[failed])) is None
    assert upkeep(view(0, [row], failed=[replace(failed, iteration_id=6)])) is None


def set_aside(*others, **over):
    """What is decided of a machine, and of others before it."""
    bad = replace(BAD, **{"played_by_others": 1, **over})
    decided = upkeep(view(0, [], obstacles=Obstacles(failures=[*others, bad], others_active=True)))
    assert decided is None or isinstance(decided, SetAside)
    return decided


@pytest.mark.parametrize(
    ("over", "sha256"),
    [
        ({}, BAD.sha256),
        ({"sha256": None}, None),
        *(
            ({"set_aside": frozenset(f"{n}" * 64 for n in range(known))}, sha256)
            for known, sha256 in enumerate([BAD.sha256] * (BINARY_BUDGET - 1) + [None])
        ),
    ],
)
def test_a_machine_that_fails_what_others_play_is_set_aside(over, sha256):
    reason = "failed 3 batches that other machines can play: no such book"
    assert set_aside(**over) == SetAside(machine="bad", sha256=sha256, reason=reason)


@pytest.mark.parametrize(
    "over",
    [
        {"batches": FAILURE_BUDGET - 1},
        {"played_by_others": 0},
        {"played": FAILURE_BUDGET},
        {"set_aside": frozenset({None})},
        {"set_aside": frozenset({"p" * 64})},
    ],
    ids=["too few", "no other plays them", "it plays as many", "it is", "of that binary it is"],
)
def test_a_machine_is_left_alone(over):
    assert set_aside(**over) is None
    other = set_aside(replace(BAD, **over), machine="next")
    assert other is not None and other.machine == "next", "every machine is judged by itself"
