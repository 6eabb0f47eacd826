"""`report` and `events`: what they write, show and refuse."""

import csv
import json
import shutil
from pathlib import Path

import pytest
from builders import new_worker
from console import PARAMS, write_project
from tuned import play, space_from, tuned, validated

from spsa.cli import demonstration, execute
from spsa.db import Store
from spsa.report import export_html as page_module
from spsa.report.text import terminal

FORMULA = "=cmd|'/c calc'!A1"


@pytest.fixture(scope="module")
def played(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of a run "first" with four results, a validation and a pause."""
    path = tmp_path_factory.mktemp("played") / "spsa.db"
    shutil.copy(sqlite_template, path)
    with Store(f"sqlite:///{path}", durable=False) as store:
        staged = tuned(store, space_from(PARAMS), 4)
        validated(staged)
        store.pause("first", "me", "to\nlook")
    return path


@pytest.fixture
def project(played: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.delenv("SPSA_CONFIG", raising=False)
    write_project(tmp_path)
    shutil.copy(played, tmp_path / "spsa.db")
    return tmp_path


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_page_is_written_whole(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "out.html").write_text("old")
    assert execute(["report", "--html", "out.html"]) == 0
    assert capsys.readouterr().out == "wrote out.html\n"
    written = (project / "out.html").read_text()
    assert written.startswith("<!DOCTYPE html>") and written.rstrip().endswith("</html>")
    assert "to\\nlook" in written and (project / "out.html").stat().st_mode & 0o777 == 0o644
    assert not [path for path in project.iterdir() if path.name.startswith(".spsa")]


def test_csv_has_every_result(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["report", "--csv", "new/data"]) == 0
    folder = project / "new" / "data"
    assert capsys.readouterr().out.count("wrote new/data/") == 3
    history = rows(folder / "history.csv")
    assert [row["k"] for row in history] == ["0", "1", "2", "3", "4"]
    assert (history[0]["margin"], history[0]["depth"]) == ("200.0", "3.0")
    iterations = rows(folder / "iterations.csv")
    assert [row["purpose"] for row in iterations] == ["tune"] * 4 + ["validate"]
    with Store(f"sqlite:///{project / 'spsa.db'}") as store:
        run = store.run()
        known = store.iterations(run.id)
        assert float(history[-1]["margin"]) == run.theta["margin"]
    for row, iteration in zip(iterations, known, strict=True):
        assert int(row["plus_wins"]) == iteration.tally.wins
        assert tuple(int(row[f"ptnml_{i}"]) for i in range(5)) == iteration.tally.pentanomial
        assert row["c_k"] == ("" if iteration.c_k is None else str(iteration.c_k))
    (worker,) = rows(folder / "workers.csv")
    assert (worker["worker"], worker["games"]) == ("machine-1", "32")


def test_no_cell_of_a_csv_is_a_formula(project: Path) -> None:
    with Store(f"sqlite:///{project / 'spsa.db'}", durable=False) as store:
        staged = tuned(store, space_from(PARAMS), 0, name="second")
        worker = store.register_worker(new_worker(FORMULA))
        bad = type(staged)(store, staged.run, staged.master, worker)
        bad.open()
        play(bad, "bad", 0.0)
    assert execute(["report", "--run", "second", "--csv", "."]) == 0
    (row,) = rows(project / "workers.csv")
    assert row["worker"] == f"'{FORMULA}"


def test_json_holds_what_the_page_shows(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["report", "--json", "--html", "out.html"]) == 0
    heard = capsys.readouterr()
    found = json.loads(heard.out)
    assert heard.err == "wrote out.html\n", "stdout is data"
    assert found["status"]["run"] == "first" and found["history"]["k"] == [0, 1, 2, 3, 4]
    margin = found["history"]["parameters"][0]
    assert margin["name"] == "margin" and len(margin["theta"]) == len(margin["averaged"]) == 5
    assert len(found["history"]["gain"]["elo"]) == 5
    assert found["history"]["workers"][0]["tally"]["games"] == 32
    assert found["history"]["validations"][0]["tally"]["elo_error"] > 0
    assert [event["kind"] for event in found["events"]] == ["start", "paused"]
    assert found["settings"]["games_per_iteration"] == 8


def test_without_an_option_it_is_shown(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["report"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("run first: paused, 4 of 4 iterations applied, 32 games")
    for part in ("parameters", "validations", "workers of this run"):
        assert part in shown


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        (["--html", "engine"], 2, "is a directory"),
        (["--html", "none/out.html"], 2, "there is no folder 'none'"),
        (["--csv", "config.toml"], 2, "is a file"),
        (["--html", "out.html", "--run", "nope"], 3, "there is no run named 'nope'"),
    ],
)
def test_what_cannot_be_written_is_refused(
    line: list[str], code: int, said: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["report", *line]) == code
    heard = capsys.readouterr()
    assert said in heard.err and heard.out == ""
    assert (project / "engine").is_dir() and not (project / "out.html").exists()


def test_events_for_people_and_programs(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["events"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["time", "(UTC)", "event", "by", "detail"]
    assert [line.split()[2:] for line in lines[2:]] == [
        ["start", "master", "seed", "42"],
        ["paused", "me", "to\\nlook"],
    ]
    assert execute(["events", "--last", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (event,) = found["events"]
    assert found["run"] == "first" and event["at"].endswith("+00:00")
    assert (event["kind"], event["actor"], event["detail"]) == (
        "paused",
        "me",
        {"reason": "to\nlook"},
    )


@pytest.mark.parametrize("command", ["events", "report", "plot"])
def test_without_a_run_there_is_nothing_to_show(
    command: str, project: Path, sqlite_template: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(sqlite_template, project / "spsa.db")
    assert execute([command, *(["x.svg"] if command == "plot" else [])]) == 3
    assert "there is no run yet" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("draws", [True, False])
def test_a_demo_leaves_its_report(
    draws: bool,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for module in (demonstration, page_module):
        monkeypatch.setattr(module, "can_draw", lambda: draws)
    demonstration.leave_report(project, "first", terminal())
    said = capsys.readouterr().out
    assert str(project / "report.html") in said
    assert "Tuning run first" in (project / "report.html").read_text()
    assert (str(project / "run.png") in said) is (project / "run.png").exists() is draws
    assert ("pip install 'spsa-tuner[plot]'" in said) is not draws
