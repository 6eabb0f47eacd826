"""What only Linux has; `spsa.uci.system` alone imports it, and only there.

All engines enter a network namespace that has no network, made once, where the system lets an
ordinary user make one. Entering it takes microseconds, making it milliseconds.

Every engine is started by `bwrap` or `unshare` in a PID namespace of its own. It sees and signals
only itself and what it has started, and all of that dies with it.

The orphan reaper is a small process that does what is left to do where neither tool works: it kills
what engines leave behind outside their process groups. It is always there, because a worker that is
killed while `bwrap` starts an engine leaves that engine alive, and because it watches the engines'
working folders. Every process that an engine starts inherits its environment, with an id that no
other engine has. The worker tells the reaper the id of every engine that has ended, and the reaper
kills all processes that still have it. When the worker ends, however that happens, its pipe closes,
and the reaper kills all processes with ids of this worker. It searches for ids, because a worker
that adopts orphans could not tell them from its other children.
"""

import ctypes
import errno
import fcntl
import gc
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from shutil import rmtree
from typing import Protocol

ENGINE_ID = "SPSA_ENGINE"
"""The variable of an engine's environment that holds its id."""

_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_NO_NEW_PRIVS = 38
_GIVEN_UP = 1
_CHUNK = 65_536
_KILL_SECONDS = 5.0  # how long killed processes, and what they still started, may take to end
_KILL_PAUSE = 0.005
_TRIAL_SECONDS = 30.0
_FOLDER_SECONDS = 1.0  # between two checks of the working folders
_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

_libc = ctypes.CDLL(None, use_errno=True)


class Folders(Protocol):
    """The working folders that the orphan reaper watches."""

    @property
    def root(self) -> Path: ...

    def overfull(self) -> set[str]: ...


@dataclass(frozen=True, slots=True)
class Isolation:
    """Descriptors of namespaces, in the order in which an engine enters them, and a `wrapper`.

    In a user namespace of its own an engine has its user's files, but not its user's rights over
    other processes such as the worker. A network namespace has no address, not even 127.0.0.1.
    The wrapper is the words before an engine's command that give it a PID namespace of its own;
    none where nothing does.
    """

    namespaces: tuple[int, ...]
    wrapper: tuple[str, ...] = ()

    def enter(self) -> None:
        """Called in a child before it becomes an engine; OSError where it is refused."""
        for namespace in self.namespaces:
            _check(_libc.setns(namespace, 0))
        # No program that it starts gains rights, as sudo would.
        _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))

    def command(self, words: list[str]) -> list[str]:
        """What starts this program; OSError where it is none, or is open for writing."""
        if not self.wrapper:
            return words
        # The wrapper would say so on stderr alone.
        if not os.access(words[0], os.X_OK):
            raise _os_error(errno.EACCES if Path(words[0]).exists() else errno.ENOENT)
        if _is_open_for_writing(words[0]):
            raise _os_error(errno.ETXTBSY)
        return [*self.wrapper, *words]


@contextmanager
def isolation(*, wanted: bool = True) -> Iterator[Isolation | None]:
    """Namespaces for the engines of this process; None where the system allows none.

    Enter it before the process has threads, and before `hide_memory`.
    """
    namespaces = _made() if wanted else ()
    try:
        wrapper = _pid_wrapper(Isolation(namespaces)) if wanted else ()
        yield Isolation(namespaces, wrapper) if namespaces or wrapper else None
    finally:
        for namespace in namespaces:
            os.close(namespace)


