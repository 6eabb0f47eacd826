"""`plan` as a person calls it."""

import json
from contextlib import closing

import pytest
from builders import stage
from console import CONFIG, write_project
from shell import Shell

from spsa.config import load_config
from spsa.config.space import load_space
from spsa.core import Builds
from spsa.core.scoring import Tally
from spsa.master.delivery_setup import delivery_settings
from spsa.protocol import BatchResult

QUICK = CONFIG.replace("= 4\n[build]", "= 20\n[build]").replace("iteration = 8", "iteration = 40")


@pytest.fixture
def quick(project):
    write_project(project, config=QUICK)
    return project


def test_a_plan_is_made_without_a_database_and_leaves_none(quick, transcript):
    before = sorted(path.name for path in quick.rglob("*"))
    transcript("what the command line says goes before assumptions")
    assert sorted(path.name for path in quick.rglob("*")) == before
    transcript("each of several time controls has its cost")
    transcript("iterations in flight follow the fleet unless their number is written")


@pytest.mark.usefixtures("quick")
def test_batches_are_as_small_as_the_master_cuts_them(transcript):
    transcript("batches are as small as the master cuts them")


def test_what_runs_have_measured_under_the_same_terms_is_used(quick, project_store, ask):
    config, drawn = load_config(quick / "config.toml", {}), (0, 1, 28, 1, 0)
    terms = {"game_settings": config.game_settings}
    staged = stage(project_store, load_space(quick / "params.toml"), **terms)
    staged.open(target_games=60, batch_games=60, **terms)
    played = {"tally": Tally(1, 1, 58, drawn), "moves": 6000, "seconds": 150.0}
    project_store.report(staged.claim("c"), BatchResult(**played))
    project_store.tick(staged.master, 60, Builds(usual=77.0))
    found = ask("plan", "--json").json
    assert found["pace"]["game"] == pytest.approx(2.5)
    assert found["draw_rate"] == pytest.approx(0.94375) and found["games_if_unbalanced"] < 0.5
    assert "book" in [warning["name"] for warning in found["warnings"]]
    assert any("measured over 60 games" in source for source in found["sources"])
    assert not any("77 s" in source for source in found["sources"]), "of another command"
    with closing(Shell(project_store.where)) as sql:
        text = "UPDATE spsa_run SET settings = json_set(settings, '$.delivery', json(:d))"
        sql(text, d=json.dumps(delivery_settings(config)))
    unbalanced = QUICK.replace("[games]", '[games]\nbook = "builtin:unbalanced"')
    write_project(quick, unbalanced.replace("[build]", "[build]\nat_once = 9"))
    found = ask("plan", "--json").json
    assert "two builds take 77 s: measured by the last run" in found["sources"]
    assert found["games_if_unbalanced"] is None, "the draws were of another book"
