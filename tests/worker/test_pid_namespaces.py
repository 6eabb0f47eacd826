"""An engine sees and signals only itself and what it has started, and all of that ends with it.

Each test runs with `bwrap` and with `unshare`, as far as they are there and may make namespaces.
No engine signals anything but a process that the test has started for it.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from console import ROOT, compete, environment
from engines.faulty import PATIENT, engine, running_with, spec, started, wait_until
from test_isolation import AS_NOBODY, NOBODY, another_user, program

from spsa.errors import EngineFault
from spsa.uci.engine import Limit
from spsa.uci.process import StopSignal
from spsa.uci.spawning import EngineLimits, working_folders
from spsa.uci.system import isolation, orphan_reaper

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's")

SPY = """
import json, os, subprocess, sys, time
sleep = [sys.executable, "-S", "-c", "import time; time.sleep(60)", {mark!r}]
subprocess.Popen(sleep, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)
try:
    os.kill({victim}, 15)
    answer = "signalled"
except OSError as error:
    answer = type(error).__name__
seen = [int(name) for name in os.listdir("/proc") if name.isdigit()]
print(json.dumps([answer, seen]), flush=True)
time.sleep(60)
"""

WORKER = """
import sys, time
from spsa.uci.process import EngineProcess, StopSignal
from spsa.uci.spawning import EngineLimits
from spsa.uci.system import hide_memory, isolation
with isolation() as found:
    hide_memory()
    if found is None or not found.wrapper:
        sys.exit("no wrapper")
    print(found.wrapper[0], flush=True)
    engine = EngineProcess({path!r}, StopSignal(), EngineLimits(isolation=found))
    output = bytearray()
    while not output.endswith(b"\\n"):
        engine.read(output, time.monotonic() + 60)
    print(output.decode(), end="", flush=True)
    sys.stdin.readline()
    engine.close(b"", 0)
    time.sleep(60)
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that any user can write, as pytest's own are not."""
    made = Path(tempfile.mkdtemp(prefix="spsa-pids-"))
    made.chmod(0o1777)
    yield made
    shutil.rmtree(made)


def path_with(folder: Path, tool: str) -> str:
    """A PATH with this tool, and no other that makes namespaces."""
    for name in (tool, "sh", "true"):
        if found := shutil.which(name):
            (folder / name).symlink_to(found)
    return str(folder)


@pytest.fixture(params=["bwrap", "unshare"])
def tool(request: pytest.FixtureRequest, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("PATH", path_with(folder, request.param))
    return request.param


@pytest.fixture(params=["oneself", pytest.param("nobody", marks=another_user)])
def user(request: pytest.FixtureRequest) -> dict[str, object]:
    """The options of Popen for this user."""
    if request.param == "oneself":
        return {}
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []}


@pytest.fixture
def victim(user: dict[str, object]) -> Iterator["subprocess.Popen[bytes]"]:
    """A process of the engine's user."""
    with subprocess.Popen(["/bin/sleep", "600"], **user) as process:
        yield process
        process.kill()


@pytest.mark.parametrize("end", ["stopped", "killed"])
def test_an_engine_sees_and_signals_nobody_and_leaves_nothing(
    end: str,
    tool: str,
    user: dict[str, object],
    victim: "subprocess.Popen[bytes]",
    folder: Path,
) -> None:
    mark = f"{folder}/grandchild"
    path = program(folder, SPY.format(victim=victim.pid, mark=mark))
    with subprocess.Popen(
        [AS_NOBODY if user else sys.executable, "-c", WORKER.format(path=path)],
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        **user,
    ) as worker:
        assert worker.stdin is not None and worker.stdout is not None
        try:
            if not (found := worker.stdout.readline().strip()):
                pytest.skip(f"{tool} makes no PID namespace here for this user")
            assert found == tool
            answer, seen = json.loads(worker.stdout.readline())
            wait_until(lambda: bool(running_with(mark)))
            if end == "stopped":
                worker.stdin.write("\n")
                worker.stdin.flush()
            else:
                worker.kill()
            wait_until(lambda: not running_with(mark) and not running_with(path), 20)
            assert (worker.poll() is None) == (end == "stopped")
        finally:
            worker.kill()
    assert answer == "ProcessLookupError"
    assert victim.pid not in seen and worker.pid not in seen
    assert len(seen) <= 3  # the tool's own process, the engine and its child
    assert victim.poll() is None


