"""Engines without a network, and a worker that keeps its secrets from them."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from builders import NODES, published, stage
from console import ROOT, call, environment, worker, write_project
from engines.faulty import LOSER, WINNER, engine, running_with, start_book, wait_until

from spsa.core.game_settings import Book, GameSettings
from spsa.db import Store
from spsa.errors import EngineFault
from spsa.uci.spawning import EngineLimits, spawn
from spsa.uci.system import Isolation, isolation

NOBODY = 65534


def _unavailable() -> str:
    with isolation() as found:
        has_network = found is None or not found.namespaces
    return "this system lets nobody have namespaces" if has_network else ""


def _sandbox() -> str:
    with isolation() as found:
        return str(EngineLimits(isolation=found))


def _interpreter() -> str | None:
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
SANDBOX = _sandbox()
pytestmark = pytest.mark.skipif(bool(_unavailable()), reason=_unavailable() or "-")


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that any user can write, as pytest's own are not."""
    made = Path(tempfile.mkdtemp(prefix="spsa-isolation-"))
    made.chmod(0o1777)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def port() -> Iterator[int]:
    """Somebody who listens on this machine's loopback."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        yield listening.getsockname()[1]


def program(folder: Path, text: str) -> str:
    path = folder / "program"
    path.write_text(f"#!{AS_NOBODY or sys.executable}\n{textwrap.dedent(text)}")
    path.chmod(0o755)
    return str(path)


def said(path: str, limits: EngineLimits) -> str:
    process = spawn(path, limits)
    text, _ = process.communicate(timeout=240)
    return text.decode().strip()


CALL = """
import socket
try:
    socket.create_connection(("127.0.0.1", {port}), 2)
    print("reached")
except OSError as error:
    print("refused", error.errno)
"""


def test_an_engine_reaches_nobody(folder: Path, port: int) -> None:
    path = program(folder, CALL.format(port=port))
    with isolation() as found:
        assert said(path, EngineLimits(isolation=found)).startswith("refused")
    assert said(path, EngineLimits()) == "reached"


def test_an_engine_is_who_it_was_and_has_its_files(folder: Path) -> None:
    (folder / "net.nnue").write_text("weights")
    (folder / "net.nnue").chmod(0o600)
    look = f"import os; print(os.getuid(), os.getgid(), open({str(folder / 'net.nnue')!r}).read())"
    with isolation() as found:
        confined = said(program(folder, look), EngineLimits(isolation=found))
    assert confined == f"{os.getuid()} {os.getgid()} weights"


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_nothing_stays_open(folder: Path) -> None:
    listing = "import os; print(sorted(os.listdir('/proc/self/fd')))"
    before = open_descriptors()
    with isolation() as found:
        path = program(folder, listing)
        assert said(path, EngineLimits(isolation=found)) == said(path, EngineLimits())
    assert open_descriptors() == before


@pytest.mark.skipif(shutil.which("unshare") is None, reason="no unshare")
def test_where_the_system_gives_none_engines_are_played_all_the_same() -> None:
    """Seen from inside a user namespace that may have no more of them, as containers are."""
    look = (
        "from spsa.uci.system import isolation\n"
        "from spsa.uci.spawning import EngineLimits\n"
        "with isolation() as found: print(EngineLimits(isolation=found))"
    )
    limits = (f"/proc/sys/user/max_{kind}_namespaces" for kind in ("user", "net", "pid"))
    forbid = " && ".join(f"echo 0 > {limit}" for limit in limits)
    inside = ["sh", "-c", f'{forbid} && exec "$0" -c "$1"', sys.executable, look]
    done = subprocess.run(
        ["unshare", "-r", *inside], cwd=ROOT, env=environment(), capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("rlimits\n", "")


def test_without_the_wish_there_is_none() -> None:
    with isolation(wanted=False) as found:
        assert found is None


def test_what_cannot_be_isolated_is_not_started(folder: Path) -> None:
    path = program(folder, f"open({str(folder / 'ran')!r}, 'w')")
    with Path("/dev/null").open() as no_namespace, pytest.raises(EngineFault, match="cannot start"):
        spawn(path, EngineLimits(isolation=Isolation((no_namespace.fileno(),))))
    assert not (folder / "ran").exists()


def test_limits_are_written_as_in_the_row_of_a_worker() -> None:
    with isolation() as found:
        assert found is not None
        bare = Isolation(found.namespaces)
        assert str(EngineLimits(isolation=bare)) == "no network, rlimits"
        wrapped = Isolation(found.namespaces, ("unshare",))
        assert str(EngineLimits(isolation=wrapped)) == "no network, own PIDs, rlimits"
    assert str(EngineLimits(isolation=Isolation((), ("unshare",)))) == "own PIDs, rlimits"
    assert str(EngineLimits()) == "rlimits"


WORKER = """
import os, sys, time
from spsa.uci.system import isolation, hide_memory
from spsa.uci.spawning import EngineLimits, spawn
from spsa.uci.system import orphan_reaper
with isolation(wanted={wanted}) as found, orphan_reaper() as reaper:
    hide_memory()
    engine = spawn({path!r}, EngineLimits(isolation=found), reaper.new_id())
    print(str(EngineLimits(isolation=found)), flush=True)
    for line in engine.stdout:
        print(line.decode(), end="", flush=True)
    time.sleep(60)
