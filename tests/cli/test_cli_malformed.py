"""Wrong files: each is refused with its line, and nothing has been touched."""

import os
from pathlib import Path

import pytest
from console import CONFIG, PARAMS, Ask, write_project

VALUES = {
    "nan": "nan",
    "1e309": "1e309",
    "negative": "-1",
    "list": "[1]",
    "table": "{ a = 1 }",
    "date": "2020-01-01",
    "nothing": "",
    "nul": '"\\u0000"',
    "no end": '"x',
}
WRITTEN = {
    "config.toml": (CONFIG, ("games_per_iteration = 8", "low = 150", 'url = "sqlite:///spsa.db"')),
    "params.toml": (PARAMS, ("value = 200", "max = 400", "step = 20")),
}
CONFIG_EDITS = {
    "an odd number of games": ("= 8", "= 7"),
    "a batch larger than its iteration": ("= 2", "= 20"),
    "a key twice": ("seed = 7", "seed = 7\nseed = 8"),
    "a table twice": ("[spsa]", "[run]\n[spsa]"),
    "a kind that is none": ('"nodes"', '"nods"'),
    "low more than high": ("low = 150", "low = 150\nhigh = 100"),
    "an option that is no value": ("Hash = 1", "Hash = nan"),
    "an option of two lines": ("Hash = 1", 'Hash = "1\\n2"'),
    "an unknown algorithm": ("[spsa]", '[spsa]\nalgorithm = "spas"'),
    "no moves to a draw": ("[run]", "[adjudication.draw]\ncount = 0\n[run]"),
    "a draw below nothing": ("[run]", "[adjudication.draw]\nscore = -1\n[run]"),
    "a draw of too many": ("[run]", "[adjudication.draw]\ncount = 1001\n[run]"),
    "a draw too late": ("[run]", "[adjudication.draw]\nmove_number = 10001\n[run]"),
    "a resignation below nothing": ("[run]", "[adjudication.resign]\ncount = -1\n[run]"),
    "a resignation of a mate": ("[run]", "[adjudication.resign]\nscore = 100000\n[run]"),
    "games without end": ("[run]", "[adjudication]\nmax_moves = 10001\n[run]"),
    "nodes of days": ("low = 150", "low = 1000000000001"),
    "moves of days": ('"nodes"\nlow = 150', '"movetime"\ntimehigh = 86401.0'),
    "a margin without end": ('"nodes"\nlow = 150', '"clock"\nmargin = 1e300'),
    "a book that is a device": ("[games]", '[games]\nbook = "/dev/zero"'),
    "a book that is a folder": ("[games]", '[games]\nbook = "engine"'),
    "a book of a long name": ("[games]", f'[games]\nbook = "{"x" * 5000}"'),
    "too many plies of a book": ("[games]", "[games]\nplies = 1001"),
    "an option of an escape": ("Hash = 1", 'Hash = "\\u001b[2J"'),
    "an option of 20,000 characters": ("Hash = 1", f'Hash = "{"x" * 20_000}"'),
    "a gain that is no number": ("[spsa]", '[spsa]\nalpha = "x"'),
}
PARAMS_EDITS = {
    "min over max": ("min = 50", "min = 500"),
    "a value outside": ("value = 200", "value = 20"),
    "a parameter twice": ("[depth]", "[margin]"),
    "a step of zero": ("step = 20", "step = 0"),
    "a step that rounds away": ("step = 1\n", "step = 0.1\ntype = 'int'\n"),
    "an unknown key": ("step = 20", "step = 20\nstpe = 2"),
    "a key with its own meaning misspelt": ("step = 20", "step = 20\nactiv = false"),
    "a constant that is not there": ("step = 20", 'step = 20\nconstant = "NO"'),
    "a constant outside its type": ("max = 400", "max = 4000000000"),
    "a constant outside the source": ("step = 20", 'step = 20\nconstant = "../x.rs::A"'),
    "no name": ("[margin]", '["ma rgin"]'),
    "a circle": ("[margin]", 'constraints = ["margin<depth","depth<margin"]\n[margin]'),
    "a constraint on nobody": ("[margin]", 'constraints = ["margin<dept"]\n[margin]'),
}
EDITS = [
    *(("config.toml", name, *edit) for name, edit in CONFIG_EDITS.items()),
    *(("params.toml", name, *edit) for name, edit in PARAMS_EDITS.items()),
    *(
        (file, f"{old} is {name}", old, f"{old.split(' = ')[0]} = {value}")
        for file, (_, places) in WRITTEN.items()
        for old in places
        for name, value in VALUES.items()
    ),
]
BYTES = {
    "a byte order mark": b"\xef\xbb\xbf# x\n",
    "a nul": b"a = 1\0\n",
    "latin-1": b"# caf\xe9\n",
    "utf-16": "a = 1\n".encode("utf-16"),
    "deep lists": b"a = " + b"[" * 20_000,
    "only line feeds": b"[run]\rseed = 1\r",
    "five megabytes of nonsense": b"x" * 5_000_000,
    "noise": bytes(range(256)) * 10,
}


