"""Validations: which thetas, how strong, what a sequential test accepts; thetas by their words."""

import json
from dataclasses import replace

import pytest
from builders import TERMS, new_validation, space_from, stage

from spsa.core.game_settings import MinusSettings
from spsa.core.scoring import Tally
from spsa.db.tables import Compared
from spsa.errors import InvalidInput, NothingToDo
from spsa.report.figures import figures
from spsa.report.matches import MATCHES, Match, named_theta
from spsa.report.report import history
from spsa.report.status import status
from spsa.report.table import record

pytestmark = pytest.mark.slow_on("postgresql")

SPACE = "[margin]\nvalue = 50\nmin = 0\nmax = 100\nstep = 8\n"
TEST = Compared(theta="4", against="2", time_control="60+0.6", sprt=(0.0, 5.0))


@pytest.fixture
def staged(store):
    return stage(store, space_from(SPACE), 4)


def test_a_match_says_what_it_compares_and_what_it_found(staged):
    staged.validate(games=40, compared=TEST)
    match = Match(*staged.store.matches(staged.run.id))
    first, second = match.sentences()
    assert first.startswith("4 against 2 at 60+0.6, test +0 +5: 40 games, Elo +")
    assert "normalised Elo" in first and "likelihood of superiority" in first
    assert second.startswith("test of normalised Elo +0 and +5: LLR ")
    assert second.endswith(", not decided")
    told = json.loads(json.dumps(record(MATCHES, match)))
    assert (told["compared"]["theta"], told["compared"]["against"]) == ("4", "2")
    assert (told["opened_on"], told["los"] > 0.5) == (4, True)
    assert told["sprt"]["accepted"] is None
    assert told["sprt"]["lower"] < told["sprt"]["llr"] < told["sprt"]["upper"]


def test_a_match_without_a_label_is_final_theta_against_the_start(staged):
    staged.validate()
    match = Match(*staged.store.matches(staged.run.id))
    (told,) = match.sentences()
    assert told.startswith("tuned values against start: ")


def test_rounds_are_one_match_with_their_sums(staged):
    store, run = staged.store, staged.run
    staged.validate(games=8, compared=Compared(theta="2", background=True), opened_on=2)
    (first,) = store.iterations(run.id, last=1)
    more = {"match_number": first.iteration_number, "opened_on": 2, "target_games": 8}
    staged.validate(**more, compared=first.compared)
    store.open_iteration(staged.master, new_validation(**more, compared=first.compared))
    (match,) = store.matches(run.id)
    assert (match.tally.games, match.target_games, match.status) == (16, 24, "in_progress")
    abandoned = store.open_iterations(run.id)[0]
    store.abandon_validation(staged.master, abandoned.id)
    (match,) = store.matches(run.id)
    assert (match.tally.games, match.target_games, match.status) == (16, 16, "complete")
    assert match.tally == sum((one.tally for one in store.iterations(run.id, match=5)), Tally())


def test_matches_of_the_same_sides_are_one_measurement(staged):
    told, test = [], Compared(sprt=(0.0, 5.0))
    for games, compared in ((40, None), (60, Compared()), (20, test), (8, test), (4, None)):
        staged.validate(games=games, compared=compared)
        told += [line for line in status(staged.store, staged.now()).sentences() if "(95%)" in line]
    games = [line.partition(", by ")[2].split()[0] for line in told]
    assert games == ["40", "100", "20", "8", "104"]


def test_several_thetas_are_one_curve_in_status_and_history(staged):
    for k in (2, 4):
        staged.validate(games=40, compared=Compared(theta=str(k)), opened_on=k)
    staged.validate(games=40, compared=Compared(against="2"))
    found = status(staged.store, staged.now())
    assert found.measured.curve.ks == (0, 2, 4)
    assert any("all matches to result" in line for line in found.sentences())
    told = history(staged.store, staged.now())
    assert [match.iteration.opened_on for match in told.validations] == [2, 4]
    assert told.measured.curve == found.measured.curve


