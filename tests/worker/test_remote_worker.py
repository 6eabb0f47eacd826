"""A worker that plays for a server: when it waits and ends, what it says, how it is updated.

The cases of updates are those that other projects met: a stricter server that an old worker can no
longer speak with, an update that changes nothing and is tried for ever, batches that are held.
"""

import hashlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from contextlib import closing
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest
from asking import RemoteStore
from builders import new_run, new_worker, result_of
from console import Running, call, compete, worker
from engines.faulty import running_with, wait_until
from golden import compare_cases
from served import certify
from starlette.responses import Response
from worker_server import MACHINE, refusal, worker_server

from spsa import __version__, errors
from spsa.protocol import PROTOCOL, HeldBuild
from spsa.server.worker_files import packed, packed_sha256
from worker.batches.loop import NOTHING_TO_DO
from worker.remote import ServerVersion
from worker.update import Updates


@pytest.fixture
def start(server, tmp_path):
    """Starts a worker of the server."""

    def start_worker(*words):
        command = worker("--server", server.url, "-c", "1", "--lease", "10", *words)
        return Running(command, SPSA_TOKEN=server.token, XDG_CACHE_HOME=str(tmp_path))

    return start_worker


def test_a_machine_that_is_not_permitted_is_told_so_and_ends(server, tmp_path):
    """OpenBench 56: a worker with a wrong password waited in silence."""
    server.replaced["/worker/register"] = lambda _: refusal(401, "this token is unknown")
    variables = {"SPSA_TOKEN": server.token, "XDG_CACHE_HOME": str(tmp_path)}
    done = compete("--server", server.url, "-c", 1, **variables)
    assert done.returncode == 2
    assert "this token is unknown" in done.stderr
    assert server.token not in done.stderr


def test_a_machine_that_is_revoked_ends_at_once_and_its_engines_too(start, server, play, tmp_path):
    """The command that follows still follows."""
    pid, over = tmp_path / "pid", tmp_path / "over"
    play(1, gate=tmp_path / "never", pid=pid)
    running = start("--then", f"touch {over}")
    running.until(lambda: pid.exists() and pid.read_text())
    server.staged.store.revoke_machine(MACHINE, "me")
    assert running.ended() == 2
    assert "revoked" in running.log and over.exists()
    wait_until(lambda: not running_with(f"--pid={pid}"))


@pytest.mark.slow
def test_a_command_follows_when_a_worker_has_ended_by_itself(start, server, play, tmp_path):
    """With what the worker's own environment has, but its token."""
    over = tmp_path / "over"
    play(1)
    running = start("--max-batches", "1", "--then", f"env > {over}; false")
    assert running.ended() == 0
    assert len(server.reports()) == 1
    assert "SPSA_" not in over.read_text() and server.token not in over.read_text()
    assert running.log.splitlines()[-1].endswith("false` ended with 1")
    over.unlink()
    assert start("--idle-timeout", "1", "--then", f"touch {over}").ended() == NOTHING_TO_DO
    assert over.exists()


def test_reports_wait_while_the_server_is_away(start, server, play, tmp_path):
    """fishtest 539: the result of a finished task was lost when the server did not respond."""
    gate, over = tmp_path / "gate", tmp_path / "over"
    play(1, gate=gate)
    running = start("--max-batches", "1", "--then", f"touch {over}")
    running.until(lambda: "claimed" in running.log)
    server.is_away = True
    gate.touch()
    running.until(lambda: "first it 1 batch 0: +" in running.log)
    running.until(lambda: running.log.count("does not respond") > 1)
    assert server.reports() == []
    server.is_away = False
    assert running.ended() == 0 and over.exists()
    ((report),) = server.reports()
    assert report["result"]["tally"]["pentanomial"].count(1) == 1


def test_no_command_follows_an_interrupt_or_a_failed_start(start, server, tmp_path):
    over = tmp_path / "over"
    running = start("--then", f"touch {over}")
    running.until(lambda: server.asked("/worker/claim"))
    running.send_signal(signal.SIGTERM)
    assert running.ended() == 0
    server.staged.store.revoke_machine(MACHINE, "me")
    assert start("--then", f"touch {over}").ended() == 2
    assert start("--then", f"touch {over}", "--lease", "no").ended() == 2
    assert not over.exists()


