import json
from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spsa.algorithms import Outcome, Perturbation, Problem, Rule, Vector, create
from spsa.algorithms.tuning import PlayedGames, Tuning, tuning
from spsa.core.params import Location, Parameter, Place, Space
from spsa.core.scoring import ELO_PER_SCORE, Tally, elo, null_error

N = 5
START = np.array([0.5, -1.25, 3.0, 0.0, 2.0])
PROBLEM = Problem(
    start=START,
    lower=np.full(N, -6.0),
    upper=np.full(N, 6.0),
    unit=np.zeros(N),
    iterations=200,
    pairs=50,
)
BETTER = Tally(pentanomial=(2, 10, 20, 14, 4))

unhurried = settings(deadline=None)  # the machine may be busy with games

counts = st.tuples(*[st.integers(0, 300)] * 5)
tallies = counts.map(lambda c: Tally(pentanomial=c))


def generator(seed: int = 1) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


def rule(**settings: float) -> Rule:
    return create("spsa", settings, PROBLEM)


def result(asked: Perturbation, tally: Tally, difference: Vector | None = None) -> Outcome:
    return Outcome(
        k=1,
        centre=asked.centre,
        difference=2 * asked.offset if difference is None else difference,
        pentanomial=np.array(tally.pentanomial, dtype=float),
        a_k=asked.a_k,
        c_k=asked.c_k,
    )


def moved(tally: Tally, difference: Vector | None = None, **settings: float) -> Vector:
    """How far one result moves theta from the start."""
    spsa = rule(**settings)
    state = spsa.start()
    after, _ = spsa.tell(state, result(spsa.ask(state, 1, generator()), tally, difference))
    return spsa.theta(after) - START


def test_one_result_moves_theta_as_the_paper_says() -> None:
    spsa = rule(a=0.02, c=2, A=20, alpha=0.602, gamma=0.101)
    asked = spsa.ask(spsa.start(), 3, generator())
    assert asked.c_k == pytest.approx(2 / 3**0.101)
    assert asked.a_k == pytest.approx(0.02 / 23**0.602)
    assert np.abs(asked.offset).tolist() == [asked.c_k] * N
    assert asked.centre.tolist() == START.tolist()
    after, move = spsa.tell(spsa.start(), result(asked, BETTER))
    gradient = elo(BETTER).value * np.sign(asked.offset) / (2 * asked.c_k)
    assert move.gradient == pytest.approx(gradient)
    assert spsa.theta(after) == pytest.approx(START + asked.a_k * gradient)
    assert (move.elo, move.bounded) == (elo(BETTER).value, False)


def test_the_signs_are_fair_independent_and_fixed_by_the_generator() -> None:
    spsa = rule()
    state = spsa.start()
    one = generator(7)
    offsets = np.array([np.sign(spsa.ask(state, 1, one).offset) for _ in range(4000)])
    assert np.abs(offsets.T @ offsets / 4000 - np.eye(N)).max() < 0.06
    assert np.abs(offsets.mean(axis=0)).max() < 0.06
    again = spsa.ask(state, 1, generator(7))
    assert np.sign(again.offset).tolist() == offsets[0].tolist()


def test_a_seed_gives_the_same_signs_on_every_machine() -> None:
    asked = rule().ask(rule().start(), 1, generator(2026))
    assert np.sign(asked.offset).astype(int).tolist() == [1, -1, -1, 1, -1]


@unhurried
@given(tallies)
def test_the_move_turns_with_the_sign_of_elo(tally: Tally) -> None:
    assert moved(-tally, a=0.01).tolist() == pytest.approx(
        (-moved(tally, a=0.01)).tolist(), abs=1e-12
    )


@unhurried
@given(tallies)
def test_every_parameter_moves_by_the_same_number_of_steps(tally: Tally) -> None:
    sizes = np.abs(moved(tally, a=0.01))
    assert sizes.max() - sizes.min() < 1e-12


@unhurried
@given(tallies, st.floats(0, 1e3))
def test_theta_stays_inside_the_bounds(tally: Tally, a: float) -> None:
    theta = START + moved(tally, a=a + 1e-9)
    assert (theta >= -6).all()
    assert (theta <= 6).all()


