"""Engines without a network: all of them enter a network namespace that has none, made once.

Linux only, and only where the system lets an ordinary user make namespaces, which is found out by
trying. Entering one takes microseconds, making one milliseconds.
"""

import ctypes
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_PR_SET_DUMPABLE = 4
_PR_SET_NO_NEW_PRIVS = 38
_GIVEN_UP = 1

_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


@dataclass(frozen=True, slots=True)
class Isolation:
    """Descriptors of namespaces, in the order in which an engine enters them.

    In a user namespace of its own an engine has its user's files, but not its user's rights over
    other processes such as the worker. A network namespace has no address, not even 127.0.0.1.
    """

    namespaces: tuple[int, ...]

    def enter(self) -> None:
        """Called in a child before it becomes an engine; OSError where it is refused."""
        assert _libc is not None
        for namespace in self.namespaces:
            _check(_libc.setns(namespace, 0))
        # No program that it starts gains rights, as sudo would.
        _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))


@contextmanager
def isolation(*, wanted: bool = True) -> Iterator[Isolation | None]:
    """Namespaces for the engines of this process; None where the system allows none.

    Enter it before the process has threads, and before `hide_memory`.
    """
    namespaces = _made() if wanted and _libc is not None else ()
    try:
        yield Isolation(namespaces) if namespaces else None
    finally:
        for namespace in namespaces:
            os.close(namespace)


def hide_memory() -> None:
    """Hide this process's memory and first environment from other processes of its user.

    Otherwise an engine without a user namespace could read the database's password in
    /proc/<worker>/environ, which still has a variable that the process has deleted. From now on
    only root can trace this process, and it leaves no core file.
    """
    if _libc is not None:
        _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


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
    assert _libc is not None
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
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
