"""Rows that somebody has changed by hand: each is a sentence that names the column, never a defect.

SQLite, whose columns take any text; PostgreSQL's take no text that is not JSON.
"""

import json
import math
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from asking import Store
from builders import TERMS, stage
from console import call, worker, write_project
from masters import settings

from spsa.cli import execute
from spsa.config.space import load_space
from spsa.db.migrate import upgrade

Damage = Callable[[str, str, str], None]

SETTINGS = settings("auto", 4)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose run has an open iteration."""
    folder = tmp_path_factory.mktemp("sound")
    write_project(folder)
    url = f"sqlite:///{folder / 'spsa.db'}"
    upgrade(url)
    space = load_space(folder / "params.toml")
    facts = {"name": "small", "algorithm": "spsa", "settings": SETTINGS.to_json()}
    with Store(url, durable=False) as store:
        stage(store, space, **facts).open()
    return folder


@pytest.fixture
def project(sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, in which one stands."""
    monkeypatch.chdir(shutil.copytree(sound, tmp_path / "project"))
    monkeypatch.delenv("DATABASE_URL", raising=False)
    return tmp_path / "project"


@pytest.fixture
def damage(project: Path) -> Damage:
    def write(table: str, column: str, text: str) -> None:
        with sqlite3.connect(project / "spsa.db") as database:
            database.execute(f"UPDATE {table} SET {column} = ?", (text,))  # noqa: S608
        database.close()

    return write


PLAYED = TERMS.to_json()
WRONG = {
    "settings": {**SETTINGS.to_json(), "games_per_iteration": "x"},
    "space": {"parameters": [{"name": "margin", "value": 200}], "constraints": []},
    "game_settings": {**PLAYED, "time_control": {**PLAYED["time_control"], "low": math.nan}},
    "theta": {"margin": 200.0, "depth": [1, "a"]},
}


@pytest.mark.slow
@pytest.mark.parametrize("text", ["{oops", "[]", None], ids=["no JSON", "no object", "a value"])
@pytest.mark.parametrize("column", WRONG)
@pytest.mark.parametrize("command", ["status", "doctor", "run"])
def test_a_damaged_run(command, column, text, damage, capsys):
    damage("spsa_run", column, text or json.dumps(WRONG[column]))
    code, said = execute([command]), capsys.readouterr().err
    if (command, column, code) == ("status", "settings", 0):
        return  # which it looks at once it knows how quickly games are played
    assert code == 2, said
    assert "a column " in said and "from a backup" in said
    assert len(said.strip().splitlines()) == 1


@pytest.mark.parametrize("column", ["theta", "start_theta"])
@pytest.mark.parametrize("command", ["status", "run"])
def test_a_theta_without_a_parameter(command, column, damage, capsys):
    damage("spsa_run", column, '{"margin": 200.0}')
    code, said = execute([command]), capsys.readouterr().err
    assert code == 2, said
    assert "'depth'" in said and "from a backup" in said


@pytest.mark.slow
@pytest.mark.parametrize("text", ["{oops", "[]", "{}", json.dumps({**PLAYED, "book": 3})])
def test_a_worker_that_gets_a_damaged_iteration(project, damage, text):
    damage("spsa_iteration", "game_settings", text)
    done = call(worker("--spsa", "-c", "1", "--once", "--engines-cache", "cache"), project)
    assert done.returncode == 2, done.stderr
    assert "a column " in done.stderr and "from a backup" in done.stderr
