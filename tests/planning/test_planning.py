"""What a run will take and bring: by arithmetic where there is some, else by simulation."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from builders import parameter, space_from
from golden import compare_cases
from outcomes import problem

from spsa.algorithms import create
from spsa.core.game_settings import TimeControl, TimeKind
from spsa.core.params import Space
from spsa.core.scoring import Tally, elo
from spsa.planning.plan import busy_in_flight, free_in_flight, in_flight_warnings, plan
from spsa.planning.plan_inputs import (
    UNBALANCED_ELO,
    Capacity,
    Openings,
    PlanInputs,
    Shape,
    fitted,
    game_seconds,
    in_flight_without_idling,
    noise,
    pace,
)
from spsa.planning.plan_warnings import book_warnings, side_warnings, space_warnings
from spsa.planning.recovery import EngineAssumptions, RunDesign, coarser, recovery
from spsa.planning.simulated_run import SimulatedGames
from spsa.planning.strength import strength_curve

SHAPE = Shape(iterations=100, games=40, batch_games=4, in_flight=1)
FLEET = Capacity(concurrency=4, build_seconds=30.0)

ASSUMPTIONS = EngineAssumptions(elo_to_gain=30, draw_rate=0.5)

NARROWEST, WIDEST = 0.6, 1.75
"""c_k of the mixture, in steps."""


def design(iterations=60, pairs=20, n=6, **over):
    played = problem(np.zeros(n), reach=3.0, iterations=iterations, pairs=pairs)
    usual = RunDesign(algorithm="mixture", settings={}, problem=played, in_flight=1)
    return replace(usual, **over)


@pytest.mark.parametrize(
    ("control", "seconds"),
    [
        (TimeControl(low=0.1, high=0.3), 100 * 0.2),
        (TimeControl(kind=TimeKind.CLOCK, low=10, high=10, increment=0.1), 2 * 9.5 + 10),
        (TimeControl(kind=TimeKind.NODES, low=1000, high=3000), 100 * 2000 / 1e6),
        (TimeControl(kind=TimeKind.DEPTH, low=6, high=6), None),
    ],
)
def test_a_game_takes_what_its_limit_says(control, seconds):
    assert game_seconds(control, 1e6) == (None if seconds is None else pytest.approx(seconds))
    unknown = game_seconds(control, None)
    assert unknown is None or control.kind is not TimeKind.NODES


def test_with_one_iteration_in_flight_builds_and_stragglers_are_waited_for():
    found = pace(SHAPE, FLEET, 2.0)  # 10 batches on 4 slots are 3 rounds of 8 s
    assert found.iteration == pytest.approx(3 * 8 + 30)
    assert found.run == pytest.approx(100 * 54)
    assert found.idle == pytest.approx(1 - 20 / 54)


def test_with_enough_in_flight_every_slot_plays_all_the_time():
    shape = replace(SHAPE, games=80)  # 40 s of playing hide 30 s of builds
    needed = in_flight_without_idling(shape, FLEET, 2.0)
    busy = pace(replace(shape, in_flight=needed), FLEET, 2.0)
    fewer = pace(replace(shape, in_flight=needed - 1), FLEET, 2.0)
    assert needed > 1
    assert busy.idle == pytest.approx(0.0)
    assert fewer.idle > 0.05


@pytest.mark.parametrize("builders", [1, 4])
def test_builds_that_take_longer_than_the_games_set_the_pace(builders):
    capacity = Capacity(concurrency=64, build_seconds=30, builders=builders)
    found = pace(replace(SHAPE, in_flight=99), capacity, 2.0)
    assert found.iteration == pytest.approx(30 / builders)


def test_where_depth_follows_the_fleet_a_fleet_too_large_is_cautioned_of():
    def cautioned(slots, **over):
        shape = Shape(iterations=500, games=150, batch_games=2, in_flight=5, adapts=True)
        capacity = Capacity(concurrency=slots, build_seconds=30, builders=9)
        asked = inputs(shape=replace(shape, **over), capacity=capacity, seconds=10.0)
        return [str(warning) for warning in in_flight_warnings(asked, 1, busy_in_flight(asked))]

    assert cautioned(8) == []
    (told,) = cautioned(256)
    assert "11 iterations in flight would keep 256 slots busy, and a run of 500 allows 5" in told
    assert "games_per_iteration = " in told
    (short,) = cautioned(8, iterations=99, in_flight=1)
    assert "more iterations" in short


def test_iterations_in_flight_that_grow_are_fewer_at_first():
    def parts(in_flight, *, grows):
        asked = design(in_flight=in_flight, grows=grows)
        return recovery(asked, ASSUMPTIONS, replicas=8, seed=3).parts.tolist()

    assert parts(1, grows=False) == parts(1, grows=True)
    assert parts(12, grows=False) != parts(12, grows=True)


@pytest.mark.parametrize(
    ("games", "capacity", "seconds", "size"),
    [
        (30_000, Capacity(concurrency=8, build_seconds=30, builders=2), 60.0, (30, 1000)),
        (75_000, Capacity(concurrency=8, build_seconds=30, builders=2), 1.0, (160, 469)),
        (75_000, Capacity(concurrency=8, build_seconds=30, builders=2), None, (80, 938)),
        (300, Capacity(concurrency=8, build_seconds=30), 1.0, (8, 38)),
    ],
)
def test_iterations_are_as_small_as_builds_and_slots_let_them(games, capacity, seconds, size):
    found = fitted(games, capacity, seconds)
    assert (found.games, found.iterations) == size
    if seconds and games > 1000:
        larger = replace(found, games=4 * found.games, iterations=found.iterations // 4)
        assert pace(found, capacity, seconds).run < 1.05 * pace(larger, capacity, seconds).run


def test_smaller_iterations_are_advised_where_they_recover_more():
    few = design(13, 75, n=16)
    shape = Shape(iterations=13, games=150, batch_games=10, in_flight=1, adapts=True)
    asked = inputs(design=few, shape=shape, seconds=60.0, elos_to_gain=(20.0,))
    told = [w for w in plan(asked).warnings if "smaller iterations recover" in w.found]
    assert [w.remedy for w in told] == ["games_per_iteration = 8, max_iterations = 244"]
    enough = replace(shape, iterations=244, games=8)
    kept = replace(asked, design=design(244, 4, n=16), shape=enough)
    assert not [w for w in plan(kept).warnings if "smaller iterations" in w.found]


def test_the_noise_of_an_iteration_is_what_equal_engines_show():
    rng = np.random.default_rng(5)
    pentanomials = SimulatedGames(0.6).play(np.zeros((2000, 1)), 75, rng).astype(int).tolist()
    seen = [elo(Tally(pentanomial=tuple(counts))).value for counts in pentanomials]
    assert np.std(seen) == pytest.approx(noise(0.6, 75), rel=0.06)


def test_every_engine_has_the_elo_to_gain_and_its_optimum_inside_the_bounds():
    narrow = replace(design().problem, lower=np.full(6, -1.0), upper=np.full(6, 6.0))
    engine = ASSUMPTIONS.engines(narrow, 500, np.random.default_rng(1))
    assert engine.elo(narrow.start) == pytest.approx(np.full((500, 1), -30))
    assert (engine.optimum >= narrow.lower).all()
    assert (engine.optimum <= narrow.upper).all()
    distance = np.abs(engine.optimum - narrow.start)
    assert distance.max() <= 2.5
    assert distance.min() >= 0.4


def test_more_games_recover_more_and_a_seed_gives_the_same_again():
    few, again = (recovery(design(), ASSUMPTIONS, replicas=100, seed=3) for _ in range(2))
    many = recovery(design(pairs=200), ASSUMPTIONS, replicas=100, seed=3)
    better, error = many.better_than(few)
    assert few.parts.tolist() == again.parts.tolist()
    assert 0 < few.mean < many.mean < 1
    assert better > 3 * error
    assert NARROWEST <= few.c_last <= few.c_first
    assert few.c_first == pytest.approx(WIDEST)


def test_a_coarser_run_has_as_many_games():
    long = design(200_000, 1, in_flight=1000)
    shorter, merged = coarser(long)
    assert (shorter.problem.iterations, shorter.problem.pairs) == (500, 400)
    assert (shorter.in_flight, merged) == (2, 400)
    assert coarser(design())[1] == 1
    for n, iterations in ((64, 500), (133, 263), (400, 500)):
        found, _ = coarser(design(200_000 - 200_000 % 263, 1, n=n))
        assert found.problem.iterations == pytest.approx(iterations, abs=3)


def test_a_long_tune_of_another_tuner_is_simulated_shorter_with_the_same_gains():
    asked = design(20_000, algorithm="fishtest", settings={"A": 3e3, "played": 1e4})
    shorter, merged = coarser(asked)
    assert (merged, shorter.problem.iterations, shorter.problem.pairs) == (40, 500, 800)
    long = create("fishtest", asked.settings, asked.problem)
    short = create("fishtest", shorter.settings, shorter.problem)
    for k in (1, 250, 500):
        for gain in ("a_k", "c_k"):
            there = getattr(long.gains, gain)(long.played + 40 * k)
            assert getattr(short.gains, gain)(short.played + k) == pytest.approx(there)


def test_what_is_warned_of_parameters_and_books():
    def shown(files):
        if "params" in files:
            space, c = space_from(files["params"]), float(files.get("c", 1.0))
            told = [*space_warnings(space, c), *side_warnings(space, c)]
        elif "draw_rate" in files:
            told = book_warnings(Openings.of(float(files["draw_rate"])))
        else:
            told = book_warnings(Openings(**{name: float(text) for name, text in files.items()}))
        return (f"line {one.line}: {one}" for one in told)

    compare_cases(Path(__file__).with_name("warnings.txt"), shown)


def inputs(**over):
    space = Space(tuple(parameter(f"x{i}", step=5.0, integral=False) for i in range(6)))
    usual = PlanInputs(
        space=space,
        design=design(),
        shape=SHAPE,
        capacity=FLEET,
        seconds=2.0,
        draw_rate=0.6,
        replicas=16,
    )
    return replace(usual, **over)


def warned(asked, name):
    return [warning for warning in plan(asked).warnings if warning.name == name]


def test_a_budget_far_too_small_is_said_with_what_would_be_right():
    small = inputs(design=design(10, 40), elos_to_gain=(10.0,))
    (warning,) = warned(small, "max_iterations")
    assert warning.found.startswith("4,000 games recover ") and "too few" in warning.found
    said = "400 iterations recover half, or these games are enough for about 3 parameters"
    assert warning.remedy.startswith(said)
    large = inputs(design=design(60, 400), elos_to_gain=(10.0,))
    assert not warned(large, "max_iterations")


@pytest.mark.slow
def test_depth_is_dear_in_a_short_steep_run_and_free_in_a_long_flat_one():
    steep = design(24, 30, algorithm="spsa")
    flat = design(400)
    long = replace(SHAPE, iterations=400)
    assert free_in_flight(inputs(design=steep, shape=long, elos_to_gain=(300.0,))) == 1
    asked = inputs(design=flat, shape=long, elos_to_gain=(20.0,), replicas=64)
    assert plan(asked).free_in_flight == 4
    assert free_in_flight(replace(asked, shape=replace(long, iterations=399))) == 2


def test_openings_are_known_by_their_draws_and_pairs():
    """Exact moments of pairs between equals from openings in which one side is ahead."""
    for true in (Openings(draw_elo=200.0, ahead=150.0), Openings(draw_elo=500.0, ahead=0.0)):
        win, loss = (
            1 / (1 + 10 ** ((true.draw_elo - ahead) / 400)) for ahead in (true.ahead, -true.ahead)
        )
        pair_variance = 2 * (win + loss - (win - loss) ** 2)
        found = Openings.of(1 - win - loss, pair_variance)
        assert found.draw_rate == pytest.approx(true.draw_rate)
        assert (found.draw_elo, found.ahead) == pytest.approx((true.draw_elo, true.ahead), abs=0.1)
    assert Openings.of(0.0, 9.0).games_with(UNBALANCED_ELO) > 1
    assert Openings.of(1.0, 0.0).games_with(UNBALANCED_ELO) < 1


@pytest.mark.parametrize(
    ("draw_rate", "at_200", "at_300"), [(0.35, 0.8, 0.6), (0.82, 1.3, 1.6), (0.93, 1.6, 2.2)]
)
def test_unbalanced_openings_save_games_where_most_are_drawn(draw_rate, at_200, at_300):
    """Ratios of the information in a pair that were simulated before there was this formula."""
    openings = Openings.of(draw_rate)
    found = 1 / openings.games_with(200.0), 1 / openings.games_with(300.0)
    assert found == pytest.approx((at_200, at_300), abs=0.06)


@pytest.mark.slow
def test_slots_that_would_idle_are_said():
    flat = design(400)
    longer = replace(SHAPE, iterations=400, games=80)  # 40 s of games hide 30 s of builds
    found = plan(inputs(design=flat, shape=longer))
    names = [warning.name for warning in found.warnings]
    assert "iterations_in_flight" in names
    assert found.busy_in_flight is not None and found.busy_in_flight > 1
    assert plan(inputs(seconds=None)).pace is None


def test_builds_that_no_depth_hides_are_said():
    asked = inputs(shape=replace(SHAPE, in_flight=2), openings=Openings.of(0.85))  # 20 s of 30
    assert {"games_per_iteration", "book"} <= {warning.name for warning in plan(asked).warnings}
    long = inputs(shape=Shape(iterations=900, games=10, batch_games=4, in_flight=2))
    (told,) = [w for w in in_flight_warnings(long, 2, None) if w.name == "games_per_iteration"]
    assert told.remedy == "games_per_iteration = 40 and max_iterations = 225 shorten it"


def test_gains_that_lose_elo_are_not_blamed_on_the_budget():
    wild = design(algorithm="fishtest", settings={"r_end": 0.5})
    asked = inputs(design=wild, elos_to_gain=(10.0,))
    assert warned(asked, "spsa") and not warned(asked, "max_iterations")


def test_lines_are_in_the_units_of_the_parameter():
    line = plan(inputs()).lines[0]
    assert line.c_first == pytest.approx(5.0 * WIDEST)
    assert 5.0 * NARROWEST <= line.c_last <= line.c_first
    assert 0 < line.move_last < line.move_first


def test_no_match_is_no_curve_and_the_start_says_nothing():
    assert strength_curve([], [], []) is None
    assert strength_curve([0], [12.0], [5.0]) is None


def test_the_curve_is_the_conditional_mean_of_a_random_walk(monkeypatch):
    """One value of q; by the covariance q min(k, k') of the walk."""
    monkeypatch.setattr("spsa.planning.strength._CHANGES", np.array([16.0]))
    ks, elo, sd = [30, 50, 50, 100], [4.0, 9.0, 1.0, 14.0], [5.0, 6.0, 8.0, 4.0]
    found = strength_curve(ks, elo, sd)
    prior = 16.0**2 / 100 * np.minimum.outer(ks, ks)
    gain = prior @ np.linalg.inv(prior + np.diag(np.square(sd)))
    assert found.elo[1:] == pytest.approx(gain @ elo)
    assert found.deviation[1:] == pytest.approx(np.sqrt(np.diag(prior - gain @ prior)))


def test_neighbours_make_each_other_sharper_and_the_order_does_not_matter():
    ks = list(range(10, 110, 10))
    alone = strength_curve(ks[-1:], [10.0], [8.0])
    together = strength_curve(ks, [10.0] * 10, [8.0] * 10)
    assert together.deviation[-1] < 0.8 * alone.deviation[-1]
    backwards = strength_curve(ks[::-1], [10.0] * 10, [8.0] * 10)
    assert backwards == together


def test_the_interval_covers_a_strength_that_saturates_as_often_as_it_says():
    """No random walk: the gain of a tuning rises and levels off."""
    rng = np.random.default_rng(5)
    ks, inside, total = np.arange(50, 1050, 50), 0, 0
    for _ in range(300):
        truth = rng.uniform(0, 60) * (1 - np.exp(-ks / rng.uniform(50, 1000)))
        seen = truth + rng.normal(0, 12, ks.shape)
        found = strength_curve(ks.tolist(), seen.tolist(), [12.0] * len(ks))
        apart = np.abs(np.array(found.elo[1:]) - truth)
        inside += int((apart < 1.96 * np.array(found.deviation[1:])).sum())
        total += len(ks)
    assert 0.92 < inside / total < 0.99


def test_against_another_engine_the_start_has_an_elo_of_its_own():
    ks, elo = [0, 100, 200], [-150.0, -140.0, -120.0]
    found = strength_curve(ks, elo, [5.0] * 3, over_start=False)
    assert found.ks == (0, 100, 200)
    assert found.elo == pytest.approx(elo, abs=6.0)
    assert all(0.0 < sd < 6.0 for sd in found.deviation)
    moved = strength_curve(ks, [one + 500.0 for one in elo], [5.0] * 3, over_start=False)
    assert [b - a for a, b in zip(found.elo, moved.elo, strict=True)] == pytest.approx(
        [500.0] * 3, abs=0.1
    )
    assert strength_curve([7], [-9.0], [5.0], over_start=False).elo == pytest.approx(
        (-9.0,), abs=0.01
    )
