"""What is shown by time control where there are several, and the alarm that two disagree."""

import io
from dataclasses import replace

import numpy as np
import pytest
from builders import new_iteration, new_run, of_nodes, parameter, play, several, tunable_run
from masters import FakeSleep, RunUnderTest
from rich.console import Console

from spsa.algorithms.time_controls import TimeControlSums
from spsa.core.params import Space
from spsa.core.scoring import Tally
from spsa.lifecycle import Purpose, RunStatus
from spsa.report.alarms import look, of_time_controls
from spsa.report.events import MINOR, AlarmKind
from spsa.report.html import page
from spsa.report.matches import TIME_CONTROLS
from spsa.report.report import report, settings_of
from spsa.report.screen import screen
from spsa.report.status import STATUS, status
from spsa.report.table import record

TWO = several(of_nodes(200, share=3), of_nodes(400))
SPACE = Space((parameter("margin"), parameter("calm")))
CHANCES = np.array([0.05, 0.2, 0.5, 0.2, 0.05])


def played(store, game_settings):
    tested = RunUnderTest(store, iterations=6, game_settings=game_settings)
    tested.master(FakeSleep(lambda: play(store))).run()
    return tested.now()


def validated(store, run, **over):
    """A match, by itself against the start, with both time controls."""
    master = store.acquire_master_lease(run.id, "m", 1000)
    facts = {"purpose": Purpose.VALIDATE, "k": None, "a_k": None, "c_k": None, "opened_on": 6}
    store.open_iteration(master, new_iteration(**facts | over, game_settings=TWO, target_games=16))
    play(store)
    return master


def test_a_run_with_several_shows_each_everywhere(store):
    run = played(store, TWO)
    for _ in "12":
        validated(store, run)
    found = look(store, run)
    rows = found.time_controls
    assert [(r.limits, r.purpose, r.share, r.tally.games) for r in rows] == [
        ("nodes=200", "tune", 0.75, 36),
        ("nodes=400", "tune", 0.25, 12),
        ("nodes=200", "validate", 0.75, 24),
        ("nodes=400", "validate", 0.25, 8),
    ]
    assert sum((r.tally for r in rows[:2]), Tally()) == found.totals.tally
    assert sum(r.weight * r.tally.pairs for r in rows[:2]) == pytest.approx(24)
    assert [r.weight for r in rows[2:]] == [None, None]
    (first, *_) = record(STATUS, found)["time_controls"]
    assert first["time_control"] == "nodes=200" and first["tally"]["elo_error"] > 0
    assert (first["draw_rate"], first["game_seconds"]) == (rows[0].tally.draws / 36, 0.0)
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(screen(found, console))
    made = report(store, run)
    assert (TIME_CONTROLS, rows) in [*made.tables()]
    html = page(made)
    for text in (console.export_text(), html):
        assert "time controls" in text and "nodes=400" in text and "draws" in text
    told = dict(settings_of(run))
    assert told["time_control"] == "nodes=200, share 3, nodes=400, share 1"
    assert told["ended"].endswith(" UTC")


def test_matches_of_engines_show_the_games_that_count_of_the_last_one(store):
    over = {"status": RunStatus.FINISHED, "finished_at": store.clock(), "max_iterations": 0}
    plain = {"theta": {}, "space": Space(()).to_json()}
    run = store.create_run(new_run(game_settings=TWO, **plain, **over))
    validated(store, run, plus_parameters={}, minus_parameters={})
    (first,) = store.open_iterations(run.id)
    master = validated(store, run, plus_parameters={}, match_number=first.iteration_number)
    store.abandon_validation(master, store.open_iterations(run.id)[1].id)
    rows = status(store, run).time_controls
    assert [(r.purpose, r.tally.games) for r in rows] == [("validate", 12), ("validate", 4)]
    html = page(report(store, run))
    assert "its validation was left after" in html and "16 games, Elo" in html
    assert "not measured" not in html and "How to reproduce it" not in html


def alarms(pull, seed, results=300, looks=50):
    """The subjects of the alarms at any look; `pull` is w a pair for a difference of 1, (T, n)."""
    rng, found = np.random.default_rng(seed), set()
    controls = several(*(of_nodes(100 * (1 + number)) for number in range(len(pull))))
    run = tunable_run(SPACE, 500, game_settings=controls)
    sums = TimeControlSums.nothing(*pull.shape)
    for k in range(1, results + 1):
        difference = rng.choice([-2.0, 2.0], pull.shape[1])
        each = [CHANCES + lead * np.arange(-2, 3) / 10 for lead in pull @ difference]
        sums = sums.after(np.array([rng.multinomial(20, p) for p in each]), difference)
        if k % looks == 0:
            found |= {one.subject for one in of_time_controls(replace(run, applied=k), sums)}
    return found


def test_two_time_controls_that_pull_a_parameter_apart_are_told():
    assert alarms(np.array([[0.06, 0.03], [-0.06, 0.03]]), 1) == {"margin"}
    assert alarms(np.array([[0.03, 0.0], [0.06, 0.05], [0.03, -0.05]]), 2) == {"calm"}


@pytest.mark.slow
@pytest.mark.parametrize("pull", [np.zeros((2, 2)), np.full((2, 2), 0.03), np.zeros((3, 2))])
def test_time_controls_that_agree_are_hardly_ever_told_apart(pull):
    assert sum(bool(alarms(pull, seed)) for seed in range(60)) <= 1


@pytest.mark.slow
def test_one_that_says_nothing_is_not_against_the_others():
    assert sum(bool(alarms(np.array([[0.06, 0.06], [0.0, 0.0]]), seed)) for seed in range(60)) <= 3


def test_few_results_tell_nothing():
    assert not alarms(np.array([[0.1, 0.0], [-0.1, 0.0]]), 1, results=25, looks=5)


def test_the_alarm_names_both_and_what_to_do(store):
    run = played(store, TWO)
    pull = np.array([[9.0, -2.0], [-7.0, -2.0]])
    ones = np.ones((2, 1))
    sums = TimeControlSums(pairs=ones, squares=ones, pull=pull, pull_squares=np.ones((2, 2)))
    (found,) = of_time_controls(replace(run, applied=40), sums)
    assert found.kind is AlarmKind.TIME_CONTROLS and found.kind in MINOR
    assert str(found).startswith(
        "margin: nodes=200 pulls it up by 9.0 standard deviations, nodes=400 down by 7.0; "
    )
    assert "[[time_control]]" in found.advice
    near = replace(sums, pull=np.array([[2.85, 2.75], [-2.85, -2.75]]))  # 2.81 of two parameters
    assert [one.subject for one in of_time_controls(replace(run, applied=40), near)] == ["margin"]
    assert list(of_time_controls(run, None)) == []
