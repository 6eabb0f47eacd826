"""`report`, and the events and void games of `status`: what they write, show and refuse."""

import csv
import shutil

import pytest
from asking import Store
from builders import published, space_from, stage
from console import PARAMS, compete
from engines.faulty import engine, start_book
from trials import UNHURRIED

from spsa.core.game_settings import Book, GameSettings

FORMULA = "=cmd|'/c calc'!A1"


@pytest.fixture(scope="module")
def kept(sqlite_template, tmp_path_factory):
    """The database of a run "first" with four results, a validation and a pause."""
    path = tmp_path_factory.mktemp("played") / "spsa.db"
    shutil.copy(sqlite_template, path)
    with Store(f"sqlite:///{path}", durable=False) as store:
        stage(store, space_from(PARAMS), 4, games=20).validate()
        store.pause("first", "me", "to\nlook")
    return path


@pytest.fixture
def played(kept, project):
    shutil.copy(kept, project / "spsa.db")
    return project


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_page_is_written_whole_beside_json_on_stdout(played, ask):
    (played / "out.html").write_text("old")
    heard = ask("report", "--json", "--html", "out.html")
    assert heard.err == "wrote out.html\n", "stdout is data"
    written = (played / "out.html").read_text()
    assert written.lstrip().startswith("<!DOCTYPE html>") and written.rstrip().endswith("</html>")
    assert "to\\nlook" in written and (played / "out.html").stat().st_mode & 0o777 == 0o644
    assert not [path for path in played.iterdir() if path.name.startswith(".spsa")]
    found = heard.json
    assert found["status"]["run"] == "first" and found["history"]["k"] == [0, 1, 2, 3, 4]
    margin = found["history"]["parameters"][0]
    assert margin["name"] == "margin" and len(margin["theta"]) == 5
    assert len(found["history"]["gain"]) == 5
    assert found["workers"][0]["of_run"]["tally"]["games"] == 80
    assert found["history"]["validations"][0]["tally"]["elo_error"] > 0
    assert [event["kind"] for event in found["events"]] == ["start", "paused"]
    assert found["settings"]["games_per_iteration"] == 20


def test_csv_has_every_result(played, ask):
    assert ask("report", "--csv", "new/data").out.count("wrote new/data/") == 3
    folder = played / "new" / "data"
    history = rows(folder / "history.csv")
    assert [row["k"] for row in history] == ["0", "1", "2", "3", "4"]
    assert (history[0]["margin"], history[0]["depth"]) == ("200.0", "3.0")
    iterations = rows(folder / "iterations.csv")
    assert [row["purpose"] for row in iterations] == ["tune"] * 4 + ["validate"]
    with Store(f"sqlite:///{played / 'spsa.db'}") as store:
        run = store.run()
        known = store.iterations(run.id)
        assert float(history[-1]["margin"]) == run.theta["margin"]
    for row, iteration in zip(iterations, known, strict=True):
        assert int(row["wins"]) == iteration.tally.wins
        assert tuple(int(row[f"pentanomial_{i}"]) for i in range(5)) == iteration.tally.pentanomial
        assert row["c_k"] == ("" if iteration.c_k is None else str(iteration.c_k))
    (worker,) = rows(folder / "workers.csv")
    assert (worker["worker"], worker["games"]) == ("machine-1", "80")


def test_without_an_option_it_is_shown(played, ask):
    shown = ask("report").out
    assert shown.startswith("run first: paused, 4 of 4 iterations, 80 games")
    for part in ("parameters", "validations", "workers", "games/h"):
        assert part in shown


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("report --html engine", 2, "is a directory"),
        ("report --html none/out.html", 1, "master: none/out.html: No such file or directory"),
        ("report --html out.html --run nope", 3, "there is no run named 'nope'"),
        ("status --all --events", 2, "exclude each other"),
        ("status --watch --voids", 2, "exclude each other"),
        ("status --voids foo", 3, "no void game of a batch foo is kept; batches with some: none"),
        ("status --voids 1.7", 3, "no void game of a batch 1.7 is kept; batches with some: none"),
    ],
)
def test_what_cannot_be_shown_is_refused(line, code, said, played, ask):
    before = sorted(played.iterdir())
    heard = ask(*line.split())
    assert (heard.code, heard.out) == (code, "") and said in heard.err
    assert sorted(played.iterdir()) == before


@pytest.mark.usefixtures("project_store")
@pytest.mark.parametrize("line", ["status", "status --events", "report"])
def test_without_a_run_there_is_nothing_to_show(line, ask):
    heard = ask(*line.split())
    assert heard.code == 3 and "there is no run yet" in heard.err


def test_events_for_people_and_programs(played, ask):
    lines = ask("status", "--events").out.rpartition("\nevents")[2].splitlines()
    assert lines[1].split() == ["time", "(UTC)", "event", "by", "detail"]
    assert [line.split()[2:] for line in lines[2:]] == [
        ["start", "master", "seed", "42"],
        ["paused", "me", "to\\nlook"],
    ]
    found = ask("status", "--events", "--json").json
    event = found["events"][-1]
    assert found["run"] == "first" and event["at"].endswith("+00:00")
    assert (event["kind"], event["actor"]) == ("paused", "me")
    assert event["detail"] == {"reason": "to\nlook"}


@pytest.mark.slow
def test_a_crash_is_kept_with_its_moves_and_last_lines(project, database_url, ask, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", database_url)
    plus = engine(project, "plus", moves="e2e4 e7e5 g1f3", fault="crash", at_ply=2)
    minus = engine(project, "minus", moves="e2e4 e7e5 g1f3")
    with Store(database_url, durable=False) as store:
        book = Book(name=str(start_book(project)))
        stage(store, space_from(PARAMS)).open(
            plus=published(plus),
            minus=published(minus),
            plus_options={},
            minus_options={},
            batch_games=2,
            plus_parameters={"margin": 220.5},
            game_settings=GameSettings(time_control=UNHURRIED, book=book),
        )
        assert ask("status", "--voids").out.endswith("run first has no void games\n")
        words = ("-c", 1, "--engines-cache", project / "cache", "--max-batches", 1)
        done = compete("--spsa", *words, DATABASE_URL=database_url)
        assert "was void 4 times" in done.stderr
        ((machine, _),) = store.failed_batches().items()
    assert ask("status", "--voids").out.count("plus: crash: killed by SIGSEGV") == 3
    shown = ask("status", "--voids", "1.0").out
    for line in (
        f"batch 1.0, pair 1 of the run on machine {machine}: plus: crash: killed by SIGSEGV",
        "White: plus; 2 plies; the position:",
        "  position startpos moves e2e4 e7e5",
        "  | bestmove e2e4",
        "  | stderr: a hint",
        "  | stderr: thread 'main' panicked at src/search.rs:7\\x1b[2J",
        f"values of plus, binary {published(plus).sha256}:",
        "  margin = 220.5",
    ):
        assert f"{line}\n" in shown
    voids = ask("status", "--voids", "--json").json["void_games"]
    assert [void["values"] for void in voids] == [{"margin": 220.5}] * 3
    assert ask("status", "--voids", "1.0", "--json").json["void_games"] == voids
    assert "batches with some: 1.0\n" in ask("status", "--voids", "1.7").err