def test_a_start_outside_the_bounds_is_taken_inside() -> None:
    outside = replace(PROBLEM, start=np.array([9.0, -9.0, 0.0, 0.0, 0.0]))
    spsa = create("spsa", {}, outside)
    assert spsa.theta(spsa.start()).tolist() == [6, -6, 0, 0, 0]


@pytest.mark.parametrize(
    "tally", [Tally(pentanomial=(0, 0, 0, 0, 50)), Tally(pentanomial=(0, 0, 0, 0, 1))]
)
def test_a_score_of_one_moves_theta_but_not_out_of_sight(tally: Tally) -> None:
    most = rule().ask(rule().start(), 1, generator())
    noise = null_error(tally) * most.a_k / (2 * most.c_k)
    for won in (tally, -tally):
        sizes = np.abs(moved(won))
        assert (sizes > noise / 2).all()
        assert (sizes <= 4 * noise * (1 + 1e-12)).all()


def test_elo_is_bounded_by_its_own_error_and_says_so() -> None:
    won = Tally(pentanomial=(0, 0, 0, 0, 50))
    spsa = rule(elo_bound=3)
    asked = spsa.ask(spsa.start(), 1, generator())
    for tally, sign in ((won, 1), (-won, -1)):
        _, move = spsa.tell(spsa.start(), result(asked, tally))
        assert move.bounded
        assert move.elo == pytest.approx(sign * 3 * null_error(won))


def test_no_games_move_nothing() -> None:
    assert moved(Tally()).tolist() == [0] * N


def test_a_parameter_that_was_the_same_on_both_sides_does_not_move() -> None:
    difference = np.array([2.0, -2.0, 0.0, 2.0, 0.0])
    assert (moved(BETTER, difference, c=1) != 0).tolist() == [True, True, False, True, False]


def test_the_difference_that_was_played_counts_and_not_the_one_asked_for() -> None:
    # c = 1 asks for a difference of 2.
    played = np.array([2.0, -2.0, 3.0, 4.0, -1.0])
    gain = rule(c=1).ask(rule(c=1).start(), 1, generator()).a_k * elo(BETTER).value
    wanted = gain * np.array([1 / 2, -1 / 2, 1 / 3, 1 / 4, -1 / 4])
    assert moved(BETTER, played, c=1) == pytest.approx(wanted)


def test_a_difference_close_to_zero_does_not_magnify_the_noise() -> None:
    usual = np.abs(moved(BETTER, np.full(N, 2.0), c=1))
    assert (np.abs(moved(BETTER, np.full(N, 1e-9), c=1)) < usual * 1e-6).all()


def test_a_late_result_adds_to_the_theta_of_now() -> None:
    spsa = rule()
    state = spsa.start()
    first, second = (spsa.ask(state, k, generator(k)) for k in (1, 2))
    one, _ = spsa.tell(state, result(first, BETTER))
    both, late = spsa.tell(one, result(second, -BETTER))
    expected = spsa.theta(one) + second.a_k * late.gradient
    assert spsa.theta(both) == pytest.approx(np.clip(expected, -6, 6))


@unhurried
@given(st.lists(st.floats(-6, 6), min_size=N, max_size=N))
def test_the_state_survives_json_to_the_bit(start: list[float]) -> None:
    spsa = create("spsa", {}, replace(PROBLEM, start=np.array(start)))
    state, _ = spsa.tell(spsa.start(), result(spsa.ask(spsa.start(), 1, generator()), BETTER))
    again = spsa.load(json.loads(json.dumps(spsa.dump(state))))
    assert spsa.dump(again) == spsa.dump(state)
    assert spsa.theta(again).tobytes() == spsa.theta(state).tobytes()


def test_a_caller_cannot_change_a_state_through_its_theta() -> None:
    spsa = rule()
    state = spsa.start()
    spsa.theta(state)[:] = 99
    assert spsa.theta(state).tolist() == START.tolist()


