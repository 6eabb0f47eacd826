"""A worker that follows the versions of its server: real zipapps, real processes, a real server.

The cases are those that other projects met: a stricter server that an old worker can no longer
speak with, an update that changes nothing and is tried for ever, batches that are still held.
"""

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import time
import zipfile

import pytest
from console import Running, compete

from spsa.protocol import PROTOCOL
from spsa.server.worker_files import packed, packed_sha256
from worker.batches.loop import NOTHING_TO_DO

QUICK = {"CHECK_SECONDS = 300.0": "CHECK_SECONDS = 0.2"}
BATCHES = 4


def repacked(mark, lacking="", **changes):
    """worker.pyz with a mark that gives it another hash, and with changes by its files' names."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(packed())) as old, zipfile.ZipFile(file, "w") as new:
        for name in old.namelist():
            content = old.read(name).decode()
            key = name.replace("/", "_").removesuffix(".py")
            for before, after in changes.get(key, {}).items():
                assert before in content
                content = content.replace(before, after)
            if name not in (lacking, f"{lacking}c"):
                new.writestr(name, content)
        new.writestr("mark.txt", mark)
    return file.getvalue()


def quick(mark, **changes):
    """One that asks for the server's version five times a second."""
    return repacked(mark, worker_update=QUICK | changes.pop("worker_update", {}), **changes)


OLD_PROTOCOL = {f"PROTOCOL = {PROTOCOL}": f"PROTOCOL = {PROTOCOL - 1}"}


def sha256(data):
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def file(tmp_path):
    """The file that workers run from."""
    return tmp_path / "worker.pyz"


@pytest.fixture
def start(file, server):
    """Starts a worker from `file`, which the first one writes."""

    def start_worker(pyz, *words, **variables):
        if not file.exists():
            file.write_bytes(pyz)
        command = [sys.executable, "-I", "-S", file.name, "--server", server.url, "-c", "1", *words]
        usual = {"PATH": os.environ["PATH"], "HOME": str(file.parent), "SPSA_TOKEN": server.token}
        return Running(command, file.parent, usual | variables)

    return start_worker


def left(file):
    """The worker's files beside its own."""
    return {path.name for path in file.parent.iterdir() if "pyz" in path.name} - {file.name}


def test_an_old_worker_becomes_the_servers_before_it_registers(start, server, play, file):
    old, new = repacked("old"), repacked("new")
    server.offer(new)
    play()
    running = start(old, "--max-batches", "1")
    pid = running.pid
    assert running.ended() == 0
    assert file.read_bytes() == new
    assert left(file) == set()
    # the old one asked nothing but the version and the file
    paths = [request.path for request in server.requests]
    assert paths[:4] == ["/worker/version", "/worker.pyz", "/worker/version", "/worker/register"]
    assert len(server.reports()) == 1
    (registered,) = server.asked("/worker/register")
    assert f"-{pid}-" in registered.json["name"]  # the process became the new version


def test_what_it_plays_is_reported_before_it_changes(start, server, play, tmp_path, file):
    """fishtest 2131: an old worker left its tasks to run out."""
    gate = tmp_path / "gate"
    server.offer(old := quick("old"))
    play(BATCHES, gate=gate)
    running = start(old, "--idle-timeout", "2", "--then", "echo over >> over")
    running.until(lambda: "claimed, 1 pair" in running.log)
    server.offer(new := quick("new"))
    running.until(lambda: "updating after the batches of now" in running.log)
    claims_before = len(server.asked("/worker/claim"))
    time.sleep(1.0)
    assert len(server.asked("/worker/claim")) == claims_before  # it claims no more, and waits
    assert server.asked("/worker.pyz") == []
    at_download, fetch = list[set[str]](), server.replaced["/worker.pyz"]

    def noted(request):
        rows = server.staged.store.batches(server.staged.run.id)
        at_download.append({row.status for row in rows})
        return fetch(request)

    server.replaced["/worker.pyz"] = noted
    gate.touch()
    assert running.ended() == 0
    assert at_download == [{"done", "ready"}], "and none is leased"
    assert len(server.reports()) == BATCHES
    assert file.read_bytes() == new
    assert (tmp_path / "over").read_text() == "over\n", "once, and not when it became another"


def test_a_server_that_becomes_strict_interrupts_the_games_and_updates(
    start, server, play, tmp_path, file, monkeypatch
):
    """fishtest 1166: the server refused what old workers sent, and so never told them to update."""
    old = repacked("old", spsa_protocol=OLD_PROTOCOL)
    server.offer(old, protocol=PROTOCOL - 1)
    play(1, gate=tmp_path / "never")
    with monkeypatch.context() as patch:
        patch.setattr("spsa.server.workers.PROTOCOL", PROTOCOL - 1)
        running = start(old, "--idle-timeout", "2", "--lease", "10")
        running.until(lambda: "claimed, 1 pair" in running.log)
        server.offer(new := repacked("new"))
    running.until(lambda: "1 batch cannot be reported any more" in running.log)
    assert running.ended() == NOTHING_TO_DO
    assert file.read_bytes() == new
    assert "first it 1 batch 0: handed back" in running.log


