"""About two hundred wrong files: each is refused with its line, and nothing has been touched."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from console import CONFIG, PARAMS, write_project

from spsa.cli import execute

WRONG = {
    "nan": "nan",
    "inf": "inf",
    "-inf": "-inf",
    "1e309": "1e309",
    "negative": "-1",
    "5000 digits": "9" * 5000,
    "list": "[1]",
    "table": "{ a = 1 }",
    "date": "2020-01-01",
    "nothing": "",
    "nul": '"\\u0000"',
    "no end": '"x',
}
IN_CONFIG = {
    "games_per_iteration": "games_per_iteration = 8",
    "batch_size": "batch_size = 2",
    "max_iterations": "max_iterations = 4",
    "low": "low = 150",
    "name": 'name = "small"',
    "seed": "seed = 7",
    "url": 'url = "sqlite:///spsa.db"',
    "source_path": 'source_path = "engine"',
}
IN_PARAMS = {"value": "value = 200", "max": "max = 400", "step": "step = 20"}


def _swapped(text: str, places: dict[str, str]) -> Iterator[tuple[str, str]]:
    for key, written in places.items():
        for name, value in WRONG.items():
            if (key, name) == ("name", "nothing"):
                continue
            yield f"{key} = {name}", text.replace(written, f"{key} = {value}")


def _edited(text: str, edits: dict[str, tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for name, (old, new) in edits.items():
        assert old in text
        yield name, text.replace(old, new, 1)


CONFIGS = dict(
    [
        *_swapped(CONFIG, IN_CONFIG),
        *_edited(
            CONFIG,
            {
                "an odd number of games": ("= 8", "= 7"),
                "a batch larger than its iteration": ("= 2", "= 20"),
                "an unknown key": ("batch_size", "batch_sise"),
                "an unknown table": ("[games]", "[gmaes]"),
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
                "a resignation below nothing": (
                    "[run]",
                    "[adjudication.resign]\ncount = -1\nscore = -1\n[run]",
                ),
                "a resignation of a mate": (
                    "[run]",
                    "[adjudication.resign]\nscore = 100000\n[run]",
                ),
                "games without end": ("[run]", "[adjudication]\nmax_moves = 10001\n[run]"),
                "nodes of days": ("low = 150", "low = 1000000000001"),
                "moves of days": ('"nodes"\nlow = 150', '"movetime"\ntimehigh = 86401.0'),
                "a margin without end": ('"nodes"\nlow = 150', '"clock"\nmargin = 1e300'),
                "a book that is a device": ("[games]", '[games]\nbook = "/dev/zero"'),
                "a book that is a folder": ("[games]", '[games]\nbook = "engine"'),
                "a book of a long name": ("[games]", f'[games]\nbook = "{"x" * 5000}"'),
                "too many plies of a book": ("[games]", "[games]\nplies = 1001"),
                "a number of hexadecimal digits": ("low = 150", f"low = 0x{'f' * 5000}"),
                "an option of such a number": ("Hash = 1", f"Hash = 0x{'f' * 5000}"),
                "an option of an escape": ("Hash = 1", 'Hash = "\\u001b[2J"'),
                "an option of 20,000 characters": ("Hash = 1", f'Hash = "{"x" * 20_000}"'),
                "a gain that is no number": ("[spsa]", '[spsa]\nalpha = "x"'),
            },
        ),
    ]
)
SPACES = dict(
    [
        *_swapped(PARAMS, IN_PARAMS),
        *_edited(
            PARAMS,
            {
                "min over max": ("min = 50", "min = 500"),
                "a value outside": ("value = 200", "value = 20"),
                "a parameter twice": ("[depth]", "[margin]"),
                "a step of zero": ("step = 20", "step = 0"),
                "a step that rounds away": ("step = 1\n", "step = 0.1\ntype = 'int'\n"),
                "an unknown key": ("step = 20", "step = 20\nstpe = 2"),
                "a key with its own meaning misspelt": ("step = 20", "step = 20\nactiv = false"),
                "a constant that is not there": ("step = 20", 'step = 20\nconstant = "NO"'),
                "a constant outside its type": ("max = 400", "max = 4000000000"),
                "a constant outside the source": (
                    "step = 20",
                    'step = 20\nconstant = "../x.rs::A"',
                ),
                "no name": ("[margin]", '["ma rgin"]'),
                "a circle": ("[margin]", 'constraints = ["margin<depth","depth<margin"]\n[margin]'),
                "a constraint on nobody": ("[margin]", 'constraints = ["margin<dept"]\n[margin]'),
            },
        ),
        ("nothing", ""),
    ]
)
BYTES = {
    "a byte order mark": b"\xef\xbb\xbf# x\n",
    "a nul": b"a = 1\0\n",
    "latin-1": b"# caf\xe9\n",
    "utf-16": "a = 1\n".encode("utf-16"),
    "deep lists": b"a = " + b"[" * 20_000,
    "deep tables": b"[" + b".".join([b"a"] * 5_000) + b"]\n",
    "only line feeds": b"[run]\rseed = 1\r",
    "five megabytes of nonsense": b"x" * 5_000_000,
    "noise": bytes(range(256)) * 10,
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.delenv("SPSA_CONFIG", raising=False)
    return tmp_path


def refused(capsys: pytest.CaptureFixture[str], file: str, *, lined: bool = True) -> list[str]:
    """The faults that `run` tells of, after it has been seen to do nothing else."""
    before = sorted(Path().rglob("*"))
    assert execute(["run"]) == 2
    heard = capsys.readouterr()
    *faults, count = heard.err.splitlines()
    assert heard.out == "" and count.startswith(f"{len(faults)} fault"), heard.err
    for fault in faults:
        place, _, rest = fault.partition(": [")
        assert file in fault and "; " in rest, fault
        assert not lined or place.rpartition(":")[2].isdigit(), fault
    assert sorted(Path().rglob("*")) == before
    return faults


def test_the_files_that_are_spoilt_below_are_right(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["params", "show", "--json"]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("name", CONFIGS)
def test_a_wrong_config(project: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "config.toml").write_text(CONFIGS[name])
    refused(capsys, "config.toml")


@pytest.mark.parametrize("name", SPACES)
def test_a_wrong_space(project: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "params.toml").write_text(SPACES[name])
    refused(capsys, "params.toml", lined=name != "nothing")


@pytest.mark.parametrize("file", ["config.toml", "params.toml"])
@pytest.mark.parametrize("name", BYTES)
def test_bytes_that_are_no_toml(
    project: Path, file: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / file).write_bytes(BYTES[name])
    (fault,) = refused(capsys, file, lined=False)
    assert len(fault) < 500 + len(str(project))


@pytest.mark.parametrize("file", ["config.toml", "params.toml"])
def test_what_stands_in_the_place_of_a_file(
    project: Path, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = project / file
    path.unlink()
    refused(capsys, file, lined=False)
    path.mkdir()
    assert "is a folder" in refused(capsys, file, lined=False)[0]
    path.rmdir()
    path.symlink_to(path)
    refused(capsys, file, lined=False)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("batch_size", "batch_sise", 'did you mean "batch_size"?'),
        ("[games]", "[game]", 'did you mean "games"?'),
        ("max_iterations", "max_iteration", 'did you mean "max_iterations"?'),
    ],
)
def test_a_near_miss_gets_the_right_word(
    project: Path, old: str, new: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "config.toml").write_text(CONFIG.replace(old, new))
    assert said in "\n".join(refused(capsys, "config.toml"))


def test_all_faults_of_a_file_come_in_one_go(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = CONFIG.replace("seed = 7", "seed = -7").replace("= 8", "= 7").replace("low = 150", "")
    (project / "config.toml").write_text(text)
    assert len(refused(capsys, "config.toml")) == 3
    lines = PARAMS.replace("min = 50", "min = 500").replace("step = 1\n", "step = -1\n")
    write_project(project, params=lines)
    assert len(refused(capsys, "params.toml")) == 2


FAULTY = PARAMS.replace("min = 50", "min = 500")
GONE = FAULTY.replace("[margin]", "[margins]").replace("500", "50")


@pytest.mark.parametrize(
    ("config", "params", "names"),
    [
        (("seed = 7", "sed = 7"), GONE, ["[run] unknown", "[margins] there is no constant"]),
        (("low = 150", "low = "), FAULTY, ["config.toml] is not TOML", "[margin] min 500"]),
        (("seed = 7", "seed = -7"), "[a]\nvalue =", ["[run] seed", "params.toml] is not TOML"]),
        (("[spsa]", 'book = "b.epd"\n[spsa]'), GONE, ["[margins]", "b.epd:1: [opening]"]),
        (
            ('"engine"\n', '"gone"\n'),
            FAULTY,
            ["[build.source_path]", "[build.constants_file]", "[margin]"],
        ),
        (("low = 150", "low = -1"), FAULTY, ["[time_control] low", "[margin] min"]),
    ],
)
def test_faults_of_config_params_source_and_book_come_in_one_go(
    project: Path,
    config: tuple[str, str],
    params: str,
    names: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    (project / "b.epd").write_text("no position\n")
    (project / "config.toml").write_text(CONFIG.replace(*config))
    (project / "params.toml").write_text(params)
    faults = refused(capsys, "", lined=False)
    assert len(faults) == len(names), faults
    assert all(name in fault for name, fault in zip(names, faults, strict=True)), faults


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is unreadable to root")
def test_a_file_that_may_not_be_read(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "config.toml").chmod(0)
    refused(capsys, "config.toml", lined=False)
