"""The order of a master's moves is fixed by the run's rows alone."""

from collections import deque
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spsa.core.game_settings import GameSettings, TimeControl
from spsa.db.run_view import MachineFailures, RunView
from spsa.db.tables import Iteration, Run
from spsa.lifecycle import IterationStatus, Purpose, RunStatus
from spsa.master.decide import (
    Apply,
    AsNeeded,
    BuildProgress,
    Decision,
    Finish,
    Idle,
    InOrder,
    OpenIteration,
    Pacing,
    Shorten,
    StartBuild,
    Stop,
    next_decision,
)
from spsa.master.machines import (
    BINARY_BUDGET,
    FAILURE_BUDGET,
    SetMachineAside,
    machines_to_set_aside,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TERMS = GameSettings(time_control=TimeControl(low=0.1, high=0.1))


def iteration(k: int, games: int = 0, target: int = 10) -> Iteration:
    return Iteration(
        id=k,
        run_id=1,
        iteration_number=k,
        purpose=Purpose.TUNE,
        k=k,
        opened_on=0,
        in_flight=1,
        a_k=1.0,
        c_k=1.0,
        plus_sha256="a",
        minus_sha256="b",
        target_games=target,
        games_played=games,
        game_settings=TERMS,
        void_games=0,
        status=IterationStatus.IN_PROGRESS,
        base_parameters={},
        plus_parameters={},
        minus_parameters={},
        gradient_estimate=None,
        elo_diff=None,
        created_at=NOW,
        completed_at=None,
    )


def view(
    applied: int,
    open_ones: list[Iteration],
    *,
    most: int = 10,
    ready: int = 0,
    status: RunStatus = RunStatus.RUNNING,
) -> RunView:
    facts: dict[str, Any] = {
        "settings": {},
        "space": {},
        "start_theta": {},
        "theta": {},
        "state": {},
    }
    run = Run(
        id=1,
        name="r",
        status=status,
        reason=None,
        seed=1,
        algorithm="spsa",
        game_settings=TERMS,
        source_sha256=None,
        max_iterations=most,
        applied=applied,
        master_id=None,
        epoch=1,
        created_at=NOW,
        finished_at=None,
        **facts,
    )
    return RunView(
        run=run,
        opened=applied + len(open_ones),
        open=open_ones,
        failed=[],
        ready_games=ready,
        leased_games=0,
        leased_batches=0,
        game_seconds=None,
        active_workers=0,
        active_slots=0,
    )


def test_a_run_that_has_enough_ends_with_what_it_has_opened() -> None:
    two, open_ones = InOrder(2), [iteration(3), iteration(4)]
    assert next_decision(view(2, open_ones), two, None, "enough") == Shorten(4, "enough")
    building = BuildProgress(count=1, built=True)
    assert next_decision(view(2, open_ones), two, building, "enough") == Shorten(4, "enough")
    shortened = view(2, open_ones, most=4)
    assert next_decision(shortened, two, None, "enough") == Idle()
    assert next_decision(view(4, [], most=4), two, None, "enough") == Finish()
    paused = view(2, open_ones, status=RunStatus.PAUSED)
    assert next_decision(paused, two, None, "enough") == Idle()


def test_a_result_whose_counts_are_not_those_of_its_batches_is_not_applied() -> None:
    seen = view(0, [iteration(1, games=10)], most=1)
    assert next_decision(seen, InOrder(1)) == Apply(seen.open[0])
    miscounted = replace(seen, miscounted="iteration 1 has 10 games, and its batches have 8")
    assert next_decision(miscounted, InOrder(1)) == Idle()


def test_a_new_run_opens_as_many_iterations_as_may_be_in_flight() -> None:
    two = InOrder(2)
    assert next_decision(view(0, []), two) == StartBuild(1)
    assert next_decision(view(0, []), two, BuildProgress(count=1)) == StartBuild(2)
    assert next_decision(view(0, []), two, BuildProgress(count=2)) == Idle()
    assert next_decision(view(0, []), two, BuildProgress(count=2, built=True)) == OpenIteration(1)
    assert next_decision(view(0, [iteration(1)]), two) == StartBuild(2)
    assert next_decision(view(0, [iteration(1), iteration(2)]), two) == Idle()


def test_results_are_applied_in_order_even_if_a_later_one_is_in_first() -> None:
    late, early = iteration(1, games=8), iteration(2, games=10)
    assert next_decision(view(0, [late, early]), InOrder(2)) == Idle()


def test_the_next_iteration_is_opened_before_the_next_result_is_applied() -> None:
    done, two = iteration(2, games=10), InOrder(2)
    assert next_decision(view(1, [done]), two) == StartBuild(3)
    assert next_decision(view(1, [done]), two, BuildProgress(count=1)) == Idle()
    assert next_decision(view(1, [done]), two, BuildProgress(count=1, built=True)) == OpenIteration(
        3
    )
    assert next_decision(view(1, [done, iteration(3)]), two) == Apply(done)


def test_the_last_iterations_are_applied_and_then_the_run_is_finished() -> None:
    for pacing in (InOrder(2), needed(wanted=99)):
        assert next_decision(view(9, [iteration(10, games=10)]), pacing) == Apply(iteration(10, 10))
        assert next_decision(view(10, []), pacing) == Finish()


@pytest.mark.parametrize("status", [RunStatus.FINISHED, RunStatus.STOPPED])
def test_a_run_that_has_ended_is_left_alone(status: RunStatus) -> None:
    ended = view(3, [iteration(4, games=10)], status=status)
    assert next_decision(ended, InOrder(2), BuildProgress(count=1, built=True)) == Stop()


def test_a_paused_run_opens_nothing_and_applies_nothing_past_the_next_opening() -> None:
    paused, two = RunStatus.PAUSED, InOrder(2)
    assert next_decision(view(1, [iteration(2, games=10)], status=paused), two) == Idle()
    both = [iteration(2, games=10), iteration(3)]
    assert next_decision(view(1, both, status=paused), two) == Apply(both[0])
    assert (
        next_decision(view(1, [], status=paused), two, BuildProgress(count=2, built=True)) == Idle()
    )


def needed(**over: Any) -> AsNeeded:
    return AsNeeded(**{"in_flight": 9, "wanted": 15.0, "games": 10, "builders": 4} | over)


def test_as_needed_games_that_lie_ready_and_in_the_making_are_what_is_wanted() -> None:
    seen = view(0, [iteration(1)], ready=4)
    assert next_decision(seen, needed()) == StartBuild(2)
    assert next_decision(seen, needed(), BuildProgress(count=1)) == StartBuild(3)
    assert next_decision(seen, needed(), BuildProgress(count=2)) == Idle()
    assert next_decision(view(0, [iteration(1)], ready=15), needed()) == Idle()


def test_as_needed_no_more_is_begun_than_can_be_built_or_borne() -> None:
    seen = view(0, [iteration(1)], ready=4)
    assert next_decision(seen, needed(builders=1), BuildProgress(count=1)) == Idle()
    assert next_decision(seen, needed(in_flight=2), BuildProgress(count=1)) == Idle()


def test_as_needed_results_are_applied_while_engines_are_built() -> None:
    done = iteration(2, games=10)
    assert next_decision(view(1, [done]), needed(builders=1), BuildProgress(count=1)) == Apply(done)
    paused = view(1, [done], status=RunStatus.PAUSED)
    assert next_decision(paused, needed(), BuildProgress(count=1, built=True)) == Apply(done)
    assert next_decision(view(2, []), needed(builders=1), BuildProgress(count=1)) == Idle()


class Rehearsal:
    """A run whose builds end and whose games come in whenever chance has it."""

    def __init__(self, pacing: Pacing, most: int, order: Any) -> None:
        self.pacing, self.most, self.order = pacing, most, order
        self.applied, self.open_ones, self.made_on, self.opened_on = 0, [], deque[int](), {}
        self.built = 0

    def run(self) -> dict[int, int]:
        """Which results each iteration was opened on."""
        while True:
            ready = sum(10 for it in self.open_ones if not it.games_played)
            seen = view(self.applied, self.open_ones, most=self.most, ready=ready)
            in_build = BuildProgress(count=len(self.made_on), built=self.built > 0)
            move = next_decision(seen, self.pacing, in_build)
            if isinstance(move, Finish):
                return self.opened_on
            self.make(move)

    def make(self, move: Decision) -> None:
        match move:
            case StartBuild(k):
                assert k == self.applied + len(self.open_ones) + len(self.made_on) + 1
                self.made_on.append(self.applied)
            case OpenIteration(k):
                self.opened_on[k] = self.made_on.popleft()
                self.built -= 1
                self.open_ones.append(iteration(k))
            case Apply(done):
                assert done.k == self.applied + 1
                self.applied += 1
                self.open_ones = self.open_ones[1:]
            case _:
                self.something_happens()

    def something_happens(self) -> None:
        if self.built < len(self.made_on) and (not self.open_ones or self.order.random() < 0.5):
            self.built += 1
        elif self.open_ones:
            some = self.order.randrange(len(self.open_ones))
            self.open_ones[some] = iteration(self.open_ones[some].k or 0, games=10)


LENGTHS, CHANCE = st.integers(1, 30), st.randoms(use_true_random=False)


@pytest.mark.slow
@given(in_flight=st.integers(1, 8), most=LENGTHS, order=CHANCE)
def test_in_order_iteration_k_is_always_opened_on_the_results_through_k_minus_m(
    in_flight: int, most: int, order: Any
) -> None:
    opened_on = Rehearsal(InOrder(in_flight), most, order).run()
    assert opened_on == {k: max(0, k - in_flight) for k in range(1, most + 1)}


@given(
    in_flight=st.integers(1, 8),
    wanted=st.integers(1, 60),
    builders=st.integers(1, 4),
    most=LENGTHS,
    order=CHANCE,
)
def test_as_needed_every_run_ends_and_no_iteration_is_deeper_than_bearable(
    in_flight: int, wanted: int, builders: int, most: int, order: Any
) -> None:
    pacing = needed(in_flight=in_flight, wanted=wanted, builders=builders)
    opened_on = Rehearsal(pacing, most, order).run()
    assert list(opened_on) == list(range(1, most + 1))
    assert all(k - in_flight <= on < k for k, on in opened_on.items())
    assert list(opened_on.values()) == sorted(opened_on.values())


BAD = MachineFailures(
    machine="bad",
    batches=FAILURE_BUDGET,
    sha256="p" * 64,
    reason="no such book",
    played=0,
    played_by_others=1,
    binaries_set_aside=frozenset(),
    is_set_aside=False,
)


def set_aside(**over: Any) -> list[SetMachineAside]:
    """What is decided of one machine."""
    return machines_to_set_aside(replace(view(0, []), machine_failures=[replace(BAD, **over)]))


def test_a_machine_that_fails_what_others_play_is_set_aside_for_that_binary() -> None:
    (aside,) = set_aside()
    assert (aside.machine, aside.sha256) == ("bad", "p" * 64)
    assert aside.reason == "failed 3 batches that other machines can play: no such book"


def test_where_the_binary_is_not_known_a_machine_is_set_aside_for_all() -> None:
    assert [aside.sha256 for aside in set_aside(sha256=None)] == [None]


def test_after_several_binaries_a_machine_is_set_aside_for_all() -> None:
    others = [frozenset(f"{n}" * 64 for n in range(known)) for known in range(BINARY_BUDGET)]
    decided = [set_aside(binaries_set_aside=known)[0].sha256 for known in others]
    assert decided == ["p" * 64] * (BINARY_BUDGET - 1) + [None]


@pytest.mark.parametrize(
    "over",
    [
        {"batches": FAILURE_BUDGET - 1},
        {"played_by_others": 0},
        {"played": FAILURE_BUDGET},
        {"is_set_aside": True},
        {"binaries_set_aside": frozenset({"p" * 64})},
    ],
    ids=["too few", "nobody else plays them", "it plays as many", "it is", "of that binary it is"],
)
def test_a_machine_is_left_alone(over: dict[str, Any]) -> None:
    assert set_aside(**over) == []


def test_every_machine_is_judged_by_itself() -> None:
    machines = [replace(BAD, machine="a"), replace(BAD, machine="b", played_by_others=0)]
    decided = machines_to_set_aside(replace(view(0, []), machine_failures=machines))
    assert [aside.machine for aside in decided] == ["a"]
    assert machines_to_set_aside(view(0, [])) == []
