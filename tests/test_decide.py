"""The order of a master's moves is fixed by the run's rows alone."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spsa.lifecycle import IterationStatus, Purpose, RunStatus
from spsa.master.decide import Apply, Finish, Leave, Move, Open, Wait, next_move
from spsa.scoring import Tally
from spsa.store import Iteration, Run, RunView
from spsa.terms import Terms, TimeControl

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TERMS = Terms(time_control=TimeControl(low=0.1, high=0.1))


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
        tally=Tally(),
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
        terms=TERMS,
        source_sha256=None,
        max_iterations=most,
        applied=applied,
        master_id=None,
        epoch=1,
        created_at=NOW,
        finished_at=None,
        theta_averaged=None,
        theta_averaged_sd=None,
        theta_supported=None,
        theta_supported_sd=None,
        **facts,
    )
    return RunView(
        run=run,
        opened=applied + len(open_ones),
        open=open_ones,
        failures=[],
        ready_games=0,
        leased_games=0,
        leased_batches=0,
        game_seconds=None,
        active_workers=0,
        active_slots=0,
    )


def test_a_new_run_opens_as_many_iterations_as_may_be_in_flight() -> None:
    assert next_move(view(0, []), 2) == Open(1)
    assert next_move(view(0, [iteration(1)]), 2) == Open(2)
    assert next_move(view(0, [iteration(1), iteration(2)]), 2) == Wait()


def test_results_are_applied_in_order_even_if_a_later_one_is_in_first() -> None:
    late, early = iteration(1, games=8), iteration(2, games=10)
    assert next_move(view(0, [late, early]), 2) == Wait()


def test_the_next_iteration_is_opened_before_the_next_result_is_applied() -> None:
    assert next_move(view(1, [iteration(2, games=10)]), 2) == Open(3)
    assert next_move(view(1, [iteration(2, games=10), iteration(3)]), 2) == Apply(iteration(2, 10))


def test_the_last_iterations_are_applied_and_then_the_run_is_finished() -> None:
    assert next_move(view(9, [iteration(10, games=10)]), 2) == Apply(iteration(10, 10))
    assert next_move(view(10, []), 2) == Finish()


@pytest.mark.parametrize("status", [RunStatus.FINISHED, RunStatus.STOPPED])
def test_a_run_that_has_ended_is_left_alone(status: RunStatus) -> None:
    assert next_move(view(3, [iteration(4, games=10)], status=status), 2) == Leave()


def test_a_paused_run_opens_nothing_and_applies_nothing_past_the_next_opening() -> None:
    paused = RunStatus.PAUSED
    assert next_move(view(1, [iteration(2, games=10)], status=paused), 2) == Wait()
    both = [iteration(2, games=10), iteration(3)]
    assert next_move(view(1, both, status=paused), 2) == Apply(both[0])


@given(
    in_flight=st.integers(1, 8), most=st.integers(1, 30), order=st.randoms(use_true_random=False)
)
def test_iteration_k_is_always_opened_on_the_results_through_k_minus_m(
    in_flight: int, most: int, order: Any
) -> None:
    applied, open_ones, opened_on = 0, [], {}
    while True:
        move: Move = next_move(view(applied, open_ones, most=most), in_flight)
        match move:
            case Open(k):
                opened_on[k] = applied
                open_ones.append(iteration(k))
            case Apply(done):
                assert done.k == applied + 1
                applied += 1
                open_ones = open_ones[1:]
            case Wait():
                some = order.randrange(len(open_ones))
                open_ones[some] = iteration(open_ones[some].k or 0, games=10)
            case Finish() | Leave():
                break
    assert opened_on == {k: max(0, k - in_flight) for k in range(1, most + 1)}
