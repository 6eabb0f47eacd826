"""A C++ engine from `init` to the end of a run, with a real compiler, make, master and worker."""

import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from asking import Store
from tuner import Tuner

pytestmark = [
    pytest.mark.skipif(
        not (shutil.which("make") and shutil.which("c++")), reason="needs make and a C++ compiler"
    ),
    pytest.mark.slow,
]

ENGINE = Path(__file__).parents[1] / "fixtures" / "cpp"
RUN = """\
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
"""


@pytest.fixture
def tuner(tmp_path: Path) -> Iterator[Tuner]:
    shutil.copytree(ENGINE, tmp_path / "tern")
    made = Tuner(tmp_path, f"sqlite:///{tmp_path / 'spsa.db'}", tmp_path / "engines")
    yield made
    made.kill_all()


def test_a_cpp_engine_is_tuned_from_init_to_the_end(tuner: Tuner) -> None:
    begun = tuner.ask("init", "tern")
    assert begun.returncode == 0, begun.stderr
    config = tuner.folder / "config.toml"
    build = tomllib.loads(config.read_text())["build"]
    assert (build["command"], build["binary"]) == (["make"], "tern")
    # what init wrote of the build, and a run of a few small iterations
    config.write_text(
        RUN + f'[database]\nurl = "{tuner.url}"\n[build]\n'
        f'source_path = "tern"\nconstants_file = "{build["constants_file"]}"\n'
        'command = ["make", "CXXFLAGS=-O1 -std=c++17"]\nbinary = "tern"\n'
    )
    source = {path.name: path.read_bytes() for path in (tuner.folder / "tern").iterdir()}
    master = tuner.master()
    tuner.wait_for_tables()
    worker = tuner.worker()
    assert tuner.ended(master) == 0, tuner.account()
    assert tuner.ended(worker) in (0, 3), tuner.account()
    with Store(tuner.url) as store:
        run = store.run("small")
        iterations = store.iterations(run.id)
    assert (run.status, run.applied) == ("finished", 2)
    assert sum(it.games_played for it in iterations) == 16
    assert all(it.plus_sha256 != it.minus_sha256 for it in iterations)
    assert {path.name: path.read_bytes() for path in (tuner.folder / "tern").iterdir()} == source
