"""`run`: wrong files are refused with all their faults, before anything is touched."""

import io
import threading
from pathlib import Path
from unittest.mock import MagicMock

import click
import pytest
from builders import stage
from console import CONFIG, ROOT, write_project
from rich.console import Console
from transcripts import headings

from spsa.cli.demo import fresh
from spsa.cli.held_run import HeldRun, interruptible, sole_writer, tune
from spsa.config import load_config
from spsa.config.space import load_space
from spsa.errors import DatabaseUnreachable, InvalidInput

*FAULTS, TAKEN = headings(__file__)


@pytest.mark.parametrize("situation", FAULTS)
def test_all_faults_are_told_and_nothing_is_done(situation, project, transcript):
    before = {*project.rglob("*"), project / "b.epd"}
    said = transcript(situation)
    assert before >= {*project.rglob("*")}
    for fault in said[-1].err.splitlines()[:-1]:
        assert fault[0] != "/" and "; " in fault, "the file from here, and what would be right"


def test_a_params_toml_that_is_being_edited_is_written_later(
    project, project_store, monkeypatch, capsys
):
    staged = stage(project_store, load_space(Path("params.toml")), 1)
    config = load_config(Path("config.toml"), {})
    Path("params.toml").write_text("[margin")
    monkeypatch.setattr("spsa.cli.held_run.Master", MagicMock())
    console = Console(file=io.StringIO())
    held = HeldRun(project_store, config, staged.master, console, threading.Event())
    tune(held, MagicMock(run=staged.now(), notes=("one",)))
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith("note: one\ncannot write theta to params.toml, ")
    assert said.err.count("will retry: ") == said.err.count("is not TOML") == 2


def test_a_database_that_is_away_is_no_error_of_a_program_that_is_stopping():
    with pytest.raises(DatabaseUnreachable), interruptible():
        raise DatabaseUnreachable("no response")
    with pytest.raises(click.Abort), interruptible() as stopping:
        stopping.set()
        raise DatabaseUnreachable("no response")


def test_a_demo_begins_anew_in_a_folder_of_its_own(tmp_path):
    for seed in (7, 8):
        config = fresh(tmp_path / "demo", seed)
        assert config.run.seed == seed and config.build.source_path == ROOT / "engine"
        assert not (tmp_path / "demo" / "spsa.db").exists()
        (tmp_path / "demo" / "spsa.db").touch()
    with pytest.raises(InvalidInput, match="no demo created it"):
        fresh(tmp_path, 7)


def test_a_params_toml_that_the_master_of_another_run_writes(project, transcript):
    with sole_writer(load_config(Path("config.toml"), {}), "other"):
        transcript.refused(TAKEN)
        own = CONFIG.replace("seed = 7", 'params = "own.toml"')
        write_project(project, own)
        config = load_config(Path("config.toml"), {})
        with sole_writer(config, "small"), sole_writer(config, "small"):
            pass  # another file, and a master that stands by
    write_project(project)
    with sole_writer(load_config(Path("config.toml"), {}), "small"):
        pass  # the other one has ended
