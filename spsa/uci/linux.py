"""What Linux gives an engine; `spsa.uci.plain` has the same names for other systems.

Every engine is started by `bwrap` or `unshare` in namespaces of its own: it reaches no network,
sees and signals only itself and what it has started, and all of that dies with it.

The orphan reaper is a small process that does what no namespace does. It kills what is left of a
worker's engines when the worker has ended, however that happened: where neither tool works these
are the processes that left the engines' groups, else an engine that the tool was just starting. And
it watches the engines' working folders. Every process that an engine starts inherits its
environment with the engine's id, which begins with the worker's. The reaper searches for ids,
because a process that adopts orphans could not tell them from its other children.
"""

import ctypes
import errno
import fcntl
import gc
import hashlib
import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from shutil import rmtree, which
from typing import Protocol

ENGINE_ID = "SPSA_ENGINE"
"""The variable of an engine's environment that holds its id."""

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_NO_NEW_PRIVS = 38
_KILL_SECONDS = 5.0  # how long killed processes, and what they still started, may take to end
_KILL_PAUSE = 0.005
_TRIAL_SECONDS = 30.0
_FOLDER_SECONDS = 1.0  # between two checks of the working folders
_AUTOGROUPS = Path("/proc/sys/kernel/sched_autogroup_enabled")
_GOES_ON = b"!"
"""What a worker that goes on writes to its reaper."""
_ID_BYTES = 8
_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
# The kernel ignores signals that the first process of a PID namespace sends to itself, as in
# abort(). So that is a shell.
_SHELL = ("sh", "-c", '"$@"; exit', "sh")

_libc = ctypes.CDLL(None, use_errno=True)


class Folders(Protocol):
    """The working folders that the orphan reaper watches."""

    @property
    def root(self) -> Path: ...

    def overfull(self) -> set[str]: ...


@dataclass(frozen=True, slots=True)
class Isolation:
    """The words before an engine's command that give it namespaces of its own, and their kinds.

    The kinds are "net", which has no address of this machine, and "pid". In a user namespace, which
    comes with them, an engine has its user's files, but not its user's rights over other processes
    such as the worker.
    """

    wrapper: tuple[str, ...]
    kinds: tuple[str, ...]

    def command(self, words: Sequence[str]) -> list[str]:
        """What starts this program; OSError where it is none, or is open for writing."""
        # The wrapper would say so on stderr alone.
        if not os.access(words[0], os.X_OK):
            raise _os_error(errno.EACCES if Path(words[0]).exists() else errno.ENOENT)
        if _is_open_for_writing(words[0]):
            raise _os_error(errno.ETXTBSY)
        return [*self.wrapper, *words]


@cache
def isolation() -> Isolation | None:
    """The most that the tools and the system give here, tried once; None where that is nothing."""
    found = (
        Isolation(wrapper, kinds)
        for kinds in (("pid", "net"), ("pid",), ("net",))
        for wrapper in _wrappers(kinds)
        if _works(wrapper)
    )
    return next(found, None)


def missing(isolation: Isolation | None) -> Iterator[str]:
    """What the sandbox lacks with this isolation, and what that means."""
    kinds = isolation.kinds if isolation else ()
    tools = "namespaces that bwrap or unshare can make"
    if not (which("bwrap") or which("unshare")):
        tools = "namespaces, as neither bwrap nor unshare is installed"
    if "net" not in kinds:
        yield f"no network {tools}: engines can use the network"
    if "pid" not in kinds:
        yield f"no PID {tools}: engines can signal other processes of their user"


