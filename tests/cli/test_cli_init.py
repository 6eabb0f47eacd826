"""`init` proposes what loads, overwrites nothing, and refuses what would not load."""

import tomllib
from pathlib import Path

import pytest
from console import SOURCE


@pytest.fixture
def engine(folder):
    source = folder / "engine" / "src"
    source.mkdir(parents=True)
    (source / "engine_constants.rs").write_text(SOURCE)
    (source / "main.rs").write_text("fn main() {}\n")
    (folder / "engine" / "Cargo.toml").write_text('[package]\nname = "e"\nversion = "1.0.0"\n')
    return folder / "engine"


@pytest.mark.parametrize(
    ("arguments", "config"),
    [(["{engine}"], "config.toml"), (["engine", "--folder", "deep/down"], "deep/down/config.toml")],
)
def test_what_it_writes_loads(engine, arguments, config, ask):
    assert ask("init", "--no-try", *(text.format(engine=engine) for text in arguments)).code == 0
    shown = ask("params", "show", "--config", config)
    assert shown.code == 0 and "margin" in shown.out
    unchanged = ask("params", "diff", "--config", config)
    assert unchanged.out == "" and "the source has these values already" in unchanged.err


@pytest.mark.parametrize(
    ("arguments", "size"),
    [(["-c", "8"], (30, 1000, 10)), (["-c", "8", "--games", "800"], (8, 100, 8))],
)
def test_a_run_is_as_large_as_asked_in_iterations_as_small_as_plan_advises(
    engine, arguments, size, ask
):
    assert ask("init", "--no-try", "engine", *arguments).code == 0
    config = tomllib.loads(Path("config.toml").read_text())
    games = config["games"]
    assert size == (
        games["games_per_iteration"], config["spsa"]["max_iterations"], games["batch_size"]
    )  # fmt: skip


def test_it_overwrites_nothing(engine, ask):
    name = "params.toml"
    Path(name).write_text("mine")
    before = sorted(Path().iterdir())
    heard = ask("init", "--no-try", "engine")
    assert heard.code == 2 and "is there already" in heard.err
    assert Path(name).read_text() == "mine" and sorted(Path().iterdir()) == before
    assert ask("init", "--no-try", "engine", "--force").code == 0
    assert Path(name).read_text() != "mine"


@pytest.mark.parametrize(
    ("arguments", "code"), [(["."], 2), (["engine", "--folder", "engine/Cargo.toml/x"], 1)]
)
def test_what_would_not_load_is_not_written(engine, arguments, code, ask):
    before = sorted(Path().rglob("*"))
    heard = ask("init", "--no-try", *arguments)
    assert (heard.code, heard.out) == (code, "") and sorted(Path().rglob("*")) == before