def test_the_curve_is_of_one_time_control_that_of_the_background(staged):
    staged.validate(games=40, compared=Compared(theta="2", time_control="1+0"), opened_on=2)
    assert status(staged.store, staged.now()).measured.curve is None
    for k in (3, 4):
        assert history(staged.store, staged.now()).measured.curve is None, "one match is no curve"
        slow = Compared(theta=str(k), time_control="5+0", background=True)
        staged.validate(games=40, compared=slow, opened_on=k)
    staged.validate(games=40)
    assert history(staged.store, staged.now()).measured.curve.ks == (0, 3, 4)
    staged.store.release_master_lease(staged.master)


def test_a_curve_against_another_engine_is_labelled_as_such(staged):
    minus = MinusSettings(handicap=4, foreign=True)
    other = Compared(theta="2", against="fish (1a2b)", background=True)
    for k in (0, 2, 4):
        settings = replace(TERMS, minus=minus)
        staged.validate(games=40, compared=other, opened_on=k, game_settings=settings)
    staged.validate(games=40)
    found, told = status(staged.store, staged.now()), history(staged.store, staged.now())
    assert found.measured.curve.ks == (0, 2, 4)
    assert min(found.measured.curve.elo) > 50.0, "the start counts like all others"
    whom = "against fish (1a2b), handicap 4"
    assert any(f"Elo {whom} (95%), all matches to result 4" in line for line in found.sentences())
    assert [match.iteration.opened_on for match in told.validations] == [0, 2, 4]
    figure = figures(told)["elo"]
    assert figure["layout"]["yaxis"]["title"]["text"] == f"Elo {whom}"
    assert "estimate of the rule's model" not in {trace["name"] for trace in figure["data"]}
    assert "fish (1a2b), handicap 4" in Match(staged.store.matches(staged.run.id)[0]).setting


def test_a_run_measured_against_another_engine_alone_is_measured(staged):
    staged.validate(games=40, compared=Compared(against="fish (1a2b)"), minus_parameters={})
    told = list(status(staged.store, staged.now()).sentences())
    assert any("Elo against fish (1a2b) (95%), by 40 games of" in line for line in told), told
    staged.validate(games=8)
    assert status(staged.store, staged.now()).measured.over == "over the start"


def test_the_answer_of_a_test_of_two_engines_names_both(staged):
    values = {"plus_parameters": {}, "minus_parameters": {}}
    compared = Compared(theta="patch (1a2b)", against="main (3c4d)", sprt=(-200.0, -100.0))
    staged.validate(games=400, compared=compared, **values)
    found = status(staged.store, staged.now())
    (match,) = found.validations
    assert (match.theta, match.measured, found.measured.elo) == ("patch (1a2b)", (), None)
    told = [line for line in found.sentences() if "patch (1a2b) against main (3c4d)" in line]
    answer = [line for line in found.sentences() if "LLR" in line]
    assert len(told) == len(answer) == 1
    assert answer[0].endswith("H1 accepted: -100")
    assert record(MATCHES, match)["sprt"]["hypothesis"] == "H1"
    goes_on = new_validation(compared=replace(compared, sprt=(0.0, 5.0)), **values)
    staged.store.open_iteration(staged.master, goes_on)
    now = status(staged.store, staged.now())
    for seen in (now, replace(now, validations=())):  # opened after the matches were read
        first, *_ = seen.sentences()
        assert "a validation of 8 games, LLR +0.00 (-2.94, 2.94), " in first


def test_words_and_numbers_name_the_thetas_of_the_run(staged):
    def named(word):
        return named_theta(staged.store, staged.now(), word)

    steps = staged.store.steps(staged.run.id)
    assert named("start") == named("0") == ({"margin": 50}, 0)
    assert named("final") == named("4")
    assert named("2") == ({"margin": round(steps[1].theta_after["margin"])}, 2)
    with pytest.raises(NothingToDo, match="4 results, so no theta of k=5"):
        named("5")
    for word in ("best", "9" * 5000, "-1"):
        with pytest.raises(InvalidInput, match="write start, final, averaged, supported or"):
            named(word)
