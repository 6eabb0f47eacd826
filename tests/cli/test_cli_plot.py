"""`plot`: the files it writes, what it draws, and what it refuses."""

import shutil
from pathlib import Path

import pytest
from console import PARAMS, write_project
from tuned import space_from, tuned

from spsa.cli import execute
from spsa.cli import report as command
from spsa.db import Store


@pytest.fixture(scope="module")
def played(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of a run "first" with four results."""
    path = tmp_path_factory.mktemp("played") / "spsa.db"
    shutil.copy(sqlite_template, path)
    with Store(f"sqlite:///{path}", durable=False) as store:
        tuned(store, space_from(PARAMS), 4)
    return path


@pytest.fixture
def project(played: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.delenv("SPSA_CONFIG", raising=False)
    write_project(tmp_path)
    shutil.copy(played, tmp_path / "spsa.db")
    return tmp_path


def test_a_picture_of_one_parameter(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["plot", "--kind", "theta", "--param", "margin", "--normalised", "theta.svg"]
    assert execute(line) == 0
    assert capsys.readouterr().out == "wrote theta.svg\n"
    drawn = (project / "theta.svg").read_text()
    assert ">margin<" in drawn and ">-7.5 to 10<" in drawn and "depth" not in drawn
    assert 'id="theta-0"' in drawn and 'id="gain"' not in drawn
    assert [path.name for path in project.iterdir() if path.name.startswith(".spsa")] == []


def test_all_kinds_are_drawn_unless_told_otherwise(project: Path) -> None:
    assert execute(["plot", "all.SVG", "--run", "first"]) == 0
    drawn = (project / "all.SVG").read_text()
    for series in ("theta-1", "gain", "results", "games-0"):
        assert f'id="{series}"' in drawn
    assert execute(["plot", "--kind", "workers", "all.png"]) == 0
    assert (project / "all.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        (["x.gif"], 2, "'x.gif' has to end with .png or .svg"),
        (["none/x.svg"], 2, "there is no folder 'none'"),
        (["engine.svg"], 2, "is a directory"),
        (["x.svg", "--param", "nope"], 2, "the run has no active parameter 'nope'"),
        (["x.svg", "--group", "nope"], 2, "the run has no group 'nope'"),
        (["x.svg", "--kind", "nope"], 2, "nope"),
        (["x.svg", "--run", "nope"], 3, "there is no run named 'nope'"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    line: list[str], code: int, said: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "engine.svg").mkdir()
    assert execute(["plot", *line]) == code
    heard = capsys.readouterr()
    assert said in heard.err and heard.out == ""
    assert not (project / "x.svg").exists()


def test_without_matplotlib_it_says_what_to_install(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "can_draw", lambda: False)
    assert execute(["plot", "x.svg"]) == 2
    assert "pip install 'spsa-tuner[plot]'" in capsys.readouterr().err
