"""worker.pyz: what is in it, and that it plays on a machine with nothing but Python."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from engines.faulty import engine
from worker_server import TOKEN, WorkerServer, claim_of

from spsa.server.worker_files import packed, packed_sha256

ALONE = [sys.executable, "-I", "-S"]  # no packages of this environment, no current folder

PYTHONS = [
    python for minor in range(7, 20) if (python := shutil.which(f"python3.{minor}")) is not None
]

NEVER = ("sqlalchemy", "alembic", "numpy", "psycopg2", "spsa.db", "pygments", "markdown_it")


@pytest.fixture(scope="module")
def pyz(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("zip") / "worker.pyz"
    path.write_bytes(packed())
    return path


@pytest.fixture
def server(server: WorkerServer) -> WorkerServer:
    server.offer(packed())
    return server


def run(pyz: Path, *words: str, python: Sequence[str] = ALONE, **variables: str) -> "Done":
    home = str(pyz.parent)
    return subprocess.run(
        [*python, str(pyz), *words],
        cwd=pyz.parent,
        env={"PATH": os.environ["PATH"], "HOME": home, "SPSA_TOKEN": TOKEN, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )


Done = subprocess.CompletedProcess[str]


def names(pyz: Path) -> list[str]:
    return zipfile.ZipFile(pyz).namelist()


def test_it_is_small_and_ordered_and_the_same_each_time(pyz):
    assert len(packed()) < 1_500_000
    assert names(pyz) == sorted(names(pyz))
    assert packed_sha256() == hashlib.sha256(packed()).hexdigest()
    code = "from spsa.server.worker_files import packed_sha256; print(packed_sha256())"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/"
    )
    assert done.stdout.strip() == packed_sha256()


def test_it_has_nothing_that_needs_a_database_and_every_licence(pyz):
    found = names(pyz)
    assert not [name for name in found if name.startswith(("spsa/db", "spsa/server", "tests"))]
    assert not {"worker/direct.py", "worker/replay.py"} & set(found)
    for library in ("chess", "click", "rich", "urllib3", "spsa-tuner"):
        assert any(name.startswith(f"licences/{library}/") for name in found)


def test_every_module_of_it_can_be_imported_without_a_package(pyz):
    modules = [
        name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for name in names(pyz)
        if name.startswith(("worker/", "spsa/")) and name.endswith(".py")
    ]
    assert len(modules) > 50
    code = f"""
import importlib, json, sys
sys.path.insert(0, {str(pyz)!r})
for name in {modules!r}:
    if name != "worker.__main__":
        importlib.import_module(name)
print(json.dumps(sorted(sys.modules)))
"""
    done = subprocess.run([*ALONE, "-c", code], capture_output=True, text=True, cwd="/")
    assert done.returncode == 0, done.stderr
    loaded = json.loads(done.stdout)
    assert not [name for name in loaded if name.startswith(NEVER)]
    foreign = {name.partition(".")[0] for name in loaded} - set(sys.stdlib_module_names)
    assert foreign - {"__main__"} == {"chess", "click", "rich", "spsa", "urllib3", "worker"}


@pytest.mark.parametrize("python", PYTHONS)
def test_an_older_python_gets_a_sentence_and_a_newer_one_runs_it(pyz, python):
    found = subprocess.run(
        [python, "-c", "import sys; print(sys.version_info[:2] >= (3, 11))"],
        capture_output=True,
        text=True,
    )
    if found.returncode != 0:
        pytest.skip(f"{python} does not run")
    done = run(pyz, "--version", python=[python])
    if found.stdout.strip() == "True":
        assert (done.returncode, done.stderr) == (0, "")
    else:
        assert done.returncode == 2
        assert done.stderr.startswith("worker.pyz needs Python 3.11 or newer, and this is ")


@pytest.mark.parametrize(
    "lacking", ["worker/runner/pool.py", "worker/remote.py", "chess/__init__.py"]
)
def test_one_that_could_not_play_does_not_say_its_version(pyz, tmp_path, lacking):
    """A worker tries its new version so before it replaces itself."""
    broken = tmp_path / "worker.pyz"
    with zipfile.ZipFile(pyz) as whole, zipfile.ZipFile(broken, "w") as part:
        for name in whole.namelist():
            if name not in (lacking, f"{lacking}c"):
                part.writestr(name, whole.read(name))
    assert run(pyz, "--version").returncode == 0
    assert run(broken, "--version").returncode != 0


def test_it_plays_for_a_server_with_the_built_in_book(pyz, server, tmp_path):
    engines = engine(tmp_path, "plus"), engine(tmp_path, "minus")
    server.claims.append(claim_of(*engines, server, pairs=1))
    done = run(pyz, "--server", server.url, "-c", "1", "--max-batches", "1")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    ((report,), claimed) = server.reports(), server.asked("/worker/claim")[0].json
    assert report["result"]["tally"]["pentanomial"].count(1) == 1
    assert report["held"]["claim_id"] == claimed["claim_id"]
    assert server.requests[0].path == "/worker/version"


def test_what_needs_a_database_says_so(pyz):
    for words in (["--spsa"], ["--replay", "1.1"], ["--spsa", "--database-url", "sqlite:///x.db"]):
        done = run(pyz, *words)
        assert done.returncode == 2
        assert "this file plays for a server: give --server URL" in done.stderr