def refused(ask: Ask, file: str, *, lined: bool = True) -> list[str]:
    """The faults that `run` tells of, after it has been seen to do nothing else."""
    before = sorted(Path().rglob("*"))
    heard = ask("run")
    *faults, count = heard.err.splitlines()
    assert (heard.code, heard.out) == (2, ""), heard.err
    assert count.startswith(f"{len(faults)} fault"), heard.err
    for fault in faults:
        place, _, rest = fault.partition(": [")
        assert file in fault and "; " in rest, fault
        assert not lined or place.rpartition(":")[2].isdigit(), fault
    assert sorted(Path().rglob("*")) == before
    return faults


def test_the_files_that_are_spoilt_below_are_right(project: Path, ask: Ask) -> None:
    assert len(ask("params", "show", "--json").json["parameters"]) == 2


@pytest.mark.parametrize(("file", "name", "old", "new"), EDITS, ids=[edit[1] for edit in EDITS])
def test_a_wrong_edit(project: Path, file: str, name: str, old: str, new: str, ask: Ask) -> None:
    text = WRITTEN[file][0]
    assert old in text
    (project / file).write_text(text.replace(old, new, 1))
    refused(ask, file)


@pytest.mark.parametrize("file", ["config.toml", "params.toml"])
@pytest.mark.parametrize("name", BYTES)
def test_bytes_that_are_no_toml(project: Path, file: str, name: str, ask: Ask) -> None:
    (project / file).write_bytes(BYTES[name])
    (fault,) = refused(ask, file, lined=False)
    assert len(fault) < 500 + len(str(project))


@pytest.mark.parametrize("file", ["config.toml", "params.toml"])
def test_what_stands_in_the_place_of_a_file(project: Path, file: str, ask: Ask) -> None:
    path = project / file
    path.unlink()
    refused(ask, file, lined=False)
    path.mkdir()
    assert "is a folder" in refused(ask, file, lined=False)[0]
    path.rmdir()
    path.symlink_to(path)
    refused(ask, file, lined=False)
    path.unlink()
    path.write_text("")
    path.chmod(0)
    if file == "params.toml" or os.geteuid():  # an empty config.toml is right, and root reads it
        refused(ask, file, lined=False)


FAULTY = PARAMS.replace("min = 50", "min = 500")
GONE = FAULTY.replace("[margin]", "[margins]").replace("500", "50")
THREE = CONFIG.replace("seed = 7", "seed = -7").replace("= 8", "= 7").replace("= 150", "= 0")


@pytest.mark.parametrize(
    ("config", "params", "names"),
    [
        (CONFIG.replace("batch_size", "batch_sise"), PARAMS, ['did you mean "batch_size"?']),
        (CONFIG.replace("[games]", "[game]"), PARAMS, ['did you mean "games"?']),
        (THREE, PARAMS, ["[run] seed", "[games]", "[time_control]"]),
        (CONFIG, FAULTY.replace("step = 1\n", "step = -1\n"), ["[margin]", "[depth]"]),
        (
            CONFIG.replace("[spsa]", 'book = "b.epd"\n[spsa]'),
            GONE,
            ["[margins]", "b.epd:1: [opening]"],
        ),
        (
            CONFIG.replace('"engine"\n', '"gone"\n'),
            FAULTY,
            ["[build.source_path]", "[build.constants_file]", "[margin]"],
        ),
    ],
)
def test_faults_of_config_come_in_one_go_then_those_of_params_source_and_book(
    project: Path, config: str, params: str, names: list[str], ask: Ask
) -> None:
    (project / "b.epd").write_text("no position\n")
    write_project(project, config, params)
    faults = refused(ask, "", lined=False)
    assert len(faults) == len(names), faults
    assert {name for name in names if any(name in fault for fault in faults)} == {*names}, faults