def test_another_language_is_refused_with_the_way_by_options(folder, ask):
    for name in ("go/main.go", "go/search.go", "go/tb/probe.c"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("int margin = 80;\n")
    heard = ask("init", "go")
    assert heard.code == 2 and "is written in Go" in heard.err and "init --engine" in heard.err


def test_every_file_is_read_and_what_is_skipped_is_told(engine, ask):
    (engine / "src" / "engine_constants.rs").unlink()
    (engine / "src" / "search.rs").write_text(
        "use crate::types::Depth;\nconst RAZOR_DEPTH: Depth = 200;\nconst MAX_DEPTH: Depth = 250;\n"
        "const TICK_MILLIS: u16 = 9;\n"
    )
    (engine / "src" / "types.rs").write_text("pub type Depth = u8;\n")
    (engine / "src" / "eval.rs").write_text(
        "const ROOK: i32 = 500;\nconst OPEN: (i8, i8) = (9, 90);\n"
    )
    (engine / "tests").mkdir()
    (engine / "tests" / "eval.rs").write_text("const ROOK_IN_TESTS: i32 = 500;\n")
    said = ask("init", "--no-try", "engine").err
    assert "by its name: max_depth" in said and "the clock" in said
    params = tomllib.loads(Path("params.toml").read_text())
    assert list(params) == ["rook", "open_0", "open_1", "razor_depth"]
    assert params["razor_depth"]["constant"] == "src/search.rs::RAZOR_DEPTH"
    assert (params["razor_depth"]["max"], params["open_1"]["max"]) == (255, 127)
    assert (
        tomllib.loads(Path("config.toml").read_text())["build"]["constants_file"] == "src/eval.rs"
    )
    assert "source has" not in ask("params", "show").out
    Path("params.toml").write_text(
        Path("params.toml").read_text().replace("value = 200", "value = 210")
    )
    assert "source has 200" in ask("params", "show").out


def test_a_member_of_a_workspace_is_built_from_its_root(engine, ask):
    Path("Cargo.toml").write_text('[workspace]\nmembers = ["engine", "tables"]\n')
    Path("tables/src").mkdir(parents=True)
    Path("tables/Cargo.toml").write_text('[package]\nname = "tables"\nversion = "1.0.0"\n')
    Path("tables/src/lib.rs").write_text("pub const PAWN_VALUE: i32 = 100;\n")
    assert ask("init", "--no-try", "engine", "--folder", "tune").code == 0
    build = tomllib.loads(Path("tune/config.toml").read_text())["build"]
    assert (Path("tune") / build["source_path"]).resolve() == Path().resolve()
    assert build["package"] == "e"
    assert build["constants_file"] == "engine/src/engine_constants.rs"
    params = tomllib.loads(Path("tune/params.toml").read_text())
    assert params["pawn_value"]["constant"] == "tables/src/lib.rs::PAWN_VALUE"
    assert ask("params", "show", "--config", "tune/config.toml").code == 0


OPTIONS = """\
option name Hash type spin default 16 min 1 max 1024
option name Ponder type check default false
option name LMR Base type spin default 75 min 30 max 150
option name razor-margin type spin default 300 min -2147483648 max 2147483647
option name RAZOR_margin type spin default 40 min 10 max 80
option name contempt type spin default 0 min -50 max 50
option name Level type spin default 0 min 0 max 12
option name odd type spin default 9 min 10 max 80
option name Move Overhead type spin default 10 min 0 max 5000
option name LMRDivisor type string default 2.25
option name NMPDepth type string default 3
option name SyzygyPath type string default <empty>
option name Style type string default 0
"""


REPLIES = """\
while read -r line; do
  case "$line" in
    quit) exit ;;
    isready) echo readyok ;;
    tune) cat listed 2>/dev/null ;;
  esac
done
"""


@pytest.fixture
def uci(engine):
    path = Path("many")
    path.write_text(f"#!/bin/sh\ncat <<E\n{OPTIONS}uciok\nE\n{REPLIES}")
    path.chmod(0o755)
    return path


def test_an_engines_options_become_parameters(uci, ask):
    said = ask("init", "--no-try", "--engine", uci).err
    assert "skipped 4, an option of the protocol" in said and "no number: set it" in said
    assert "without a default between a minimum and a maximum: odd" in said
    params = tomllib.loads(Path("params.toml").read_text())
    assert {name: tuple(one.values()) for name, one in params.items()} == {
        "lmr_base": (75, 30, 150, 6, "LMR Base"),
        "razor_margin": (
            300,
            150,
            600,
            22,
            "razor-margin",
            f"its author has {-(2**31)} to {2**31 - 1}",
        ),
        "razor_margin_2": (40, 10, 80, 4, "RAZOR_margin"),
        "lmr_divisor": (2.25, 1.125, 4.5, 0.10125, "LMRDivisor"),
        "nmp_depth": (3, 1, 6, 1, "NMPDepth"),
    }
    assert ask("params", "show").code == 0
    config = tomllib.loads(Path("config.toml").read_text())
    assert config["delivery"] == {"kind": "uci", "engine": "many"}
    assert config["games"]["games_per_iteration"] == 30


def test_ranges_that_an_engine_lists_for_openbench_go_before_its_options(uci, ask):
    Path("listed").write_text(
        "LMR Base, int, 75, 40, 120, 7.5, 0.002\nLMRDivisor, float, 2.25, 1, 4, 0.25, 0.002\n"
        "Hash, int, 16, 1, 1024, 10, 0.002\nRAZOR_margin, int, 40, 30, 45, 10, 0.002\n"
    )
    uci.write_text(uci.read_text().replace("cat listed", f"cat {Path('listed').resolve()}"))
    assert ask("init", "--no-try", "--engine", uci).code == 0
    text = Path("params.toml").read_text()
    assert {name: tuple(one.values()) for name, one in tomllib.loads(text).items()} == {
        "lmr_base": (75, 40, 120, 7.5, "LMR Base", "int"),
        "lmr_divisor": (2.25, 1.0, 4.0, 0.25, "LMRDivisor", "float"),
        "razor_margin_2": (40, 30, 45, 1, "RAZOR_margin", "int"),
    }
    assert "# (the author declares the ranges of others)\n# [nmp_depth]" in text
    assert ask("params", "show").code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "either one SOURCE, or --engine"),
        (["engien"], 2, "engien: [SOURCE] is no folder; did you mean engine?"),
        (["--engine", "engine/src/main.rs"], 2, "cannot start"),
        (["--engine", "dull"], 3, "declares no option with a number"),
    ],
)
def test_what_is_no_engine_with_options_is_refused(uci, arguments, code, said, ask):
    dull = Path("dull")
    dull.write_text("#!/bin/sh\necho uciok; echo readyok; cat >/dev/null\n")
    dull.chmod(0o755)
    heard = ask("init", "--no-try", *arguments)
    assert heard.code == code and said in heard.err and not Path("config.toml").exists()


def test_arguments_of_an_engine_are_kept(uci, ask):
    text = uci.read_text()
    uci.write_text(text.replace("#!/bin/sh\n", '#!/bin/sh\ntest "$*" = "--uci a b" || exit 3\n'))
    assert ask("init", "--no-try", "--engine", uci, "--", "--uci", "a b").code == 0
    assert tomllib.loads(Path("config.toml").read_text())["engine"]["arguments"] == ["--uci", "a b"]
    assert ask("params", "show").code == 0
