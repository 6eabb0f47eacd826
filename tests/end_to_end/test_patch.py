"""A patch tested for real: commits of a folder and of an address, a killed master, a handicap."""

import json
import re
import shutil

import pytest
from asking import Store
from console import compete
from repositories import git
from tuner import ENGINE, bundled

pytestmark = [pytest.mark.slow, pytest.mark.long_on("postgresql"), pytest.mark.timeout(900)]

QUEEN = re.compile(r"(QUEEN|ROOK)_VALUE_PAIR: ScorePair = \(\d+, \d+\)")


@pytest.fixture
def repository(tmp_path):
    """The bundled engine in a work tree, whose branch `weak` values rook and queen like knights."""
    folder = shutil.copytree(ENGINE, tmp_path / "engine", ignore=shutil.ignore_patterns("target"))
    constants = folder / "src" / "engine_constants.rs"
    good = constants.read_text()
    git(folder, "init", "-q", "-b", "main")
    for branch, text in (
        ("weak", QUEEN.sub(r"\1_VALUE_PAIR: ScorePair = (300, 300)", good)),
        ("main", good),
    ):
        constants.write_text(text)
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", branch)
        git(folder, "branch", "-f", "weak") if branch == "weak" else None
    git(tmp_path, "clone", "-q", "--bare", "engine", "engine.git")
    return folder


@pytest.fixture
def tester(tmp_path, database_url, repository):
    """A folder with a config.toml alone, and a worker."""
    tuner = bundled(tmp_path / "tests", database_url, tmp_path / "engines")
    tuner.configure(str(ENGINE), str(repository))
    (tuner.folder / "params.toml").unlink()
    yield tuner
    for process in tuner.processes:
        process.kill()


def played(store):
    return sum(match.games_played for match in store.matches(store.run(None).id))


def test_a_patch_is_tested_until_the_answer_through_a_kill(tester, repository):
    sides = ("--plus", "../engine", "--minus", "../engine@weak")
    first = tester.start("validate", *sides, "--sprt", 0, 100)
    tester.until(lambda store: store.find_run("small-matches"))
    worker = tester.worker("--drain", 0)
    tester.until(lambda store: played(store) >= 2)
    first.kill()
    first.ended()
    second = tester.start("validate", "--run", "small-matches")
    tester.until(lambda store: played(store) >= 4)
    second.terminate()
    second.ended()
    tester.ask("validate", *sides, "--sprt", 0, 100)
    status = tester.ask_json("status")
    (match,) = status["validations"]
    assert (status["run"], match["status"]) == ("small-matches", "complete")
    assert (match["sprt"]["hypothesis"], match["sprt"]["llr"] > 2.9) == ("H1", True)
    commit = git(repository, "rev-parse", "weak")
    assert match["compared"]["against"] == f"../engine at weak ({commit[:10]})"
    assert git(repository, "rev-parse", "main")[:10] in match["compared"]["theta"]
    assert "H1 accepted" in tester.ask("status").stdout
    events = tester.ask_json("report")["events"]
    assert any("H1 accepted" in json.dumps(event) for event in events), events
    tester.ask("doctor")

    with Store(tester.url) as store:
        paths = {path for it in store.iterations(store.run(None).id) for path in it.files.values()}
    binary = sorted(paths)[0]
    address = f"file://{repository}.git@main"
    handicap = ("validate", "--plus", address, "--minus", binary, "--games", 4, "--handicap", 4)
    tester.ends(tester.start(*handicap))
    worker.terminate()
    with Store(tester.url) as store:
        run = store.run(None)
        last = store.matches(run.id)[-1]
        (batch,) = store.batches(run.id, last.id)[:1]
    assert last.compared.against.startswith(f"{binary} (")
    assert last.compared.theta.startswith(f"file://{repository}.git at main (")
    assert 3.5 < batch.plus_nodes / batch.minus_nodes < 4.5
    place = f"{last.iteration_number}.0"
    again = compete("--replay", place, "--database-url", tester.url, cwd=tester.folder)
    assert again.returncode == 0, again.stderr
    assert "as it was reported" in again.stdout
