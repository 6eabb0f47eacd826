"""What an engine reaches, sees and leaves behind: in the sandbox of each tool, and without one.

No engine signals anything but a process that the test has started for it.
"""

import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest
from console import ROOT, Running, call, environment, worker
from engines import faulty

from spsa.errors import EngineFault
from spsa.uci import linux
from spsa.uci.engine import Limit
from spsa.uci.linux import ENGINE_ID, Isolation, isolation, orphan_reaper
from spsa.uci.spawning import EngineLimits, spawn, working_folders

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's")

PROGRAMS = Path(__file__).with_name("programs.txt").read_text()
SPY, WORKER, STARTER, DYING = re.split(r"^== .*\n", PROGRAMS, flags=re.MULTILINE)[1:]
NOBODY = 65534
TOOLS = ("bwrap", "unshare")
SEARCH = b"position startpos", Limit(b"go movetime 1\n", 20.0)


def _interpreter():
    """One that a user without any rights may run: this one's is often in somebody's home."""
    if os.getuid() != 0:
        return None
    for path in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        command = [path, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
        try:
            done = subprocess.run(command, user=NOBODY, group=NOBODY, extra_groups=[], env={})
        except OSError:
            continue
        if done.returncode == 0:
            return path
    return None


AS_NOBODY = _interpreter()
another_user = pytest.mark.skipif(AS_NOBODY is None, reason="takes root to be another user")


@pytest.fixture
def folder():
    """One that any user can write, as pytest's own are not."""
    made = Path(tempfile.mkdtemp(prefix="spsa-sandbox-"))
    made.chmod(0o1777)
    yield made
    shutil.rmtree(made)


def path_with(folder, *names):
    """A PATH with these tools alone."""
    tools = folder / "tools"
    tools.mkdir()
    for name in (*names, "sh", "true"):
        if found := shutil.which(name):
            (tools / name).symlink_to(found)
    return str(tools)


@pytest.fixture(params=TOOLS)
def tool(request, folder, monkeypatch):
    """The only one in PATH that makes namespaces."""
    monkeypatch.setenv("PATH", path_with(folder, request.param))
    return request.param


@pytest.fixture
def limits(tool):
    isolation.cache_clear()
    found = isolation()
    isolation.cache_clear()
    if found is None or found.kinds != ("pid", "net"):
        pytest.skip(f"{tool} makes no such namespaces here")
    assert found.wrapper[0] == tool
    assert str(EngineLimits(isolation=found)) == "no network, own PIDs, rlimits"
    return EngineLimits(isolation=found)


def program(folder, text):
    path = folder / "program"
    path.write_text(f"#!{AS_NOBODY or sys.executable}\n{textwrap.dedent(text)}")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("kind", ["net", "pid"])
def test_each_kind_is_had_without_the_other(kind, tmp_path):
    """A tool that fails for one of them is asked for the other alone."""
    other = {"net": "pid", "pid": "net"}[kind]
    fake = tmp_path / "unshare"
    fake.write_text(f'#!/bin/sh\ncase "$*" in *--{other}*) echo no; echo no >&2; exit 1;; esac\n')
    fake.chmod(0o755)
    look = "from spsa.uci.linux import *; found = isolation(); print(found.kinds, *missing(found))"
    done = call([sys.executable, "-c", look], ROOT, PATH=str(tmp_path))
    lacking = {"net": "PID", "pid": "network"}[kind]
    words = f"('{kind}',) no {lacking} namespaces that bwrap or unshare can make: engines can "
    assert done.stdout.startswith(words) and done.stderr == ""


def test_a_tool_is_tried_as_it_starts_engines_and_not_used_if_it_hangs(monkeypatch):
    monkeypatch.setenv("PGPASSWORD", "secret")
    look = "grep -q 'NoNewPrivs:.1' /proc/self/status && ! env | grep -q secret"
    assert linux._works(("sh", "-c", look))
    monkeypatch.setattr(linux, "_TRIAL_SECONDS", 0.2)
    assert not linux._works(("sh", "-c", "sleep 600"))


def test_what_cannot_be_isolated_is_not_started(folder):
    path = program(folder, f"open({str(folder / 'ran')!r}, 'w')")
    for wrapper in ("/bin/false", "/none"):
        try:
            spawn([path], EngineLimits(isolation=Isolation((wrapper,), ("net",)))).communicate()
        except EngineFault as fault:
            assert fault.reason == "cannot start" and wrapper == "/none"
    assert not (folder / "ran").exists()


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("crash", "SIGSEGV"), ("exit-3", "exit status 3"), ("fill", "filled its working folder")],
)
def test_the_end_of_an_engine_is_told(fault, reason, limits, tmp_path):
    path = faulty.engine(tmp_path, "engine", moves="e2e4", fault=fault)
    with working_folders(most_bytes=2**20) as folders, orphan_reaper(folders) as worker_id:
        own = {"file_size": 2**20, "folders": folders, "worker_id": worker_id}
        watched = replace(limits, **own)
        running = faulty.started(faulty.spec(path), watched)
        with pytest.raises(EngineFault, match=reason):
            running.search(*SEARCH)
        running.close(at_once=True)