@pytest.fixture
def limits(tool: str) -> Iterator[EngineLimits]:
    with isolation() as found:
        if found is None or not found.wrapper:
            pytest.skip(f"{tool} makes no PID namespace here")
        assert found.wrapper[0] == tool
        yield EngineLimits(isolation=found)


@pytest.fixture
def stop_signal() -> Iterator[StopSignal]:
    made = StopSignal()
    yield made
    made.close()


@pytest.mark.parametrize(("fault", "reason"), [("crash", "SIGSEGV"), ("exit-3", "exit status 3")])
def test_the_end_of_an_engine_is_told(
    fault: str, reason: str, limits: EngineLimits, stop_signal: StopSignal, tmp_path: Path
) -> None:
    path = engine(tmp_path, "engine", moves="e2e4", fault=fault)
    running = started(spec(path), stop_signal, PATIENT, limits)
    with pytest.raises(EngineFault, match=reason):
        running.search(b"position startpos", Limit(b"go movetime 1\n", 20.0))
    running.close(at_once=True)


def test_an_engine_that_fills_its_folder_is_killed(
    limits: EngineLimits, stop_signal: StopSignal, tmp_path: Path
) -> None:
    path = engine(tmp_path, "engine", moves="e2e4", fault="fill")
    with working_folders(most_bytes=2**20) as folders, orphan_reaper(folders) as reaper:
        watched = replace(limits, file_size=2**20, folders=folders, orphan_reaper=reaper)
        running = started(spec(path), stop_signal, PATIENT, watched)
        with pytest.raises(EngineFault, match="filled its working folder"):
            running.search(b"position startpos", Limit(b"go movetime 1\n", 20.0))
        running.close(at_once=True)


def test_an_engine_that_aborts_is_told(
    limits: EngineLimits, stop_signal: StopSignal, folder: Path
) -> None:
    path = Path(program(folder, "import os; os.abort()"))
    with pytest.raises(EngineFault, match="SIGABRT"):
        started(spec(path), stop_signal, PATIENT, limits)


def test_no_program_cannot_start(
    limits: EngineLimits, stop_signal: StopSignal, tmp_path: Path
) -> None:
    (tmp_path / "text").write_text("no program")
    for name, reason in (("none", "No such file"), ("text", "Permission denied")):
        with pytest.raises(EngineFault, match=reason) as caught:
            started(spec(tmp_path / name), stop_signal, PATIENT, limits)
        assert caught.value.reason == "cannot start"


def test_a_program_that_is_still_written_is_tried_again(
    limits: EngineLimits, stop_signal: StopSignal, tmp_path: Path
) -> None:
    path = engine(tmp_path, "engine", moves="e2e4")
    with path.open("ab"), pytest.raises(EngineFault, match="still open for writing"):
        started(spec(path), stop_signal, PATIENT, limits)
    started(spec(path), stop_signal, PATIENT, limits).close()


def test_without_the_tools_compete_says_so_and_plays(tmp_path: Path) -> None:
    one, other = engine(tmp_path, "one", lines=3), engine(tmp_path, "other")
    words = (one, other, "--games", 2, "--nodes", 100, "-c", 1, "--max-moves", 10)
    done = compete(*words, PATH="/none")
    assert done.returncode == 0
    assert "warning: Linux has no PID namespaces that bwrap or unshare can make: " in done.stderr
    done = compete(*words, "--no-sandbox", PATH="/none")
    assert (done.returncode, "warning: " in done.stderr) == (0, False)
