"""`run`: wrong files are refused with all their faults, before anything is touched."""

import io
import threading
from pathlib import Path
from unittest.mock import MagicMock

import click
import pytest
from builders import stage
from console import CONFIG, PARAMS, ROOT, write_project
from rich.console import Console

from spsa.cli.demo import fresh
from spsa.cli.held_run import HeldRun, interruptible, sole_writer, tune
from spsa.config import load_config
from spsa.config.space import load_space
from spsa.errors import DatabaseUnreachable, InvalidInput


def refused(ask, file):
    """The faults that `run` tells of, after it has been seen to do nothing else."""
    before = sorted(Path().rglob("*"))
    heard = ask("run")
    *faults, count = heard.err.splitlines()
    assert (heard.code, heard.out) == (2, ""), heard.err
    assert count.startswith(f"{len(faults)} fault"), heard.err
    for fault in faults:
        assert fault.startswith(file) and fault[0] != "/" and "; " in fault, fault
    assert sorted(Path().rglob("*")) == before
    return faults


FAULTY = PARAMS.replace("min = 50", "min = 500")
GONE = FAULTY.replace("[margin]", "[margins]").replace("500", "50")
THREE = CONFIG.replace("seed = 7", "seed = -7").replace("= 8", "= 7").replace("= 150", "= 0")


@pytest.mark.parametrize(
    ("config", "params", "names"),
    [
        (CONFIG.replace("batch_size", "batch_sise"), PARAMS, ['did you mean "batch_size"?']),
        (CONFIG.replace("[games]", "[game]"), PARAMS, ['did you mean "games"?']),
        (THREE, PARAMS, ["config.toml:3: [run] seed", "[games]", "[time_control]"]),
        (CONFIG, FAULTY.replace("step = 1\n", "step = -1\n"), ["[margin]", "[depth]"]),
        (
            CONFIG.replace("[spsa]", 'book = "b.epd"\n[spsa]'),
            GONE,
            ["[margins]", "b.epd:1: [opening]"],
        ),
        (
            CONFIG.replace('"engine"\n', '"gone"\n'),
            FAULTY,
            ["[build]", "gone/src/engine_constants.rs: ", "[margin]"],
        ),
    ],
)
def test_faults_of_config_come_in_one_go_then_those_of_params_source_and_book(
    project, config, params, names, ask
):
    (project / "b.epd").write_text("no position\n")
    write_project(project, config, params)
    faults = refused(ask, "")
    assert len(faults) == len(names), faults
    assert {name for name in names if any(name in fault for fault in faults)} == {*names}, faults


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


def test_a_params_toml_that_the_master_of_another_run_writes(project, ask):
    with sole_writer(load_config(Path("config.toml"), {}), "other"):
        (fault,) = refused(ask, "config.toml:1: [run] ")
        assert f"params.toml is written by the master of run other in sqlite:///{project}" in fault
        own = CONFIG.replace("seed = 7", 'params = "own.toml"')
        write_project(project, own)
        config = load_config(Path("config.toml"), {})
        with sole_writer(config, "small"), sole_writer(config, "small"):
            pass  # another file, and a master that stands by
    write_project(project)
    with sole_writer(load_config(Path("config.toml"), {}), "small"):
        pass  # the other one has ended
