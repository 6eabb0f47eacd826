"""What `--plot` takes and draws, with and without matplotlib."""

from importlib.util import find_spec
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from spsa.cli.simulate.pictures import Curve, NoDrawing, Picture, plot_option, save

drawing = pytest.mark.skipif(find_spec("matplotlib") is None, reason="matplotlib is an extra")
PICTURE = Picture(
    title="loss by games",
    x_label="games",
    y_label="Elo",
    y_log=True,
    curves=(
        Curve(label="formula", x=[1, 2, 3], y=[3.0, 2.0, 1.0]),
        Curve(label="simulation", x=[1, 3], y=[3.1, 1.1], error=[0.1, 0.1], style="points"),
    ),
)


@click.command()
@plot_option
def draw(plot: Path | None) -> None:
    click.echo(f"file {plot}")


def test_nothing_is_drawn_unless_wanted() -> None:
    assert CliRunner().invoke(draw, []).output == "file None\n"


@pytest.mark.parametrize(
    ("file", "said"),
    [("loss.pdf", "has to end with .png or .svg"), ("nowhere/loss.png", "no folder 'nowhere'")],
)
def test_a_file_that_cannot_be_drawn_is_refused_at_once(
    file: str, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = CliRunner().invoke(draw, ["--plot", file])
    assert answer.exit_code == 2 and said in answer.output


def test_without_matplotlib_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("spsa.cli.simulate.pictures.find_spec", lambda _: None)
    answer = CliRunner().invoke(draw, ["--plot", str(tmp_path / "loss.png")])
    assert isinstance(answer.exception, NoDrawing) and answer.exception.exit_code == 2
    assert "pip install matplotlib" in str(answer.exception)
    with pytest.raises(NoDrawing):
        save(PICTURE, tmp_path / "loss.png")


@drawing
@pytest.mark.parametrize(("file", "begins"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml")])
def test_the_ending_decides_what_is_written(file: str, begins: bytes, tmp_path: Path) -> None:
    save(PICTURE, tmp_path / file)
    assert (tmp_path / file).read_bytes().startswith(begins)
