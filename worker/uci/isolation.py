"""Engines without a network: a namespace that has none, made once and entered by every engine.

Linux only, and only where the system lets an ordinary user have namespaces of his own; whether it
does is found out by trying. Entering takes microseconds where making one takes milliseconds.
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
    """Descriptors of namespaces, in the order in which they are entered.

    In a user namespace of its own an engine has its user's files but none of its user's rights over
    other processes, the worker among them; a network namespace has no address, not even 127.0.0.1.
    """

    namespaces: tuple[int, ...]

    def enter(self) -> None:
        """In a child that is about to become an engine; OSError if it cannot."""
        assert _libc is not None
        for namespace in self.namespaces:
            _done(_libc.setns(namespace, 0))
        # no program that it starts can be more than it is: neither sudo nor ping
        _done(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))


@contextmanager
def isolation(*, wanted: bool = True) -> Iterator[Isolation | None]:
    """Namespaces for the engines of this process; None where the system allows none.

    To be entered before the process has threads, and before `keep_to_oneself`.
    """
    namespaces = _made() if wanted and _libc is not None else ()
    try:
        yield Isolation(namespaces) if namespaces else None
    finally:
        for namespace in namespaces:
            os.close(namespace)


def keep_to_oneself() -> None:
    """Hide this process's memory and first environment from others of its user.

    Otherwise an engine without a user namespace could read the database's password in
    /proc/<worker>/environ, which the system keeps as it was however the variable is deleted. Who
    traces this process has to be root from now on; there is no core file either.
    """
    if _libc is not None:
        _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def _made() -> tuple[int, ...]:
    """Descriptors of a user and a network namespace made by a child that is gone.

    They last as long as they are held. Root of a container may have the second without the first.
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


def _make(kinds: tuple[str, ...], answer: socket.socket) -> None:
    """The whole life of the child; where anything fails it ends without an answer."""
    assert _libc is not None
    with suppress(BaseException):
        # looked up before: inside, a process is known by its mapped number alone
        user, group = os.geteuid(), os.getegid()
        _done(_libc.unshare(_CLONE_NEWNET | (_CLONE_NEWUSER if "user" in kinds else 0)))
        if "user" in kinds:
            _keep_identity(user, group)
        opened = [os.open(f"/proc/self/ns/{kind}", os.O_RDONLY) for kind in kinds]
        socket.send_fds(answer, [b"!"], opened)
        os._exit(0)
    os._exit(_GIVEN_UP)


def _keep_identity(user: int, group: int) -> None:
    """Whoever the engine runs as, inside it has the same number, and its files are its own."""
    _write("setgroups", "deny")
    _write("uid_map", f"{user} {user} 1")
    _write("gid_map", f"{group} {group} 1")


def _write(name: str, text: str) -> None:
    descriptor = os.open(f"/proc/self/{name}", os.O_WRONLY)
    os.write(descriptor, text.encode())
    os.close(descriptor)


def _done(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
