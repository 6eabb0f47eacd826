"""`report`, and the events of `status`: what they write, show and refuse."""

import shutil

import pytest
from asking import Store
from builders import space_from, stage
from console import PARAMS


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


def test_a_page_is_written_whole_beside_json_on_stdout(played, ask):
    (played / "out.html").write_text("old")
    heard = ask("report", "--json", "--html", "out.html")
    assert (heard.json["status"]["run"], heard.err) == ("first", "wrote out.html\n")
    written = (played / "out.html").read_text()
    assert written.lstrip().startswith("<!DOCTYPE html>") and written.rstrip().endswith("</html>")
    assert "to; look" in written and (played / "out.html").stat().st_mode & 0o777 == 0o644
    assert not [path for path in played.iterdir() if path.name.startswith(".spsa")]


@pytest.mark.usefixtures("played")
def test_reports_and_events_are_shown_and_what_cannot_be_is_refused(transcript):
    transcript("without an option a report is shown")
    transcript("a program gets all of it")
    transcript("events are shown")
    transcript("CSV has every result")
    transcript.refused("what cannot be shown is refused")
