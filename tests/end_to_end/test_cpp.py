"""A C++ engine from `init` to the end of a run, with a real compiler, make, master and worker."""

import shutil
import tomllib
from pathlib import Path

import pytest
from asking import Store
from console import call, master
from tuner import Tuner

pytestmark = [
    pytest.mark.skipif(
        not (shutil.which("make") and shutil.which("c++")), reason="needs make and a C++ compiler"
    ),
    pytest.mark.slow,
]

ENGINE = Path(__file__).parents[1] / "fixtures" / "cpp"
CONFIG = """\
[run]
name = "small"
[time_control]
kind = "nodes"
low = 150
high = 250
[games]
games_per_iteration = 8
batch_size = 2
iterations_in_flight = 1
[spsa]
max_iterations = 2
[adjudication]
max_moves = 60
[build]
source_path = "tern"
constants_file = "{constants_file}"
command = ["make", "CXXFLAGS=-O1 -std=c++17"]
binary = "tern"
"""


def test_a_cpp_engine_is_tuned_from_init_to_the_end(tmp_path):
    shutil.copytree(ENGINE, tmp_path / "tern")
    call(master("init", "tern"), tmp_path)
    build = tomllib.loads((tmp_path / "config.toml").read_text())["build"]
    assert (build["command"], build["binary"]) == (["make"], "tern")
    # what init wrote of the build, and a run of a few small iterations
    params = (tmp_path / "params.toml").read_text()
    tuner = Tuner(tmp_path, f"sqlite:///{tmp_path / 'spsa.db'}", CONFIG.format(**build), params)
    source = {path.name: path.read_bytes() for path in (tmp_path / "tern").iterdir()}
    tuner.tune()
    with Store(tuner.url) as store:
        run = store.run("small")
        iterations = store.iterations(run.id)
    assert (run.status, run.applied) == ("finished", 2)
    assert sum(it.games_played for it in iterations) == 16
    assert all(it.plus_sha256 != it.minus_sha256 for it in iterations)
    assert {path.name: path.read_bytes() for path in (tmp_path / "tern").iterdir()} == source
