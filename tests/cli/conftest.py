"""A project in the present folder, its database, and commands called on it in this process."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from asking import Store
from console import OWN, Ask, Said, write_project

from spsa.cli import execute


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The present folder, with no variable that names another one."""
    monkeypatch.chdir(tmp_path)
    for variable in OWN:
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


@pytest.fixture
def project(folder: Path) -> Path:
    """Both files and an engine's source."""
    write_project(folder)
    return folder


@pytest.fixture
def project_store(project: Path, sqlite_template: Path) -> Iterator[Store]:
    """The database of the project, with its tables, opened."""
    shutil.copy(sqlite_template, project / "spsa.db")
    with Store(f"sqlite:///{project / 'spsa.db'}", durable=False) as store:
        yield store


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    def called(*words: object) -> Said:
        capsys.readouterr()
        code = execute([str(word) for word in words])
        heard = capsys.readouterr()
        return Said(code, heard.out, heard.err)

    return called
