"""What a run will take and bring: by arithmetic where there is some, else by simulation."""

import json
from dataclasses import asdict, astuple, replace
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
from builders import parameter, space_from
from golden import compare_cases
from outcomes import problem

from spsa.core.game_settings import GameSettings, TimeControl, TimeControlShare
from spsa.core.json_values import from_json
from spsa.core.params import Space
from spsa.core.scoring import Tally, elo
from spsa.planning.games_needed import cut
from spsa.planning.plan import (
    busy_in_flight,
    costs_elo,
    free_in_flight,
    in_flight_warnings,
    most_designs,
    plan,
)
from spsa.planning.plan_inputs import (
    UNBALANCED_ELO,
    Capacity,
    Openings,
    PlanInputs,
    Shape,
    adapted,
    game_seconds,
    noise,
    pace,
    time_control_costs,
)
from spsa.planning.plan_warnings import book_warnings, side_warnings, space_warnings
from spsa.planning.recovery import EngineAssumptions, RunDesign, coarser, recovery
from spsa.planning.simulated_run import SimulatedGames
from spsa.planning.strength import strength_curve

SHAPE = Shape(iterations=100, games=40, batch_games=4, in_flight=1)
FLEET = Capacity(concurrency=4, build_seconds=30.0)

ASSUMPTIONS = EngineAssumptions(elo_to_gain=30, draw_rate=0.5)


def design(iterations=60, pairs=20, n=6, **over):
    played = problem(np.zeros(n), reach=3.0, iterations=iterations, pairs=pairs)
    return replace(RunDesign(algorithm="mixture", settings={}, problem=played, in_flight=1), **over)


def test_costs_are_known_only_if_those_of_all_time_controls_are():
    both = tuple(
        TimeControlShare(time_control=TimeControl.parse(t)) for t in ("nodes=9", "depth=9")
    )
    settings = GameSettings(time_control=both[0].time_control, time_controls=both)
    found = list(time_control_costs(settings, 8, 3.0, [2.0, None]))
    assert [(one.games, one.seconds, one.part) for one in found] == 2 * [(4, None, None)]


def test_the_noise_of_an_iteration_is_what_equal_engines_show():
    rng = np.random.default_rng(5)
    pentanomials = SimulatedGames(0.6).play(np.zeros((2000, 1)), 75, rng).astype(int).tolist()
    seen = [elo(Tally(pentanomial=tuple(counts))).value for counts in pentanomials]
    assert np.std(seen) == pytest.approx(noise(0.6, 75), rel=0.06)


def test_every_engine_has_the_elo_to_gain_and_its_optimum_inside_the_bounds():
    narrow = replace(problem(np.full(6, 0.5)), lower=np.full(6, 0.2))
    engine = ASSUMPTIONS.engines(narrow, 500, np.random.default_rng(1))
    assert engine.elo(narrow.start) == pytest.approx(np.full((500, 1), -30))
    assert (engine.optimum >= narrow.lower).all()
    assert (engine.optimum <= narrow.upper).all()
    distance = np.abs(engine.optimum - narrow.start)
    assert distance.max() <= 2.5
    assert distance.min() >= 0.4


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


def facts(one):
    """The numbers of an object, each with its name."""
    return ", ".join(
        f"{name} {value:.6g}" for name, value in asdict(one).items() if not isinstance(value, str)
    )


def of_fleet(run, fleet, seconds=None, free=1):
    """How a run is cut, how long it takes, and what does not suit these machines."""
    shape, capacity = Shape(**run), Capacity(**fleet)
    asked = inputs(shape=shape, capacity=capacity, seconds=seconds)
    needed, busy = asked.games_needed, busy_in_flight(asked)
    sizes = cut(shape.games, shape.batch_games, capacity.concurrency)
    yield "batches " + ", ".join(f"{len([*g])} of {size}" for size, g in groupby(sizes))
    yield f"fitted: {facts(asked.fitted)}"
    if needed:
        yield f"adapted: {facts(adapted(shape, capacity, seconds))}"
        yield f"{facts(pace(shape, capacity, seconds))}, busy {busy}"
        enough = [needed.games_for(n) for n in (2, 5)]
        yield f"wanted {needed.wanted:.6g}, in flight {needed.in_flight}, enough {enough}"
    yield from map(str, in_flight_warnings(asked, free, busy))


def of_design(elos=(), run=None, seconds=2.0, replicas=4, **made):
    """What simulated runs of a design recover, and the plan if Elo to gain is given."""
    asked, calls = design(**made), []
    shorter, merged = coarser(asked)
    problem, settings = shorter.problem, shorter.settings
    yield f"as {problem.iterations} of {problem.pairs}, {shorter.in_flight} in flight, {settings}"
    if merged == 1:
        found = recovery(asked, ASSUMPTIONS, replicas=3, seed=3)
        yield f"{facts(replace(found, parts=found.mean))}, error {found.error:.6g}"
    if elos:
        terms = {"shape": Shape(**run) if run else SHAPE, "openings": Openings.of(0.85)}
        several = inputs(
            design=asked, elos_to_gain=elos, replicas=replicas, seconds=seconds, **terms
        )
        told = plan(replace(several, simulated=lambda: calls.append(1)))
        yield f"{len(calls)} of at most {most_designs(several)} designs, noise {told.noise:.6g}"
        yield f"free in flight {told.free_in_flight}, {facts(told.lines[0])}"
        yield from map(str, told.warnings)


def of_matches(**played):
    curve = strength_curve(**played)
    columns = astuple(curve) if curve else ()
    yield from (" ".join(f"{x:.6g}" for x in column) for column in columns)


def of_control(control):
    """The seconds of a game, where the nodes a second are known and where they are not."""
    for nps in (1e6, None):
        seconds = game_seconds(from_json(TimeControl, control), nps)
        yield "unknown" if seconds is None else f"{seconds:.6g} s"


def of_loss(lost, error):
    yield "it costs Elo" if costs_elo(lost, error) else "it may cost nothing"


KINDS = {"fleet": of_fleet, "ks": of_matches, "control": of_control, "lost": of_loss}


@pytest.mark.parametrize("file", ["numbers", "fleets", "designs", "plans", "curves"])
def test_what_is_planned(file):
    def shown(files):
        given = {name: json.loads(text) for name, text in files.items()}
        return next((KINDS[name] for name in given if name in KINDS), of_design)(**given)

    compare_cases(Path(__file__).with_name(f"{file}.txt"), shown)


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
    assert "iterations_in_flight" in [warning.name for warning in found.warnings]
    assert found.busy_in_flight is not None and found.busy_in_flight > 1
    assert plan(inputs(seconds=None)).pace is None


def test_the_curve_is_the_conditional_mean_of_a_random_walk(monkeypatch):
    """One value of q; by the covariance q min(k, k') of the walk."""
    monkeypatch.setattr("spsa.planning.strength._CHANGES", np.array([16.0]))
    ks, elo, sd = [30, 50, 50, 100], [4.0, 9.0, 1.0, 14.0], [5.0, 6.0, 8.0, 4.0]
    found = strength_curve(ks, elo, sd)
    prior = 16.0**2 / 100 * np.minimum.outer(ks, ks)
    gain = prior @ np.linalg.inv(prior + np.diag(np.square(sd)))
    assert found.elo[1:] == pytest.approx(gain @ elo)
    assert found.deviation[1:] == pytest.approx(np.sqrt(np.diag(prior - gain @ prior)))


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
