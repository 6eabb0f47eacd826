"""Engines that `validate` is given: what is refused, and to which run their match belongs."""

from dataclasses import replace
from io import StringIO
from pathlib import Path
from threading import Event
from unittest.mock import MagicMock

import pytest
from builders import TERMS, stage
from console import CONFIG, write_project
from rich.console import Console
from stories import Story

from spsa.cli.held_run import HeldRun, tune_and_measure
from spsa.config import load_config
from spsa.config.space import load_space
from spsa.core.game_settings import MinusSettings
from spsa.lifecycle import RunStatus
from spsa.master.match import ValidationMatch
from spsa.master.match_engines import MatchDelivery, run_of_match
from spsa.protocol import required_pattern


def test_what_no_match_can_be_made_of_is_refused(project, project_store, transcript):
    staged = stage(project_store, load_space(project / "params.toml"), planned=3)
    for folder in ("empty", "patch"):
        (project / folder).mkdir()
    transcript("what no match can be made of is refused")
    assert project_store.matches(staged.run.id) == []


@pytest.mark.usefixtures("project")
def test_what_is_no_engine_of_this_match_is_refused(transcript):
    transcript("programs")
    transcript("two engines")
    transcript("a binary is not for machines of all kinds")


def test_a_match_that_is_interrupted_is_told_what_continues_it(
    project, project_store, transcript, monkeypatch
):
    monkeypatch.setattr("spsa.cli.held_run.reopened", MagicMock())
    terms = replace(TERMS, engine_options={"UCI_Chess960": "true"})
    staged = stage(project_store, load_space(project / "params.toml"), 1, game_settings=terms)
    staged.validate()
    rows = [None, None, *3 * project_store.matches(staged.run.id)]
    monkeypatch.setattr("spsa.cli.held_run.Validation.run", lambda _: rows.pop(0))
    project_store.release_master_lease(staged.master)
    transcript("two engines")
    transcript("a match that is interrupted is told what continues it")


def test_a_run_is_measured_as_its_file_says_while_params_toml_is_edited(
    project, project_store, transcript, monkeypatch, capsys
):
    transcript("two engines")
    terms = replace(TERMS, engine_options={"Threads": "2"})
    staged = stage(project_store, load_space(project / "params.toml"), 1, game_settings=terms)
    master = MagicMock(**{"return_value.run.return_value": RunStatus.FINISHED})
    rows, played, shown = iter(("row", None)), [], StringIO()
    monkeypatch.setattr("spsa.cli.held_run.Master", master)
    monkeypatch.setattr(
        "spsa.cli.held_run.play_match", lambda _, _run, match: played.append(match) or next(rows)
    )
    for text, is_done in (
        ("", True),
        ("games = 8", True),
        (
            'games = 6\nevery = 2\nagainst = "script"\nhandicap = 2\n'
            '[validation.time_control]\nkind = "nodes"\nlow = 500\n',
            False,
        ),
    ):
        write_project(project, f"{CONFIG}[validation]\n{text}", "[margin")
        config = load_config(project / "config.toml", {})
        held = HeldRun(project_store, config, staged.master, Console(file=shown, width=99), Event())
        capsys.readouterr()
        assert tune_and_measure(held, MagicMock(run=staged.now(), notes=("one",))) is is_done
        said = capsys.readouterr()
        assert said.out == "" and said.err.startswith("note: one\ntheta is in the database, but")
        assert said.err.count("not in params.toml: ") == said.err.count("is not TOML") == 2
    start, engine = played
    told, name = "tuned; now {} games of the tuned values against {}\n".format, engine.minus.name
    assert shown.getvalue() == told(8, "the start") + told(6, name)
    assert (start.sides.minus, start.game_settings.minus) == ({"margin": 200, "depth": 3}, None)
    assert engine.game_settings.minus == MinusSettings(handicap=2.0, foreign=True)
    assert (engine.sides.minus, engine.asked.against, name[:8]) == ({}, name, "script (")
    assert engine.game_settings.limits == "nodes=500"
    assert engine.minus.delivery.options == {"Threads": "2"}
    _, alone, both = (call.kwargs for call in master.call_args_list)
    assert alone["background"] is None
    background = both["background"]
    assert (background.every, background.share, background.match.asked) == (2, 0.05, engine.asked)
    assert both["delivery"].minus is background.match.minus


@pytest.mark.usefixtures("project")
def test_a_match_has_as_many_games_as_its_shares_divide(transcript, monkeypatch):
    monkeypatch.setattr(
        "spsa.cli.validate.play_match",
        lambda held, _, match: held.console.print(f"{match.games} games"),
    )
    transcript("a match has as many games as its shares divide")


@pytest.mark.parametrize("options", [("--games", 10, "--handicap", 2), ("--sprt", 0, 5)])
def test_a_match_of_engines_that_was_left_goes_on_by_the_name_of_its_run_alone(
    project, project_store, ask, transcript, monkeypatch, options
):
    transcript("two engines")

    def leave(held, run, match):
        asked.append(match)
        if not held.store.matches(run.id):
            sides = MatchDelivery(plus=match.plus.delivery, minus=match.minus).prepare({}, {})
            held.store.open_iteration(held.master_lease, match.new_round(run, sides, 10, None))

    asked: list[ValidationMatch] = []
    monkeypatch.setattr("spsa.cli.validate.play_match", leave)
    assert ask("validate", "--plus", "script", "--minus", "other", *options).code == 130
    (project / "script").unlink()
    (project / "config.toml").write_text(CONFIG.replace("low = 150", "low = 151"))
    heard = ask("validate", "--run", "small-matches")
    assert heard.code == 130, heard.err
    (row,) = project_store.matches(project_store.run("small-matches").id)
    first, again = asked
    assert again.is_of(row) and again.games == first.games
    handicap = None if "--sprt" in options else MinusSettings(handicap=2.0)
    assert first.game_settings.minus == handicap
    sides = again.plus.delivery.prepare({}, {})
    assert again.minus is None and (sides.plus.engine.sha256, sides.minus.engine.sha256) == tuple(
        row.files
    )
    assert required_pattern(sides.requires) == row.requires


class Choosing(Story):
    def chosen(self, word=None) -> str:
        """The run of a match, and what it tunes."""
        run = run_of_match(load_config(Path("config.toml"), {}), self.store, word)
        return f"{run.name} is {run.status}, tunes {run.theta if run.tunes else 'nothing'}"


STORY = Choosing


@pytest.mark.usefixtures("project")
def test_a_match_of_engines_belongs_to_the_run_of_config_toml_if_that_can_play_it(told):
    told("a match of engines belongs to the run of config.toml if that can play it")


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_run_that_tunes_nothing_can_be_looked_at_and_not_be_extended(
    project, project_store, ask, transcript
):
    run_of_match(load_config(project / "config.toml", {}), project_store, None)
    transcript("a run that tunes nothing")
    assert ask("report", "--json").code == 0