@pytest.mark.parametrize(("n", "iterations", "pairs"), [(1, 1, 1), (8, 30, 30), (20, 1000, 75)])
def test_the_noise_of_all_games_carries_theta_as_far_as_was_wanted(
    n: int, iterations: int, pairs: int
) -> None:
    problem = Problem(
        start=np.zeros(n),
        lower=np.full(n, -99.0),
        upper=np.full(n, 99.0),
        unit=np.zeros(n),
        iterations=iterations,
        pairs=pairs,
    )
    spsa = create("spsa", {"noise_walk": 1.5}, problem)
    asked = [spsa.ask(spsa.start(), k, generator()) for k in range(1, iterations + 1)]
    noise = ELO_PER_SCORE * 0.9 / (2 * sqrt(pairs))
    moves = np.array([p.a_k * noise / (2 * p.c_k) for p in asked])
    assert np.sqrt(n * np.sum(moves**2)) == pytest.approx(1.5)
    assert asked[-1].c_k == pytest.approx(1.0)


@pytest.mark.parametrize(("setting", "k"), [("first_move", 1), ("last_move", 200)])
def test_the_first_or_last_result_moves_as_far_as_was_wanted(setting: str, k: int) -> None:
    """A result of the planned 50 pairs that is one standard error of Elo, tau being 0.9."""
    asked = rule(**{setting: 0.3}).ask(rule().start(), k, generator())
    noise = ELO_PER_SCORE * 0.9 / (2 * sqrt(50))
    assert asked.a_k * noise / (2 * asked.c_k) == pytest.approx(0.3)
    assert asked.c_k == rule().ask(rule().start(), k, generator()).c_k


def test_a_given_gain_is_taken_as_it_is() -> None:
    asked = rule(a=1, c=1, A=50).ask(rule().start(), 1, generator())
    assert (asked.a_k, asked.c_k) == (pytest.approx(1 / 51**0.602), 1)


def parameter(name: str, unit: float, **more: object) -> Parameter:
    """A value whose numbers are written `unit` times as large."""
    numbers = {"value": 3.0, "minimum": -16.0, "maximum": 16.0, "step": 2.0}
    place = Place(Location(name.upper()))
    scaled = {key: number * unit for key, number in numbers.items()}
    return Parameter(name=name, place=place, option=name, **scaled, **more)  # type: ignore[arg-type]


def run(space: Space, iterations: int = 40) -> tuple[Tuning, list[dict[str, float]]]:
    """A run in which plus always wins a little when x grows and y falls; theta after each."""
    tuned = tuning(space, "spsa", {}, iterations=iterations, pairs=50, seed=5)
    theta, state = tuned.start()
    path = []
    for k in range(1, iterations + 1):
        proposal = tuned.propose(state, theta, k)
        plus, minus = proposal.played.plus, proposal.played.minus
        wins = (plus["x"] > minus["x"]) - (plus["y"] > minus["y"])
        tally = BETTER if wins > 0 else -BETTER if wins < 0 else Tally(pentanomial=(0, 9, 32, 9, 0))
        games = PlayedGames(
            k=k, a_k=proposal.a_k, c_k=proposal.c_k, played=proposal.played, tally=tally
        )
        answer = tuned.update(state, theta, games)
        state, theta = answer.state, dict(answer.theta)
        path.append(theta)
    return tuned, path


def test_rescaling_a_parameter_changes_nothing() -> None:
    def steps(unit: float) -> list[bytes]:
        space = Space((parameter("x", unit, integral=False), parameter("y", 1.0, integral=False)))
        tuned, path = run(space)
        return [tuned.space.steps(theta).tobytes() for theta in path]

    assert steps(1.0) == steps(256.0) == steps(2.0**-20)


def test_whole_numbers_are_played_whole_and_climb_all_the_same() -> None:
    tuned, path = run(Space((parameter("x", 1.0), parameter("y", 1.0))))
    proposal = tuned.propose(tuned.start()[1], path[-1], 1)
    assert all(isinstance(v, int) for v in proposal.played.plus.values())
    assert path[-1]["x"] > 4
    assert path[-1]["y"] < 2