def _wrappers(kinds: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The ways to get these namespaces, the best first."""
    own_pids = "pid" in kinds
    yield (
        *("bwrap", "--dev-bind", "/", "/", *(("--proc", "/proc") if own_pids else ())),
        *(f"--unshare-{kind}" for kind in kinds),
        *("--unshare-user-try", "--die-with-parent", "--cap-drop", "ALL", "--"),
    )
    for user in (("--user", "--map-current-user"), ()):  # root may do without the first
        yield (
            *("unshare", *user, *(f"--{kind}" for kind in kinds)),
            *(("--fork", "--kill-child", "--mount-proc", "--", *_SHELL) if own_pids else ("--",)),
        )


def _works(wrapper: tuple[str, ...]) -> bool:
    try:
        done = subprocess.run(
            [*wrapper, "true"],
            env={"PATH": os.environ.get("PATH", os.defpath)},  # without passwords
            preexec_fn=partial(bind_engine, os.getpid(), isolated=True),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TRIAL_SECONDS,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


def _is_open_for_writing(path: str) -> bool:
    """Whether a process has this file open for writing, where its owner or root asks."""
    with suppress(OSError), Path(path).open("rb") as file:
        # A process that opens it just now has this signal sent, which does nothing.
        fcntl.fcntl(file, fcntl.F_SETSIG, signal.SIGURG)
        try:
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        except BlockingIOError:
            return True
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False


def hide_memory() -> None:
    """Hide this process's memory and first environment from other processes of its user.

    Otherwise an engine without a user namespace could read the database's password in
    /proc/<worker>/environ, which still has a variable that the process has deleted. From now on
    only root can trace this process, and it leaves no core file.
    """
    _libc.prctl(_PR_SET_DUMPABLE, 0)


def bind_engine(worker: int, *, isolated: bool) -> None:
    """Called in a child: the kernel kills it when the thread that started it ends.

    No program that an isolated one starts gains rights, as sudo would. It is scheduled as its
    worker is, and not like the thread that starts it.
    """
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != worker:  # it died before the call
        os._exit(127)
    if isolated and _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise _os_error(ctypes.get_errno())
    if os.sched_getscheduler(worker) == os.SCHED_OTHER:
        _schedule(os.SCHED_OTHER)


def logical_cores() -> set[int]:
    """The logical cores that this process may use."""
    return os.sched_getaffinity(0)


def has_autogroups() -> bool:
    """Whether every session is scheduled as a group.

    Then an engine gets a process group of its own and no session: every move would switch between
    the groups of engine and worker, and on busy cores a game lasts half as long again.
    """
    return _AUTOGROUPS.exists() and _AUTOGROUPS.read_text().strip() == "1"


def let_engines_run_on() -> None:
    """Let this thread wait for a core instead of taking one from an engine that thinks.

    Otherwise each line that an engine writes about its search interrupts it on a busy machine. A
    worker that its owner has started with a scheduling policy of its own keeps that.
    """
    if os.sched_getscheduler(os.getpid()) == os.SCHED_OTHER:
        _schedule(os.SCHED_BATCH)


def _schedule(policy: int) -> None:
    """Give this thread or child another policy, where the container allows that."""
    with suppress(OSError):
        os.sched_setscheduler(0, policy, os.sched_param(0))


def _os_error(number: int) -> OSError:
    return OSError(number, os.strerror(number))


def this_process() -> str:
    """What no other process ever has: host, PID, start, and a hash of its system and namespaces.

    Empty where /proc does not say.
    """
    pid = os.getpid()
    with suppress(OSError):
        return f"{os.uname().nodename}-{pid}-{_stat(pid)[1]}-{_system_hash()}"
    return ""


def has_ended(process: str) -> bool:
    """Whether the process of which this text begins with `this_process` has ended.

    False where that cannot be known: it is of another machine, boot or container, or it is hidden.
    """
    found = re.match(r".+-(\d{1,9})-(\d+)-([0-9a-f]{16})\b", process)
    if found is None or found[3] != this_process().rpartition("-")[2]:
        return False
    try:
        with suppress(PermissionError):  # it is another user's
            os.kill(int(found[1]), 0)
        state, started = _stat(int(found[1]))
    except OSError as error:
        return isinstance(error, ProcessLookupError)
    return started != found[2] or state in "ZX"


def _stat(pid: int) -> tuple[str, str]:
    """The state of a process, and when it has started, in ticks since the boot."""
    *_, facts = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")
    state, *others = facts.split()
    return state, others[18]


def _system_hash() -> str:
    """A hash of the host's name, its boot, and the namespaces in which this process has its PID."""
    if Path("/proc/self").readlink().name != str(os.getpid()):
        raise _os_error(errno.ENOENT)  # /proc is that of another namespace
    boot = Path("/proc/sys/kernel/random/boot_id").read_text()
    kinds = [str(Path(f"/proc/self/ns/{kind}").readlink()) for kind in ("pid", "time")]
    return hashlib.sha256(" ".join((os.uname().nodename, boot, *kinds)).encode()).hexdigest()[:16]


@contextmanager
def orphan_reaper(folders: Folders | None = None) -> Iterator[str]:
    """An orphan reaper for this process; yields the worker's id, with which engines' ids begin.

    It also kills engines whose working folders are too full, and removes all folders when the
    worker has ended. Enter it before the process has threads. Leaving it waits until all processes
    of all engines have ended.
    """
    worker, pid = os.urandom(_ID_BYTES).hex(), os.getpid()
    source, pipe = os.pipe()
    unblocked = signal.pthread_sigmask(signal.SIG_BLOCK, _IGNORED)  # the reaper never gets them
    child = os.fork()
    if child == 0:
        _reap(source, worker, pid, folders)
    signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
    os.close(source)
    try:
        yield worker
    finally:
        with suppress(BrokenPipeError):  # the reaper was killed
            os.write(pipe, _GOES_ON)
        os.close(pipe)
        os.waitpid(child, 0)


def _reap(source: int, worker: str, pid: int, folders: Folders | None) -> None:
    """The code of the reaper's process, which reads `source`."""
    with suppress(BaseException):
        _detach(source)
        while not select.select([source], [], [], _FOLDER_SECONDS if folders else None)[0]:
            if folders and (ids := folders.overfull()):
                kill_all_of(*ids)
        if not os.read(source, len(_GOES_ON)):
            # A child of it may just be starting an engine, without its id. The files of a killed
            # process are closed before it has ended, and its children are killed then.
            with suppress(OSError):  # it has ended, or Linux is older than 5.3
                select.select([os.pidfd_open(pid)], [], [], _KILL_SECONDS)
        kill_all_of(f"{worker}.")
        if folders is not None:
            rmtree(folders.root, ignore_errors=True)
    os._exit(0)


def _detach(source: int) -> None:
    """Leave the worker's terminal, close its files, and hide its secrets."""
    os.setsid()
    hide_memory()
    gc.disable()
    os.closerange(0, source)
    os.closerange(source + 1, os.sysconf("SC_OPEN_MAX"))


def kill_all_of(*ids: str) -> None:
    """Kill the engines whose ids begin so and all that they have started, as far as that kept them.

    It goes on until there are none, because they may start others. All engines' ids are of one
    length, so a whole one is no other's beginning.
    """
    wanted = [f"\0{ENGINE_ID}={engine_id}".encode() for engine_id in ids]
    deadline = time.monotonic() + _KILL_SECONDS
    while found := [pid for pid in Path("/proc").glob("[0-9]*") if _has_one(pid, wanted)]:
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(int(pid.name), signal.SIGKILL)
        if time.monotonic() > deadline:
            return
        time.sleep(_KILL_PAUSE)


def _has_one(pid: Path, variables: list[bytes]) -> bool:
    try:
        environment = b"\0" + (pid / "environ").read_bytes()
    except OSError:  # a dead process, or one of another user
        return False
    return any(variable in environment for variable in variables)
