"""A folder in which nobody but its owner can put, change or swap anything.

It is not enough that the folder itself is private: whoever can write a folder above it can move it
away and leave another one in its place.
"""

import os
import stat
from pathlib import Path

from spsa.errors import TuningError

_MODE = 0o700
_OTHERS = 0o077
_ROOT = 0
_IDENTITY = [0, 0, 2**32 - 1]
_UID_MAP = Path("/proc/self/uid_map")
_OVERFLOW_UID = Path("/proc/sys/kernel/overflowuid")


def private_folder(folder: Path, what: str) -> Path:
    """The folder with its real path, made with mode 0700 where there is none.

    Others are shut out of one that was open to them.

    Raises:
        TuningError: it cannot be made, is a symbolic link or somebody else's, or others could
            replace it; says so with `what` it was to be.
    """
    folder = folder.absolute()
    try:
        folder.mkdir(mode=_MODE, parents=True, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        raise TuningError(f"{what} {folder} cannot be made: {error.strerror}") from error
    if not stat.S_ISDIR(status.st_mode):
        raise TuningError(f"{what} {folder} is a symbolic link; name the directory itself")
    if status.st_uid != os.getuid():
        raise TuningError(f"{what} {folder} belongs to user {status.st_uid}; use your own")
    folder = folder.parent.resolve() / folder.name
    for above in folder.parents:
        _refuse_foreign(above, f"{what} {folder}")
    if status.st_mode & _OTHERS:
        folder.chmod(_MODE)
    return folder


def _refuse_foreign(above: Path, what: str) -> None:
    """Nobody but us and root may be able to rename what is in this folder."""
    status = above.stat()
    if status.st_uid not in _trusted_users():
        raise TuningError(
            f"{what} is not safe: {above} belongs to user {status.st_uid}, who could replace it"
        )
    if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
        raise TuningError(f"{what} is not safe: anybody may write {above} and could replace it")


def _trusted_users() -> frozenset[int]:
    """Ourselves and root; in a container's user namespace, root of the outside has no number."""
    trusted = {os.getuid(), _ROOT}
    try:
        if [int(word) for word in _UID_MAP.read_text().split()] != _IDENTITY:
            trusted.add(int(_OVERFLOW_UID.read_text()))
    except (OSError, ValueError):
        pass
    return frozenset(trusted)
