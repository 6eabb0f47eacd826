"""`params import` and `params export`: what they write, print and refuse."""

from pathlib import Path

import pytest

from spsa.config import load_config
from spsa.config.space import load_space

LINES = "razor,446.5,0,892,44,0.002\nlmr,18,-20,60,4,0.002\n"
CONFIG = '[delivery]\nkind = "uci"\nengine = "engine"\n'


@pytest.fixture(autouse=True)
def folder(folder):
    (folder / "tune.txt").write_text(LINES)
    (folder / "config.toml").write_text(CONFIG)
    return folder


def test_a_tune_is_imported_with_what_goes_into_config_toml(folder, ask):
    asked = ["--games", "60000", "--played", "20000", "--games-per-iteration", "20"]
    said = ask("params", "import", "tune.txt", *asked)
    assert said.code == 0
    assert "2 parameters of tune.txt, format fishtest\nstep = c_end" in said.err
    assert [p.value for p in load_space(folder / "params.toml").parameters] == [446.5, 18]
    (folder / "config.toml").write_text(CONFIG + said.out)
    config = load_config(folder / "config.toml", {})
    assert (config.spsa.algorithm, config.spsa.max_iterations) == ("fishtest", 2000)
    assert (config.games.games_per_iteration, config.spsa.settings["played"]) == (20, 1000)
    assert config.spsa.settings["A"] == 300


def test_an_export_is_what_was_imported_without_a_config_toml(ask):
    Path("config.toml").unlink()
    assert ask("params", "import", "tune.txt").code == 0
    assert ask("params", "export", "--format", "fishtest").out == LINES
    heard = ask("params", "export", "--format", "toml")
    assert heard.code == 0 and "value = 446.5" in heard.out


def test_scaled_parameters_are_exported_as_the_engine_gets_them(folder, ask):
    (folder / "params.toml").write_text(
        '[base]\nvalue = 0.75\nmin = 0.29\nmax = 2\nstep = 0.05\nscale = 100\noption = "Base"\n'
        "[off]\nvalue = 1\nmin = 0\nmax = 2\nstep = 1\nactive = false\n"
    )
    said = ask("params", "export", "--format", "openbench")
    assert said.code == 0
    assert said.out == "Base, int, 75, 29, 200, 5, 0.002\n"
    assert said.err == "1 frozen parameter left out\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["import", "bad.txt"], "bad.txt:2: [B] 2 fields instead of 6"),
        (["import", "tune.txt", "--output", "config.toml"], "is there already; use --force"),
        (["import", "tune.txt", "--games", "100", "--played", "100"], "no iteration is left"),
        (["import", "tune.txt", "--games-per-iteration", "3"], "odd"),
        (["import", "missing.txt"], "missing.txt"),
        (["export", "--format", "fishtest"], "params.toml:1: [x] is no whole number"),
        (["export", "--format", "toml", "--theta", "start"], "--theta is about a run"),
    ],
)
def test_bad_input_is_refused_with_2_and_nothing_written(folder, arguments, said, ask):
    (folder / "bad.txt").write_text("A,1,0,9,1,0.002\nB,2\n")
    if arguments[0] == "export":
        (folder / "params.toml").write_text("[x]\nvalue = 0.5\nmin = 0\nmax = 1\nstep = 0.1\n")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    heard = ask("params", *arguments)
    assert heard.code == 2 and said in heard.err
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