def test_an_engine_that_does_not_start_is_told(limits, folder, tmp_path):
    (tmp_path / "text").write_text("no program")
    aborting = Path(program(folder, "import os; os.abort()"))
    written = faulty.engine(tmp_path, "engine", moves="e2e4")
    with written.open("ab"):
        for path, reason in (
            (tmp_path / "none", "cannot start: .*: No such file"),
            (tmp_path / "text", "cannot start: .*: Permission denied"),
            (written, "cannot start: .*: it is still open for writing"),
            (aborting, "crash: killed by SIGABRT"),
        ):
            with pytest.raises(EngineFault, match=reason):
                faulty.started(faulty.spec(path), limits)
    faulty.started(faulty.spec(written), limits).close()


@pytest.fixture(params=["oneself", pytest.param("nobody", marks=another_user)])
def user(request):
    """The options of Popen for this user."""
    if request.param == "oneself":
        return {}
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []}


@pytest.fixture
def a_worker(folder, user):
    """Starts a process of the user with a secret in its environment, and with one engine."""
    workers: list[subprocess.Popen[str]] = []

    def start(text, **variables):
        code = WORKER.format(path=program(folder, text))
        process = subprocess.Popen(
            [AS_NOBODY if user else sys.executable, "-c", code],
            cwd=ROOT,
            env=environment(DATABASE_URL="secret", **variables),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            **user,
        )
        workers.append(process)
        return process

    yield start
    for process in workers:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("end", ["stopped", "killed"])
@pytest.mark.parametrize("way", [*TOOLS, "none"])
def test_an_engine_leaves_nothing_and_in_the_sandbox_reaches_sees_and_signals_nobody(
    end, way, user, a_worker, folder
):
    """Without a sandbox, it cannot read the environment of its worker, if it is another user's."""
    mark, path = f"{folder}/grandchild", str(folder / "program")
    with (
        subprocess.Popen(["/bin/sleep", "600"], **user) as victim,
        ExitStack() as at_the_end,
        closing(socket.create_server(("127.0.0.1", 0))) as listening,
    ):
        at_the_end.callback(victim.kill)
        spy = SPY.format(victim=victim.pid, mark=mark, port=listening.getsockname()[1])
        process = a_worker(spy, PATH=path_with(folder, way))
        assert process.stdin is not None and process.stdout is not None
        given = process.stdout.readline().strip()
        if way != "none" and "own PIDs" not in given:
            pytest.skip(f"{way} makes no PID namespace here for this user")
        connects, signals, reads, seen = json.loads(process.stdout.readline())
        faulty.wait_until(lambda: bool(faulty.running_with(mark)))
        if end == "stopped":
            process.stdin.write("\n")
            process.stdin.flush()
            assert process.stdout.readline() == "closed\n"
        else:
            process.kill()
        for word in (mark, path):
            faulty.wait_until(lambda word=word: not faulty.running_with(word), 20)
        assert (process.poll() is None) == (end == "stopped")
        if way == "none":
            assert (connects, signals) == (None, None)
            assert not user or reads == ["PermissionError"] * 6  # of the worker and its reaper
        else:
            assert connects is not None and signals == "ProcessLookupError"
            assert victim.pid not in seen and process.pid not in seen
            assert len(seen) <= 3  # the tool's own process, the engine and its child
            assert victim.poll() is None


def test_the_reaper_looks_when_its_worker_has_ended_and_not_when_its_files_are_closed():
    mark = f"7{random.randrange(10**6):06}.5"
    process = Running([sys.executable, "-c", DYING.format(ENGINE_ID=ENGINE_ID), mark])
    process.until(lambda: "started" in process.out)
    faulty.wait_until(lambda: not faulty.running_with(mark))