@pytest.mark.slow
def test_a_worker_without_work_says_why_in_one_line_each(start, server):
    store = server.staged.store
    store.pause("first", "me", "why")
    running = start("--label", "fast", "--not", "second")
    running.until(lambda: "`resume` if it is paused" in running.log)
    store.resume("first", "me")
    server.staged.open(requires=("big-memory",))
    running.until(lambda: "requires big-memory, and this worker has only" in running.log)
    store.stop("first", "me", "why")
    store.create_run(new_run(name="second"))
    running.until(lambda: "this worker leaves out the run second" in running.log)
    store.set_aside(MACHINE, "4 of its last batches failed", "me")
    running.until(lambda: "set aside and gets no batches: 4 of its last" in running.log)
    assert f"`spsa-master workers release {MACHINE}` ends that" in running.log
    asked = len(server.asked("/worker/touch"))
    running.until(lambda: len(server.asked("/worker/touch")) > asked + 1)
    for reason in ("`resume` if it", "big-memory", "leaves out", "set aside"):
        assert running.log.count(reason) == 1, running.log
    said = r"^\d\d:\d\d:\d\d there is nothing that this worker may play: "
    assert re.search(said, running.log, re.MULTILINE)
    assert len(server.asked("/worker/version")) == 1


@pytest.mark.slow
def test_leases_are_renewed_while_a_file_is_fetched(start, server, play):
    play(1, stored=True, size=2**22)
    server.pause = 0.1  # after each 2^16 bytes
    assert start("--max-batches", "1").ended() == 0
    file = next(i for i, r in enumerate(server.requests) if r.path.startswith("/worker/files/"))
    end = next(i for i, r in enumerate(server.requests) if r.path == "/worker/report")
    during = [r.json["claim_ids"] for r in server.requests[file:end] if r.path == "/worker/renew"]
    assert len(during) >= 2
    assert all(len(claim_ids) == 1 for claim_ids in during)
    assert len(server.reports()) == 1


def test_an_interrupt_ends_a_long_download_and_hands_the_batch_back(start, server, play):
    play(1, stored=True, size=2**23)
    server.pause = 0.1
    running = start()
    running.until(lambda: any(r.path.startswith("/worker/files/") for r in server.requests))
    running.send_signal(signal.SIGINT)
    assert running.ended() == 130
    (released,) = server.asked("/worker/release")
    assert released.json["batch_id"] == 1


@pytest.fixture
def store(server):
    with closing(RemoteStore(server.url, server.token)) as opened:
        yield opened


@pytest.fixture
def held(server, store, play):
    """The claim of a batch whose engines are in the database alone; plus has a megabyte."""
    play(1, stored=True, size=1_024_000)
    worker = store.register_worker(new_worker("far-1", provides=("linux",)))
    claim = store.claim("mine", worker, 60.0)
    server.requests.clear()
    return worker, claim


def test_a_worker_registers_with_its_token_and_asks_the_version_without_it(store, server):
    """The answer may have more fields."""
    assert store.register_worker(new_worker("far-1", provides=("linux",))).machine == MACHINE
    (request,) = server.requests
    assert request.json["provides"] == ["linux"]
    assert request.headers["authorization"] == f"Bearer {server.token}"
    assert request.headers["x-spsa-protocol"] == "1"
    assert request.headers["user-agent"].startswith("spsa-worker/")
    server.offer(b"not packed", version="9.9")
    found = server.version["sha256"]
    server.version |= {"more": ["of", "later"]}
    assert store.server_version() == ServerVersion(version="9.9", protocol=1, sha256=found)
    assert store.worker_file() == b"not packed"
    for request in server.requests[1:]:
        assert server.token not in str(request.headers)
        assert "x-spsa-protocol" not in request.headers


AWAY = errors.DatabaseUnreachable


def test_a_response_is_the_error_that_the_database_raises(server, held, store):
    """To a report, a request for a file (None: this machine may not have it) and for a version."""

    def shown(files):
        headers = dict(line.split(": ") for line in files.get("headers", "").splitlines())
        if "refusal" in files:
            status, *kind = files["refusal"].split()
            response = refusal(int(status), "no", *kind, **headers)
        else:
            response = Response(files["content"].replace("{deep}", "[" * 100_000), headers=headers)
        for path in ("report", f"files/{'f' * 64}", "version"):
            server.replaced[f"/worker/{path}"] = lambda _: response
        report = partial(store.report, held[1], result_of(held[1]))
        for ask in (report, partial(store.file, "f" * 64), store.server_version):
            try:
                yield f"{ask()!r:.30}"
            except errors.TuningError as error:
                told = str(error).replace(server.url, "{url}")
                assert told.startswith("{url}") and server.token not in told
                wait = getattr(error, "retry_after", None)
                yield f"{type(error).__name__}: {told}" + (f", waits {wait:g} s" if wait else "")

    compare_cases(Path(__file__).with_name("responses.txt"), shown)