"""

users = pytest.mark.parametrize("user", ["oneself", pytest.param("nobody", marks=another_user)])
kinds = pytest.mark.parametrize("wanted", [True, False])


def a_worker(
    folder: Path, text: str, user: str, wanted: bool, **variables: str
) -> "subprocess.Popen[str]":
    """A process with a secret in its environment that starts one engine."""
    as_whom = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if user == "nobody" else {}
    start = WORKER.format(path=program(folder, text), wanted=wanted)
    return subprocess.Popen(
        [AS_NOBODY if as_whom else sys.executable, "-c", start],
        cwd=ROOT,
        env=environment(DATABASE_URL="secret", **variables),
        stdout=subprocess.PIPE,
        text=True,
        **as_whom,
    )


@users
@kinds
def test_an_engine_dies_with_a_worker_that_is_killed(folder: Path, user: str, wanted: bool) -> None:
    process = a_worker(folder, "import time; time.sleep(60)", user, wanted)
    assert process.stdout is not None
    assert process.stdout.readline().strip() == (SANDBOX if wanted else "rlimits")
    wait_until(lambda: bool(running_with(str(folder / "program"))))
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    wait_until(lambda: not running_with(str(folder / "program")))


DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        sleep = "import os, time; print(1, flush=True); os.close(1); time.sleep(60)"
        os.execv(sys.executable, [sys.executable, "-c", sleep, sys.argv[0] + " stray"])
    os._exit(0)
os.close(1)
time.sleep(60)
"""


@users
@kinds
def test_so_does_a_daemon_that_it_left(folder: Path, user: str, wanted: bool) -> None:
    process = a_worker(folder, DAEMON, user, wanted)
    assert process.stdout is not None
    assert [process.stdout.readline() for _ in range(2)][1] == "1\n"
    program, stray = str(folder / "program"), f"{folder / 'program'} stray"
    ((left,), engines) = running_with(stray), running_with(program)
    assert engines and os.getsid(left) not in map(os.getsid, engines)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    wait_until(lambda: not running_with(program) and not running_with(stray))


SPY = """
import os
def parent(pid):
    try:
        return int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
    except OSError:  # it has ended since it was listed
        return 0
worker = os.getppid()
others = [int(pid) for pid in os.listdir("/proc") if pid.isdigit()]
reaper, = [pid for pid in others if pid != os.getpid() and parent(pid) == worker]
for name in ("environ", "mem", "maps"):
    for pid in (worker, reaper):
        try:
            open(f"/proc/{pid}/{name}", "rb").read(1)
            print("read", name)
        except OSError as error:
            print("refused", name)
"""


@kinds
@another_user
def test_an_engine_cannot_read_its_workers_environment(folder: Path, wanted: bool) -> None:
    """Where it sees its worker at all, as without the tools for a PID namespace."""
    process = a_worker(folder, SPY, "nobody", wanted, PATH="/none")
    assert process.stdout is not None
    lines = [process.stdout.readline().strip() for _ in range(7)]
    process.kill()
    process.wait()
    process.stdout.close()
    refusals = [f"refused {name}" for name in ("environ", "mem", "maps") for _ in range(2)]
    assert lines[1:] == refusals


@pytest.mark.slow
@pytest.mark.parametrize(("flags", "sandbox"), [((), SANDBOX), (("--no-sandbox",), "rlimits")])
def test_the_row_of_a_worker_says_how_its_engines_are_confined(
    flags: tuple[str, ...], sandbox: str, database_url: str, tmp_path: Path
) -> None:
    write_project(tmp_path)
    sides = {"plus": WINNER, "minus": LOSER}
    with Store(database_url) as store:
        game_settings = GameSettings(time_control=NODES, book=Book(name=str(start_book(tmp_path))))
        engines = {
            name: published(engine(tmp_path, name, moves=moves)) for name, moves in sides.items()
        }
        stage(store).open(**engines, plus_options={}, minus_options={}, game_settings=game_settings)
    usual = ("--spsa", "-c", "1", "--max-batches", "1", "--name", "box", "--engines-cache", "c")
    played = call(worker(*usual, *flags), tmp_path, DATABASE_URL=database_url)
    assert played.returncode == 0, played.stderr
    with Store(database_url) as store:
        (row,) = [row for row in store.workers() if row.name == "box"]
        assert (row.sandbox, row.games) == (sandbox, 4)