@pytest.mark.slow
def test_a_worker_that_is_killed_while_it_starts_engines_leaves_none(tool):
    """The namespaces alone do not do that: of 120 such workers, bwrap left engines of 61 alive."""
    for _ in range(10):
        mark = f"7{random.randrange(10**6):06}.5"
        process = Running([sys.executable, "-c", STARTER, mark])
        process.until(lambda process=process: "\n" in process.out)
        if "own PIDs" not in process.out:
            pytest.skip(f"{tool} makes no PID namespace here")
        time.sleep(random.random() / 20)
        process.kill()
        faulty.wait_until(lambda mark=mark: not faulty.running_with(mark))


@pytest.fixture
def strays(tmp_path):
    """The daemons of engines of this test that run; killed in the end, whatever happened."""

    def left():
        return faulty.running_with(str(tmp_path / "strays"))

    yield left
    for pid in left():
        os.kill(pid, signal.SIGKILL)


def has_id(pid):
    """Whether it has the environment of an engine."""
    return f"{ENGINE_ID}=".encode() in Path(f"/proc/{pid}/environ").read_bytes()


def animal(folder, name="minus", moves=faulty.LOSER, **more):
    return faulty.engine(folder, name, moves=moves, stray=folder / "strays", **more)


def with_a_stray(folder, worker_id=""):
    limits = EngineLimits(worker_id=worker_id)
    return faulty.started(faulty.spec(animal(folder)), limits)


def test_a_daemon_ends_with_its_engine_and_no_other(tmp_path, strays, monkeypatch):
    first = with_a_stray(tmp_path)
    faulty.wait_until(lambda: len(strays()) == 1)
    (one,) = strays()
    monkeypatch.setattr(linux, "_AUTOGROUPS", Path("/dev/null"))
    second = with_a_stray(tmp_path)
    faulty.wait_until(lambda: len(strays()) == 2)
    (other,) = set(strays()) - {one}
    assert os.getsid(one) not in (os.getsid(0), os.getsid(first._process._process.pid))
    first.close()
    running = second._process._process.pid
    assert os.getsid(running) == running, "without autogroups"
    assert [faulty.alive(pid) for pid in (one, other, running)] == [False, True, True]
    second.close()
    assert not faulty.alive(other)


def test_other_processes_live_on(tmp_path, monkeypatch):
    """Other children of the same process, even those with an id of another worker."""
    monkeypatch.setattr(linux, "_KILL_SECONDS", 1e5)  # nothing waits for a worker that goes on
    sleep = [sys.executable, "-S", "-c", "import time; time.sleep(60)"]
    with orphan_reaper() as other:
        plain = subprocess.Popen(sleep)
        foreign = subprocess.Popen(sleep, env={ENGINE_ID: f"{other}.1"})
        with orphan_reaper() as worker_id:
            for reaper in faulty.children() - {plain.pid, foreign.pid}:
                os.kill(reaper, signal.SIGTERM)  # one of them has just begun
            own = subprocess.Popen(sleep, env={ENGINE_ID: f"{worker_id}.10"})
            faulty.wait_until(lambda: has_id(own.pid) and has_id(foreign.pid))
            with_a_stray(tmp_path, worker_id).close()
            assert own.poll() is None
        assert own.wait(240) == -signal.SIGKILL
        assert foreign.poll() is None
    assert foreign.wait(240) == -signal.SIGKILL
    assert plain.poll() is None
    plain.kill()
    plain.wait()


WAYS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "namespaces": ((), {}),
    "no tools": ((), {"PATH": "/none"}),
    "no sandbox": (("--no-sandbox",), {}),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_match_that_is_killed_leaves_nothing_and_has_said_what_is_missing(tmp_path, strays, way):
    """With PID namespaces not even a process that has dropped its environment."""
    bare = way == "namespaces" and EngineLimits(isolation=isolation()).own_pids
    switches = {"bare": True} if bare else {}
    pid = tmp_path / "pid"
    minus = animal(tmp_path, fault="hang", at_ply=1, pid=pid, **switches)
    words, variables = WAYS[way]
    words += ("--book", str(faulty.start_book(tmp_path)), "--nodes", "3000", "--games", "2")
    plus = faulty.engine(tmp_path, "plus", moves=faulty.WINNER)
    playing = Running(worker(plus, minus, *words), **variables)
    playing.until(lambda: pid.exists() and len(strays()) == 1)
    playing.kill()
    faulty.wait_until(lambda: not strays() and not faulty.running_with(f"--pid={pid}"))
    why = "as neither bwrap nor unshare is installed: " if way == "no tools" else "that bwrap or "
    warned = re.search(f"warning: Linux has no PID namespaces,? {why}", playing.log) is not None
    assert warned == (way == "no tools" or (way == "namespaces" and not bare))
