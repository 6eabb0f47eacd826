"""A folder in which only its owner can create, change or replace files."""

import os
from pathlib import Path
from stat import S_ISDIR, S_ISVTX, S_IWGRP, S_IWOTH

from spsa.errors import TuningError

_ALL_USERS_MAPPED = ["0", "0", str(2**32 - 1)]


def private_folder(folder: Path, what: str) -> Path:
    """The real path of `folder`, which is created if it is missing and closed to other users.

    A user who can write a folder above it could replace it, so those folders are checked too.

    Raises:
        TuningError: names `what` and the reason.
    """
    folder = folder.absolute()
    try:
        for missing in [path for path in (*reversed(folder.parents), folder) if not path.exists()]:
            missing.mkdir(mode=0o700, exist_ok=True)
        status, real = folder.lstat(), folder.parent.resolve() / folder.name
    except OSError as error:
        raise TuningError(f"{what} {folder} cannot be made: {error.strerror}") from error
    if not S_ISDIR(status.st_mode):
        raise TuningError(f"{what} {folder} is a symbolic link; name the directory itself")
    if status.st_uid != os.getuid():
        raise TuningError(f"{what} {folder} belongs to user {status.st_uid}; use your own")
    if danger := next(filter(None, map(_danger, real.parents)), None):
        raise TuningError(f"{what} {folder} is not safe: {danger} and could replace it")
    folder.chmod(0o700)
    return real


def _danger(parent: Path) -> str | None:
    """Why another user than root can rename what is in this folder; None if only we and root can.

    In a sticky folder, like /tmp, each user can rename only their own files.
    """
    status = parent.stat()
    if status.st_uid not in _trusted_users():
        return f"{parent} belongs to user {status.st_uid}, who could change it"
    if status.st_mode & S_IWOTH and not status.st_mode & S_ISVTX:
        return f"every user may write {parent} (`chmod o-w` closes it)"
    if status.st_mode & S_IWGRP and not status.st_mode & S_ISVTX:
        return f"group {status.st_gid} may write {parent} (`chmod g-w` closes it)"
    return None


def _trusted_users() -> set[int]:
    """This user and root; in a container, where root outside has no number, the one it gets."""
    trusted = {os.getuid(), 0}
    try:
        if Path("/proc/self/uid_map").read_text().split() != _ALL_USERS_MAPPED:
            trusted.add(int(Path("/proc/sys/kernel/overflowuid").read_text()))
    except (OSError, ValueError):
        pass  # a system without user namespaces
    return trusted
