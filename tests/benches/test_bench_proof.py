"""The proof on a real engine: its parameters and its arithmetic."""

from pathlib import Path

import pytest
from golden import compare

from benches.proof.markdown import markdown
from benches.proof.places import DETUNED_STEPS, Plan, places
from benches.proof.verdict import Proof, Verdict, recovered
from spsa.config.space import load_space
from spsa.core.scoring import Tally, elo
from spsa.master.start import checked_space
from spsa.report.matches import ThetaChoice

# 400 games; a little less than 200 and about 100 Elo behind, and level
FAR = Tally(wins=80, losses=290, draws=30, pentanomial=(110, 30, 50, 5, 5))
NEAR = Tally(wins=128, losses=240, draws=32, pentanomial=(70, 25, 80, 17, 8))
LEVEL = Tally(wins=180, losses=180, draws=40, pentanomial=(40, 20, 80, 20, 40))


def test_every_parameter_starts_some_steps_from_the_engines_own_value(tmp_path):
    (place,) = places(Plan(rules=["mixture"]), tmp_path)
    space = checked_space(place.config())
    own = place.own()
    away = space.start() - space.steps(own)
    assert len(space.active) >= 12
    assert (abs(away) >= 1).all() and (abs(away) <= 3.5).all()
    assert (away < 0).any() and (away > 0).any()
    assert space.rounded(space.steps(own)) == own, "the untouched engine is not in the space"


def test_another_engine_is_detuned_alike_for_every_rule(tmp_path):
    tuning = tmp_path / "tuning"
    tuning.mkdir()
    (tuning / "config.toml").write_text(
        '[run]\nname = "mine"\n[spsa]\nalgorithm = "spsa"\na = 0.3\nmax_iterations = 9\n'
        '[build]\nsource_path = "../engine"\n[time_control]\nkind = "nodes"\nlow = 90\nhigh = 90\n'
    )
    table = "p{} = {{ value = 50, min = {}, max = 100, step = 10 }}\n"
    params = "".join(table.format(i, low) for i, low in enumerate((0, 0, 45)))
    (tuning / "params.toml").write_text(params)
    first, second = places(Plan(tuning=tuning, rules=["mixture", "fishtest"]), tmp_path / "proof")
    start, same = (load_space(place.folder / "params.toml").start() for place in (first, second))
    away = start - load_space(tuning / "params.toml").start()
    assert (start == same).all() and (abs(away) <= DETUNED_STEPS).all()
    assert (away != 0).any() and away[2] >= -0.5
    assert first.own() == {"p0": 50, "p1": 50, "p2": 50}
    config = first.config()
    assert config.build.source_path == tmp_path / "engine"
    assert (config.spsa.max_iterations, config.spsa.settings) == (9, {})
    (other, _) = places(Plan(tuning=tuning, rules=["mixture", "spsa"], detune=2), tmp_path / "two")
    assert (load_space(other.folder / "params.toml").start() != start).any()


def test_recovered_is_the_part_of_the_loss_that_came_back():
    half = recovered(NEAR, FAR)
    assert half.value == pytest.approx(1 - elo(NEAR).value / elo(FAR).value)
    assert 0.3 < half.value < 0.7
    assert recovered(FAR, FAR).value == 0.0
    assert recovered(LEVEL, FAR).value == 1.0
    # the error of the start does not matter to what is level with the untouched engine
    assert recovered(LEVEL, FAR).error == pytest.approx(elo(LEVEL).error / -elo(FAR).value)
    assert recovered(NEAR, LEVEL).error == float("inf")


def test_the_tables_say_who_came_how_far_and_compare_rules_seed_by_seed():
    rules, seeds = ("spsa", "mixture", "spsa", "mixture", "mixture"), (1, 1, 2, 2, 3)
    played = zip(rules, seeds, (FAR, NEAR, NEAR, LEVEL, FAR), strict=True)
    runs = tuple(
        Verdict(
            rule=rule,
            which=ThetaChoice.FINAL,
            seed=seed,
            games=2000,
            seconds=600.0,
            match=match,
            away={"margin": -0.5},
        )
        for rule, seed, match in played
    )
    proof = Proof(FAR, {"margin": 2.0}, {"margin": 110.0}, runs)
    compare(Path(__file__).with_name("proof.md"), markdown(proof))
    ((rules, by),) = proof.differences().items()
    assert rules == ("mixture", "spsa")
    gained = [elo(NEAR).value - elo(FAR).value, -elo(NEAR).value]
    assert by.value == pytest.approx(sum(gained) / 2)
    # of two values the deviation is their distance / sqrt 2, that of the mean half their distance
    assert by.error == pytest.approx(12.706 * abs(gained[0] - gained[1]) / 2)