@pytest.mark.parametrize("protocol", [PROTOCOL, PROTOCOL + 1])
def test_a_file_that_is_not_what_the_server_announces_is_tried_once(
    start, server, play, protocol, file
):
    """fishtest 544: workers fetched for ever an update that did not change their version."""
    server.offer(b"damaged on its way", protocol=protocol)
    server.version["sha256"] = "a" * 64
    old = quick("old")
    play()
    running = start(old, "--idle-timeout", "2")
    assert running.ended() == (0 if protocol == PROTOCOL else 1)
    assert len(server.asked("/worker.pyz")) == 1
    assert f"its worker.pyz hashes to {sha256(b'damaged on its way')}" in running.log
    assert file.read_bytes() == old
    if protocol == PROTOCOL:
        assert "this version goes on" in running.log and len(server.reports()) == 1
        assert running.log.count("this version goes on") == 1  # though it asks again and again
    else:
        assert "this version cannot speak with the server" in running.log


BROKEN = {
    "at once": ({"main()": "sys.exit('it has a defect')"}, "exit code 1: it has a defect"),
    "never": ({"main()": "import time; time.sleep(1000)"}, "timed out after 3.0 seconds"),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", BROKEN)
def test_a_new_version_that_fails_is_not_used_and_not_tried_again(start, server, play, kind, file):
    changes, said = BROKEN[kind]
    patience = {"TRIAL_SECONDS = 60.0": "TRIAL_SECONDS = 3.0"}
    old = quick("old", worker_update=patience if kind == "never" else {})
    server.offer(repacked("broken", __main__=changes))
    play(2)
    running = start(old, "--idle-timeout", "60")
    running.until(lambda: len(server.reports()) == 2)
    running.until(lambda: "this version goes on" in running.log)
    assert said in running.log
    assert file.read_bytes() == old
    assert left(file) == set()
    time.sleep(1.0)
    assert len(server.asked("/worker.pyz")) == 1
    if kind != "never":
        server.offer(new := repacked("repaired"))
        running.until(lambda: file.read_bytes() == new)
        play(1)
        running.until(lambda: len(server.reports()) == 3)


def test_an_installed_worker_says_which_version_to_install(server):
    server.offer(b"another", version="7.0", protocol=PROTOCOL + 1)
    done = compete("--server", server.url, "-c", "1", SPSA_TOKEN=server.token)
    assert done.returncode == 2
    assert "install version 7.0 here" in done.stderr
    assert f"{server.url}/worker.pyz" in done.stderr
    assert [request.path for request in server.requests] == ["/worker/version"]


ALONE = [sys.executable, "-I", "-S"]  # no packages of this environment, no current folder

PYTHONS = [
    python for minor in range(7, 20) if (python := shutil.which(f"python3.{minor}")) is not None
]

NEVER = ("sqlalchemy", "alembic", "numpy", "psycopg2", "spsa.db", "pygments", "markdown_it")


@pytest.fixture(scope="module")
def pyz(tmp_path_factory):
    path = tmp_path_factory.mktemp("zip") / "worker.pyz"
    path.write_bytes(packed())
    return path


def run(pyz, *words, python=ALONE, **variables):
    home = str(pyz.parent)
    return subprocess.run(
        [*python, str(pyz), *words],
        cwd=pyz.parent,
        env={"PATH": os.environ["PATH"], "HOME": home, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_it_is_small_the_same_each_time_and_imports_nothing_that_needs_a_package(pyz):
    """And has every licence, and nothing for a database."""
    assert len(packed()) < 1_500_000
    assert packed_sha256() == hashlib.sha256(packed()).hexdigest()
    code = "from spsa.server.worker_files import packed_sha256; print(packed_sha256())"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/"
    )
    assert done.stdout.strip() == packed_sha256()
    names = zipfile.ZipFile(pyz).namelist()
    assert names == sorted(names)
    assert not [name for name in names if name.startswith(("spsa/db", "spsa/server", "tests"))]
    assert not {"worker/direct.py", "worker/replay.py"} & set(names)
    for library in ("chess", "click", "rich", "urllib3", "spsa-tuner"):
        assert any(name.startswith(f"licences/{library}/") for name in names)
    modules = [
        name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for name in names
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
    broken.write_bytes(repacked("broken", lacking))
    assert run(pyz, "--version").returncode == 0
    assert run(broken, "--version").returncode != 0


def test_what_needs_a_database_says_so(pyz):
    for words in (["--spsa"], ["--replay", "1.1"], ["--spsa", "--database-url", "sqlite:///x.db"]):
        done = run(pyz, *words)
        assert done.returncode == 2
        assert "this file plays for a server: give --server URL" in done.stderr
