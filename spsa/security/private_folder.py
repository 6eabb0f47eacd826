"""A folder in which only its owner can put, change or swap a file.

The folder's own mode is not enough: a user who can write a folder above it can move it away and
leave another one in its place.
"""

import os
import stat
from pathlib import Path

from spsa.errors import TuningError

_ROOT = 0
_IDENTITY = ["0", "0", str(2**32 - 1)]
_UID_MAP = Path("/proc/self/uid_map")
_OVERFLOW_UID = Path("/proc/sys/kernel/overflowuid")


def private_folder(folder: Path, what: str) -> Path:
    """The real path of `folder`, which is made with mode 0700 if it is missing.

    A folder that is open to other users is closed to them.

    Raises:
        TuningError: names the folder, as `what`, that cannot be made, is a symbolic link, belongs
            to another user, or lies under a folder that another user can change.
    """
    folder = folder.absolute()
    try:
        _make(folder)
        status = folder.lstat()
        above = folder.parent.resolve()
    except OSError as error:
        raise TuningError(f"{what} {folder} cannot be made: {error.strerror}") from error
    if not stat.S_ISDIR(status.st_mode):
        raise TuningError(f"{what} {folder} is a symbolic link; name the directory itself")
    if status.st_uid != os.getuid():
        raise TuningError(f"{what} {folder} belongs to user {status.st_uid}; use your own")
    for parent in (above, *above.parents):
        if danger := _danger(parent):
            raise TuningError(f"{what} {folder} is not safe: {danger} and could replace it")
    if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        folder.chmod(stat.S_IRWXU)
    return above / folder.name


def _make(folder: Path) -> None:
    """Also what is missing above it, whatever the umask lets a group do."""
    for missing in [path for path in (*reversed(folder.parents), folder) if not path.exists()]:
        missing.mkdir(mode=stat.S_IRWXU, exist_ok=True)


def _danger(parent: Path) -> str | None:
    """Why another user than root can rename what is in this folder; None if only we and root can.

    In a sticky folder, as /tmp is, each user renames only files of their own.
    """
    status = parent.stat()
    if status.st_uid not in _trusted_users():
        return f"{parent} belongs to user {status.st_uid}, who could change it"
    if status.st_mode & stat.S_ISVTX:
        return None
    if status.st_mode & stat.S_IWOTH:
        return f"every user may write {parent} (`chmod o-w` closes it)"
    if status.st_mode & stat.S_IWGRP:
        return f"group {status.st_gid} may write {parent} (`chmod g-w` closes it)"
    return None


def _trusted_users() -> frozenset[int]:
    """Ourselves and root; in a container's user namespace, root of the outside has no number."""
    trusted = {os.getuid(), _ROOT}
    try:
        if _UID_MAP.read_text().split() != _IDENTITY:
            trusted.add(int(_OVERFLOW_UID.read_text()))
    except (OSError, ValueError):
        pass
    return frozenset(trusted)
