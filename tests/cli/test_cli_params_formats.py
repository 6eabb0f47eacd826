"""`params import` and `params export`: files, config.toml, and what is refused."""

from pathlib import Path

import pytest
from console import Ask

from spsa.config import load_config, load_space

LINES = "razor,446.5,0,892,44,0.0020\nlmr,18,-20,60,4,0.0020\n"
CONFIG = """\
# my engine
[games]
games_per_iteration = 300   # many
batch_size = 50

[spsa]
algorithm = "spsa"
noise_walk = 2.0
stop_when = 0.5

[delivery]
kind = "uci"
engine = "engine"
"""


@pytest.fixture(autouse=True)
def folder(folder: Path) -> Path:
    (folder / "tune.txt").write_text(LINES)
    (folder / "config.toml").write_text(CONFIG)
    return folder


def test_a_tune_is_imported_into_both_files(folder: Path, ask: Ask) -> None:
    asked = ["--games", "60000", "--played", "20000", "--games-per-iteration", "20"]
    said = ask("params", "import", "tune.txt", *asked, "--write-config", "config.toml")
    assert said.code == 0
    assert "2 parameters of tune.txt, format fishtest\nstep = c_end" in said.err
    assert 'algorithm = "fishtest"\nmax_iterations = 2000\nplayed = 1000\n' in said.out
    assert [p.value for p in load_space(folder / "params.toml").parameters] == [446.5, 18]
    text = (folder / "config.toml").read_text()
    config = load_config(folder / "config.toml", {})
    assert text.startswith("# my engine\n") and "# many" in text
    assert (config.spsa.algorithm, config.spsa.max_iterations, config.games.batch_size) == (
        "fishtest", 2000, 20
    )  # fmt: skip
    assert config.spsa.settings["A"] == 300 and "noise_walk" not in text
    assert "stop_when = 0.5" in text


def test_an_import_keeps_the_places_of_the_source_that_init_found(folder: Path, ask: Ask) -> None:
    (folder / "margins.txt").write_text(
        "RazorMargin, int, 80, 10, 150, 8, 0.002\nLMRBase, float, 0.75, 0, 2, 0.1, 0.002\n"
    )
    (folder / "config.toml").write_text('[build]\nsource_path = "."\n')
    was = '[razor_margin]\nvalue = 70\nmin = 9\nmax = 99\nstep = 7\nconstant = "s.h::RazorMargin"\n'
    (folder / "params.toml").write_text(was)
    heard = ask("params", "import", "margins.txt", "--force")
    assert heard.code == 0 and "1 of them stay where they are in the source" in heard.err
    razor, base = load_space(folder / "params.toml").parameters
    assert str(razor.place.location) == "s.h::RazorMargin" and (razor.value, razor.step) == (80, 8)
    assert str(base.place.location) == "LMRBASE"
    (folder / "params.toml").write_text(was)
    (folder / "config.toml").write_text(CONFIG)  # which tunes UCI options
    assert ask("params", "import", "margins.txt", "--force").code == 0
    assert "constant" not in (folder / "params.toml").read_text()
    (folder / "config.toml").unlink()
    (folder / "params.toml").write_text(was + 'option = "RazorMargin"\n')
    assert ask("params", "import", "margins.txt", "--force").code == 0
    assert "constant" not in (folder / "params.toml").read_text()


def test_an_export_is_imported_as_the_same_parameters(folder: Path, ask: Ask) -> None:
    heard = ask("params", "import", "tune.txt")
    assert heard.code == 0 and "no --games" in heard.err
    assert ask("params", "export", "--format", "fishtest").out == LINES.replace("20\n", "2\n")
    assert ask("params", "import", "tune.txt", "--force", "--format", "fishtest").code == 0
    heard = ask("params", "export", "--format", "json")
    assert heard.code == 0 and '"value": 446.5' in heard.out


def test_scaled_parameters_are_exported_as_the_engine_gets_them(folder: Path, ask: Ask) -> None:
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
        (["import", "ob.txt"], "ob.txt:1: [A] 6 fields instead of 7"),
        (["import", "ob.txt"], 'ob.txt:2: [B] "double" is no type; write int or float'),
        (["import", "tune.txt", "--output", "config.toml"], "is there already; use --force"),
        (["import", "tune.txt", "--games", "100", "--played", "100"], "no iteration is left"),
        (["import", "tune.txt", "--games-per-iteration", "3"], "odd"),
        (["import", "missing.txt"], "missing.txt"),
        (["import", "tune.txt", "--format", "clop"], "clop"),
        (["export", "--format", "fishtest"], "params.toml:1: [x] is no whole number"),
        (["export", "--format", "json", "--theta", "start"], "--theta is about a run"),
    ],
)
def test_bad_input_is_refused_with_2_and_nothing_written(
    folder: Path, arguments: list[str], said: str, ask: Ask
) -> None:
    (folder / "bad.txt").write_text("A,1,0,9,1,0.002\nB,2\n")
    (folder / "ob.txt").write_text("A,int,1,0,9,1\nB,double,1,0,9,1,0.002\nC,int,1,0,9,1,0.002\n")
    if arguments[0] == "export":
        (folder / "params.toml").write_text("[x]\nvalue = 0.5\nmin = 0\nmax = 1\nstep = 0.1\n")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    heard = ask("params", *arguments)
    assert heard.code == 2 and said in heard.err
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_a_params_toml_alone_is_exported(folder: Path, ask: Ask) -> None:
    (folder / "config.toml").unlink()
    assert ask("params", "import", "tune.txt").code == 0
    assert ask("params", "export", "--format", "fishtest").out == LINES.replace("20\n", "2\n")
