"""A worker that follows the versions of its server: real zipapps, real processes, a real server.

The cases are those that other projects met: a stricter server that an old worker can no longer
speak with, an update that changes nothing and is tried for ever, batches that are still held.
"""

import hashlib
import io
import os
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from console import Running, compete
from worker_server import TOKEN, Request, WorkerServer, refusal

from spsa.protocol import PROTOCOL
from spsa.server.worker_files import packed
from worker.batches.loop import NOTHING_TO_DO

QUICK = {"CHECK_SECONDS = 300.0": "CHECK_SECONDS = 0.2"}
BATCHES = 4


def repacked(mark: str, **changes: dict[str, str]) -> bytes:
    """worker.pyz with a mark that gives it another hash, and with changes by its files' names."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(packed())) as old, zipfile.ZipFile(file, "w") as new:
        for name in old.namelist():
            content = old.read(name).decode()
            for before, after in changes.get(
                name.replace("/", "_").removesuffix(".py"), {}
            ).items():
                assert before in content
                content = content.replace(before, after)
            new.writestr(name, content)
        new.writestr("mark.txt", mark)
    return file.getvalue()


def quick(mark: str, **changes: dict[str, str]) -> bytes:
    """One that asks for the server's version five times a second."""
    return repacked(mark, worker_update=QUICK | changes.pop("worker_update", {}), **changes)


OLD_PROTOCOL = {f"PROTOCOL = {PROTOCOL}": f"PROTOCOL = {PROTOCOL - 1}"}


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The file that workers run from."""
    return tmp_path / "worker.pyz"


@pytest.fixture
def start(file: Path, server: WorkerServer) -> Callable[..., Running]:
    """Starts a worker from `file`, which the first one writes."""

    def start_worker(pyz: bytes, *words: str, **variables: str) -> Running:
        if not file.exists():
            file.write_bytes(pyz)
        command = [sys.executable, "-I", "-S", file.name, "--server", server.url, "-c", "1", *words]
        usual = {"PATH": os.environ["PATH"], "HOME": str(file.parent), "SPSA_TOKEN": TOKEN}
        return Running(command, file.parent, usual | variables)

    return start_worker


def left(file: Path) -> set[str]:
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
    at_download: list[tuple[int, int]] = []

    def note(_: Request) -> None:
        at_download.append((len(server.reports()), BATCHES - len(server.claims)))

    server.replaced["/worker.pyz"] = note
    gate.touch()
    assert running.ended() == 0
    ((reported, claimed),) = at_download
    assert reported == claimed > 0
    assert len(server.reports()) == BATCHES
    assert file.read_bytes() == new
    assert (tmp_path / "over").read_text() == "over\n", "once, and not when it became another"


def refuse_other_protocols(server: WorkerServer) -> None:
    def strict(request: Request) -> Any:
        if request.headers.get("X-Spsa-Protocol") != str(server.version["protocol"]):
            return refusal(426, "this worker is too old", "outdated")
        return None

    names = ("register", "touch", "claim", "renew", "report", "release", "fail", "work")
    server.replaced |= {f"/worker/{name}": strict for name in names}


def test_a_server_that_becomes_strict_interrupts_the_games_and_updates(
    start, server, play, tmp_path, file
):
    """fishtest 1166: the server refused what old workers sent, and so never told them to update."""
    refuse_other_protocols(server)
    server.version = {"version": "0", "protocol": PROTOCOL - 1, "sha256": ""}
    old = repacked("old", spsa_protocol=OLD_PROTOCOL)
    server.version["sha256"] = sha256(old)
    play(1, gate=tmp_path / "never")
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
    done = compete("--server", server.url, "-c", "1", SPSA_TOKEN=TOKEN)
    assert done.returncode == 2
    assert "install version 7.0 here" in done.stderr
    assert f"{server.url}/worker.pyz" in done.stderr
    assert [request.path for request in server.requests] == ["/worker/version"]
