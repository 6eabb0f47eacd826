"""Who may only read an SQLite database can look at its runs, and is told why he can do no more."""

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from builders import stage
from console import call, master, write_project
from disks import WITHOUT_ROOTS_WAY, lock_up

from spsa.config import load_space
from spsa.db import Store
from spsa.db.migrate import upgrade


def as_anybody(*arguments: str) -> list[str]:
    """A command line that may write what the mode of a file allows and no more, root or not."""
    if os.geteuid() != 0:
        return master(*arguments)
    if shutil.which("setpriv") is None:
        pytest.skip("root writes everywhere, and there is no setpriv")
    return [*WITHOUT_ROOTS_WAY, *master(*arguments)]


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "project"
    folder.mkdir()
    write_project(folder)
    upgrade(f"sqlite:///{folder / 'spsa.db'}")
    yield folder
    folder.chmod(0o755)


def begin(folder: Path) -> Store:
    store = Store(f"sqlite:///{folder / 'spsa.db'}", durable=False)
    space = load_space(folder / "params.toml").to_json()
    stage(store, space=space, theta={"margin": 200.0, "depth": 3.0}).open()
    return store


def test_a_run_that_nobody_plays_can_be_looked_at(project: Path) -> None:
    begin(project).close()
    lock_up(project)
    looked = call(as_anybody("status"), project)
    assert (looked.returncode, looked.stdout.partition(",")[0]) == (0, "run first: running")
    assert [file.name for file in project.glob("spsa.db*")] == ["spsa.db"]


@pytest.mark.slow
def test_a_run_that_somebody_else_plays_can_be_looked_at(project: Path) -> None:
    with begin(project) as store:
        lock_up(project)
        looked = call(as_anybody("status"), project)
        assert (looked.returncode, looked.stdout.partition(",")[0]) == (0, "run first: running")
        store.pause("first", "me", "seen by all")
        assert "run first: paused" in call(as_anybody("status"), project).stdout


def test_what_would_change_it_is_refused_with_the_reason(project: Path) -> None:
    begin(project).close()
    lock_up(project)
    before = (project / "spsa.db").read_bytes()
    refused = call(as_anybody("pause"), project)
    assert refused.returncode == 5
    assert "spsa.db: attempt to write a readonly database" in refused.stderr
    assert (project / "spsa.db").read_bytes() == before


def test_the_way_that_is_taken_away_from_root_is_really_gone(tmp_path: Path) -> None:
    file = tmp_path / "file"
    sqlite3.connect(file).close()
    file.write_text("x")
    file.chmod(0o444)
    prefix = as_anybody()[: -len(master())]
    done = subprocess.run([*prefix, "sh", "-c", f"echo y > {file}"], capture_output=True)
    assert done.returncode != 0 and file.read_text() == "x"