def _pid_wrapper(entered: Isolation) -> tuple[str, ...]:
    """The words that start a program in a PID namespace here; empty where none do."""
    bwrap = (
        *("bwrap", "--dev-bind", "/", "/", "--proc", "/proc", "--unshare-pid"),
        *("--unshare-user-try", "--die-with-parent", "--cap-drop", "ALL", "--"),
    )
    as_user = ("--user", "--map-current-user") if os.geteuid() else ()
    unshare = (
        *("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *as_user, "--"),
        # The kernel ignores signals that the first process of a namespace sends to itself, as in
        # abort(). So that is a shell.
        *("sh", "-c", '"$@"; exit', "sh"),
    )
    return next((words for words in (bwrap, unshare) if _works(words, entered)), ())


def _works(wrapper: tuple[str, ...], entered: Isolation) -> bool:
    quiet = subprocess.DEVNULL
    try:
        done = subprocess.run(
            [*wrapper, "true"],
            preexec_fn=entered.enter,
            stdin=quiet,
            stdout=quiet,
            stderr=quiet,
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
    _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def die_with(parent: int) -> None:
    """Called in a child: have the kernel kill it when the thread that started it ends."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died before the call
        os._exit(127)


def _made() -> tuple[int, ...]:
    """Descriptors of a user and a network namespace; empty where the system allows none.

    A namespace lasts as long as its descriptor. Root of a container may make only the second.
    """
    for kinds in (("user", "net"), ("net",)):
        if found := _made_by_a_child(kinds):
            return found
    return ()


def _made_by_a_child(kinds: tuple[str, ...]) -> tuple[int, ...]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        child = os.fork()
        if child == 0:
            _make(kinds, theirs)
        theirs.close()
        try:
            _, found, _, _ = socket.recv_fds(ours, 1, len(kinds))
        finally:
            os.waitpid(child, 0)
    for descriptor in found:
        os.set_inheritable(descriptor, False)
    return tuple(found)


def _make(kinds: tuple[str, ...], parent: socket.socket) -> None:
    """The code of the child; where anything fails it ends without sending descriptors."""
    with suppress(BaseException):
        # Inside the namespace these would be the mapped numbers.
        user, group = os.geteuid(), os.getegid()
        _check(_libc.unshare(_CLONE_NEWNET | (_CLONE_NEWUSER if "user" in kinds else 0)))
        if "user" in kinds:
            _keep_identity(user, group)
        opened = [os.open(f"/proc/self/ns/{kind}", os.O_RDONLY) for kind in kinds]
        socket.send_fds(parent, [b"!"], opened)
        os._exit(0)
    os._exit(_GIVEN_UP)


def _keep_identity(user: int, group: int) -> None:
    """Map the user to itself, so that an engine still owns its user's files."""
    _write("setgroups", "deny")
    _write("uid_map", f"{user} {user} 1")
    _write("gid_map", f"{group} {group} 1")


def _write(name: str, text: str) -> None:
    descriptor = os.open(f"/proc/self/{name}", os.O_WRONLY)
    os.write(descriptor, text.encode())
    os.close(descriptor)


def _check(result: int) -> None:
    if result != 0:
        raise _os_error(ctypes.get_errno())


def _os_error(number: int) -> OSError:
    return OSError(number, os.strerror(number))


class OrphanReaper:
    """The worker's end of the pipe to the reaper; every thread may use it."""

    def __init__(self, pipe: int, worker: str) -> None:
        self._pipe = pipe
        self._worker = worker
        self._numbers = count(1)

    def new_id(self) -> str:
        """A new id, for one engine and all that it starts."""
        return f"{self._worker}.{next(self._numbers)}"

    def engine_ended(self, engine_id: str) -> None:
        """Have all processes with this id killed soon; waits for nothing.

        If the reaper itself was killed, or is thousands of engines behind, nothing more happens:
        the engine's process group is dead in any case.
        """
        with suppress(OSError):
            os.write(self._pipe, f"{engine_id}\n".encode())


@contextmanager
def orphan_reaper(folders: Folders | None = None) -> Iterator[OrphanReaper]:
    """An orphan reaper for the engines of this process.

    It also kills engines whose working folders are too full, and removes all folders when the
    worker has ended. Enter it before the process has threads. Leaving it waits until all processes
    of all engines have ended.
    """
    worker = os.urandom(8).hex()
    source, pipe = os.pipe()
    child = os.fork()
    if child == 0:
        _run(source, worker, folders)
    os.close(source)
    os.set_blocking(pipe, False)
    try:
        yield OrphanReaper(pipe, worker)
    finally:
        os.close(pipe)
        os.waitpid(child, 0)


def _run(source: int, worker: str, folders: Folders | None) -> None:
    """The code of the reaper's process."""
    with suppress(BaseException):
        _detach(source)
        for ids in _ended_engines(source, folders):
            if ids:
                _kill_all(_has_id(ids))
        _kill_all(_has_id({f"{worker}."}, whole=False))
        if folders is not None:
            rmtree(folders.root, ignore_errors=True)
    os._exit(0)


def _detach(source: int) -> None:
    """Leave the worker's terminal, close its files, and hide its secrets."""
    os.setsid()
    hide_memory()
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    gc.disable()
    os.closerange(0, source)
    os.closerange(source + 1, os.sysconf("SC_OPEN_MAX"))


def _ended_engines(source: int, folders: Folders | None) -> Iterator[set[str]]:
    """The ids of engines that have ended or must end, until the worker has ended."""
    rest = b""
    while True:
        if folders is not None:
            yield folders.overfull()
            if not select.select([source], [], [], _FOLDER_SECONDS)[0]:
                continue
        if not (chunk := os.read(source, _CHUNK)):
            return
        *lines, rest = (rest + chunk).split(b"\n")
        yield {line.decode() for line in lines}


def _processes() -> list[str]:
    with os.scandir("/proc") as entries:
        return [entry.name for entry in entries if entry.name.isdigit()]


def _has_id(ids: set[str], *, whole: bool = True) -> Callable[[str], bool]:
    """Whether a process has one of these ids, or one that begins with it."""
    end = "\0" if whole else ""
    wanted = [f"\0{ENGINE_ID}={engine_id}{end}".encode() for engine_id in ids]

    def has_id(pid: str) -> bool:
        environment = _environment(pid)
        return any(variable in environment for variable in wanted)

    return has_id


def _environment(pid: str) -> bytes:
    """Its variables, each between two zeros; empty for a dead process or one of another user."""
    try:
        return b"\0" + Path("/proc", pid, "environ").read_bytes() + b"\0"
    except OSError:
        return b""


def _kill_all(wanted: Callable[[str], bool]) -> None:
    """Kill these processes, and repeat until there are none: some may start others meanwhile."""
    deadline = time.monotonic() + _KILL_SECONDS
    while found := [pid for pid in _processes() if wanted(pid)]:
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(int(pid), signal.SIGKILL)
        if time.monotonic() > deadline:
            return
        time.sleep(_KILL_PAUSE)