def test_a_file_is_fetched_in_parts_and_a_lease_renewed_between_them(
    server, held, store, monkeypatch, caplog
):
    """What is too large, or arrives damaged, is as if there were no server."""
    worker, claim = held
    renewed: list[set[str]] = []
    store.on_chunk = lambda: renewed.append(store.renew(worker, ["mine"], 60.0))
    assert sha256(store.file(claim.plus.sha256)) == claim.plus.sha256
    assert renewed.count({"mine"}) == 4
    assert "pool is full" not in caplog.text, "there is a connection for each"
    with monkeypatch.context() as patch, pytest.raises(AWAY, match="sends more than 10 bytes"):
        patch.setattr("worker.remote.MAX_BYTES", 10)
        store.file(claim.plus.sha256)
    other = Response(json.dumps({"sha256": "0" * 64, "size": 1}))
    server.replaced["/worker/builds/1/c/plus"] = lambda _: other
    with pytest.raises(AWAY, match="an engine was damaged on its way"):
        store.upload_build(HeldBuild(worker_id=1, build_id=1, claim_id="c"), "plus", b"x")
    (uploaded,) = server.asked("/worker/builds/1/c/plus")
    assert uploaded.headers["content-type"] == "application/octet-stream"


def test_certificates_are_verified_and_SSL_CERT_FILE_is_obeyed(  # noqa: N802
    tmp_path, monkeypatch, staged
):
    """Of a server that no authority has signed a certificate for, but itself."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl here")
    certify(tmp_path, "own", "IP:127.0.0.1")
    files = {"ssl_certfile": tmp_path / "own.crt", "ssl_keyfile": tmp_path / "own.key"}
    refused = pytest.raises(AWAY, match="certificate")
    with worker_server(staged, **files) as server:
        with closing(RemoteStore(server.url, server.token)) as store, refused:
            store.work_left()
        assert server.requests == []
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "own.crt"))
        with closing(RemoteStore(server.url, server.token)) as store:
            assert len(store.work_left()) == 1
        other = server.url.replace("127.0.0.1", "localhost")
        with closing(RemoteStore(other, server.token)) as store, refused:
            store.work_left()


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


def sha256(data):
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def file(tmp_path):
    """The file that workers run from."""
    return tmp_path / "worker.pyz"


@pytest.fixture
def start_pyz(file, server):
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


@pytest.mark.slow
def test_an_old_worker_becomes_the_servers_before_it_registers(start_pyz, server, play, file):
    old, new = repacked("old"), repacked("new")
    server.offer(new)
    play()
    running = start_pyz(old, "--max-batches", "1")
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


@pytest.mark.slow
def test_what_it_plays_is_reported_before_it_changes(start_pyz, server, play, tmp_path, file):
    """fishtest 2131: an old worker left its tasks to run out."""
    gate = tmp_path / "gate"
    server.offer(old := quick("old"))
    play(BATCHES, gate=gate)
    then = "tr '\\0' ' ' < /proc/$PPID/cmdline >> over"
    running = start_pyz(old, "--idle-timeout", "2", "--then", then)
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
    over = (tmp_path / "over").read_text()
    assert over == " ".join([*running.args, ""]), "once, and the other is started as this one was"


@pytest.mark.slow
def test_a_server_that_becomes_strict_interrupts_the_games_and_updates(
    start_pyz, server, play, tmp_path, file, monkeypatch
):
    """fishtest 1166: the server refused what old workers sent, and so never told them to update."""
    old = repacked("old", spsa_protocol={f"PROTOCOL = {PROTOCOL}": f"PROTOCOL = {PROTOCOL - 1}"})
    server.offer(old, protocol=PROTOCOL - 1)
    play(1, gate=tmp_path / "never")
    with monkeypatch.context() as patch:
        patch.setattr("spsa.server.workers.PROTOCOL", PROTOCOL - 1)
        running = start_pyz(old, "--idle-timeout", "2", "--lease", "10")
        running.until(lambda: "claimed, 1 pair" in running.log)
        server.offer(new := repacked("new"))
    running.until(lambda: "1 batch cannot be reported any more" in running.log)
    assert running.ended() == NOTHING_TO_DO
    assert file.read_bytes() == new
    assert "first it 1 batch 0: handed back" in running.log


@pytest.mark.slow
@pytest.mark.parametrize("protocol", [PROTOCOL, PROTOCOL + 1])
def test_a_file_that_is_not_what_the_server_announces_is_tried_once(
    start_pyz, server, play, protocol, file
):
    """fishtest 544: workers fetched for ever an update that did not change their version."""
    server.offer(b"damaged on its way", protocol=protocol)
    server.version["sha256"] = "a" * 64
    old = quick("old")
    play()
    running = start_pyz(old, "--idle-timeout", "2")
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
def test_a_new_version_that_fails_is_not_used_and_not_tried_again(
    start_pyz, server, play, kind, file
):
    changes, said = BROKEN[kind]
    patience = {"TRIAL_SECONDS = 60.0": "TRIAL_SECONDS = 3.0"}
    old = quick("old", worker_update=patience if kind == "never" else {})
    server.offer(repacked("broken", __main__=changes))
    play(2)
    running = start_pyz(old, "--idle-timeout", "60")
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


def test_a_file_that_has_failed_cannot_replace_a_worker_that_the_server_refuses(
    file, monkeypatch, caplog
):
    file.write_bytes(b"old")
    monkeypatch.setattr("worker.update._running_zipapp", lambda: file)
    offered = [ServerVersion(version="1", protocol=PROTOCOL + n, sha256="f" * 64) for n in (0, 1)]
    store = Mock(
        server_version=Mock(side_effect=offered), worker_file=Mock(side_effect=[AWAY("x"), b""])
    )
    updates = Updates(store)
    updates.check()
    with pytest.raises(AWAY):
        updates.install()
    assert updates.is_wanted, "a later attempt may succeed"
    updates.install()
    assert "its worker.pyz hashes to e3b0c442" in caplog.text
    assert not updates.is_wanted
    with pytest.raises(errors.TuningError, match="the update to version 1"):
        updates.check()


@pytest.mark.slow
def test_a_direct_worker_waits_for_its_tables_and_keeps_its_secret(sqlite_url, tmp_path, sql):
    words = ("--spsa", "-c", 1)
    variables = {"DATABASE_URL": sqlite_url, "XDG_CACHE_HOME": str(tmp_path)}
    database = tmp_path / "spsa.db"
    database.rename(tmp_path / "later")
    running = [Running(worker(*words, "--idle-timeout", 0.1), **variables) for _ in range(2)]
    for one in running:
        one.until(lambda one=one: "next attempt in" in one.log)
    assert compete(*words, "--once", **variables).returncode == errors.TablesMissing.exit_code
    running[0].send_signal(signal.SIGINT)
    assert running[0].ended() == 130
    (tmp_path / "later").rename(database)
    assert running[1].ended() == NOTHING_TO_DO
    assert running[1].log.count("next attempt in") == 1, "it looks again, and says so once"
    (secret,) = tmp_path.rglob("machine-secret")
    assert sql("SELECT secret_sha256 FROM spsa_machine") == [(sha256(secret.read_bytes()),)]


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
    assert call([sys.executable, "-c", code], Path("/")).stdout.strip() == packed_sha256()
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
    done = call([*ALONE, "-c", code], Path("/"))
    assert done.returncode == 0, done.stderr
    loaded = json.loads(done.stdout)
    assert not [name for name in loaded if name.startswith(NEVER)]
    foreign = {name.partition(".")[0] for name in loaded} - set(sys.stdlib_module_names)
    assert foreign - {"__main__"} == {"chess", "click", "rich", "spsa", "urllib3", "worker"}


@pytest.mark.parametrize("python", PYTHONS)
def test_an_older_python_gets_a_sentence_and_a_newer_one_runs_it(pyz, python):
    code = "import sys; print(sys.version_info[:2] >= (3, 11))"
    found = subprocess.run([python, "-c", code], capture_output=True, text=True)
    if found.returncode != 0:
        pytest.skip(f"{python} does not run")
    done = run(pyz, "--version", python=[python])
    if found.stdout.strip() == "True":
        assert (done.returncode, done.stderr) == (0, "")
    else:
        assert done.returncode == 2
        assert done.stderr.startswith("worker.pyz needs Python 3.11 or newer, and this is ")


@pytest.mark.slow
@pytest.mark.parametrize("lacking", ["worker/runner/pool.py", "chess/__init__.py"])
def test_one_that_could_not_play_does_not_say_its_version(pyz, tmp_path, lacking):
    """A worker tries its new version so before it replaces itself."""
    broken = tmp_path / "worker.pyz"
    broken.write_bytes(repacked("broken", lacking))
    assert run(pyz, "--version").stdout == f"compete, version {__version__}\n"
    assert run(broken, "--version").returncode != 0


def test_what_needs_a_database_says_so(pyz):
    for words in (["--spsa"], ["--replay", "1.1"], ["--spsa", "--database-url", "sqlite:///x.db"]):
        done = run(pyz, *words)
        assert done.returncode == 2
        assert "this file plays for a server: give --server URL" in done.stderr
