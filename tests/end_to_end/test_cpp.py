"""A C++ engine from `init` to the end of a run, and on machines that are not alike.

These have other levels and no file in common: a machine is a mount name space in which the folder
of the run is empty and /proc/cpuinfo is that of another processor.
"""

import os
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
from asking import Store
from console import Running, call, master
from tuner import Tuner, texts

from spsa.builds.requirements import provided

ENGINE = Path(__file__).parents[1] / "fixtures" / "cpp"
V1 = "fpu sse sse2"
V2 = f"{V1} pni ssse3 cx16 sse4_1 sse4_2 popcnt lahf_lm"
V3 = f"{V2} fma movbe xsave avx f16c abm bmi1 avx2 bmi2"
CONFIG, PARAMS = texts("tern")

pytestmark = [
    pytest.mark.skipif(not all(map(shutil.which, ("make", "c++"))), reason="needs make and c++"),
    pytest.mark.slow,
]


def test_a_cpp_engine_is_tuned_from_init_to_the_end(tmp_path):
    shutil.copytree(ENGINE, tmp_path / "tern")
    call(master("init", "tern"), tmp_path)
    build = tomllib.loads((tmp_path / "config.toml").read_text())["build"]
    assert (build["command"], build["binary"]) == (["make"], "tern")
    # what init wrote of the build, and a run of a few small iterations
    config = CONFIG.replace("params.h", build["constants_file"])
    params = (tmp_path / "params.toml").read_text()
    tuner = Tuner(tmp_path, f"sqlite:///{tmp_path / 'spsa.db'}", config, params)
    tuner.configure("max_iterations = 1", "max_iterations = 2")
    source = {path.name: path.read_bytes() for path in (tmp_path / "tern").iterdir()}
    tuner.tune()
    with Store(tuner.url) as store:
        run = store.run("small")
        iterations = store.iterations(run.id)
    assert (run.status, run.applied) == ("finished", 2)
    assert sum(it.games_played for it in iterations) == 16
    assert all(it.plus_sha256 != it.minus_sha256 for it in iterations)
    assert {path.name: path.read_bytes() for path in (tmp_path / "tern").iterdir()} == source


class Machine:
    """A mount name space `number` of this test, on the processor that these flags name."""

    def __init__(self, number, flags, tuner):
        self._url, self._folder = tuner.url, tuner.folder
        self._cpuinfo = tuner.folder / f"cpuinfo-{number}"
        self._cpuinfo.write_text(f"flags\t\t: {flags}\n")

    def worker(self, *arguments):
        """A worker whose cache begins empty; at its end it lists the engines that it had."""
        script = (
            f"mount --bind {self._cpuinfo} /proc/cpuinfo && mount -t tmpfs none {self._folder}"
            f' && {sys.executable} -m worker --spsa -c 1 "$@"; code=$?'
            f" && (ls {self._folder}/engines | grep -v builds || true) && exit $code"
        )
        command = ("unshare", "--mount", "sh", "-c", script, "sh", "--engines-cache")
        known = {"DATABASE_URL": self._url, "XDG_CACHE_HOME": str(self._folder)}
        return Running([*command, f"{self._folder}/engines", *arguments], Path("/"), **known)


@pytest.fixture
def tuner(tmp_path, postgresql_url):
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("only root can mount")
    if "x86-64-v3" not in provided():
        pytest.skip("needs a processor of x86-64-v3")
    shutil.copytree(ENGINE, tmp_path / "tern")
    made = Tuner(tmp_path, postgresql_url, CONFIG, PARAMS)
    made.configure("-std=c++17", "-std=c++17 -march={level}")
    made.configure("[build]", '[build]\nlevels = ["x86-64-v2"]\ndistribute = "database"')
    return made


def listed(workers):
    """The engines that each worker had; all end well."""
    assert [worker.ended() for worker in workers] == [0] * len(workers)
    return [set(worker.out.split()) for worker in workers]


def test_unlike_machines_share_a_run(tuner):
    machines = [Machine(number, flags, tuner) for number, flags in enumerate((V1, V2, V3))]
    master = tuner.master()
    tuner.wait_for_work()
    oldest = machines[0].worker("--once")
    played = listed([machine.worker("--max-batches", 2) for machine in machines[1:]])
    assert oldest.ended() == 3, oldest.log
    assert "requires x86-64-v2, and this worker has only linux, x86-64" in oldest.log
    tuner.ends(master)
    with Store(tuner.url) as store:
        run = store.run("small")
        (row,) = store.iterations(run.id)
        shares = {share.batches for share in store.workers()}
        claim, *_ = store.played_batch(run.id, 1, 0)
    assert (run.applied, row.games_played) == (1, 8)
    assert shares == {0, 2}
    assert not claim.variants
    assert played == [{row.plus_sha256, row.minus_sha256}] * 2


def test_a_worker_builds_for_machines_that_have_no_source(tuner, tmp_path_factory):
    """The master builds nothing: its engines folder does not come to be.

    To be quick the engine is compiled once, and the command adds to its end what it is built for.
    """
    compiled = shutil.copytree(ENGINE, tmp_path_factory.mktemp("compiled") / "tern")
    subprocess.run(["make", "-C", compiled, "CXXFLAGS=-O0 -std=c++17"], check=True)
    shell = f"cp {compiled}/tern tern && (cat params.h && echo {{level}}) >> tern"
    tuner.configure('distribute = "database"', 'where = "worker"')
    tuner.configure('["x86-64-v2"]', '["x86-64-v3", "x86-64-v2"]')
    tuner.configure('"make", "CXXFLAGS=-O0 -std=c++17 -march={level}"', f'"sh", "-c", "{shell}"')
    two, three = (Machine(number, flags, tuner) for number, flags in enumerate((V2, V3)))
    master = tuner.master()
    player = two.worker("--max-batches", 2)
    with Store(tuner.url) as store:
        while not store.active_workers() and player.poll() is None:
            time.sleep(0.05)
        played = listed([player, three.worker("--max-batches", 2, "--build")])
        tuner.ends(master)
        run = store.run("small")
        (row,) = store.iterations(run.id)
        claim, *_ = store.played_batch(run.id, 1, 0)
    assert (run.applied, row.games_played) == (1, 8)
    ((words, sides),) = claim.variants.items()
    assert words == "% linux % x86-64-v3 %"
    assert played == [{row.plus_sha256, row.minus_sha256}, {side.sha256 for side in sides}]
    assert not (tuner.folder / "engines").exists()
