"""Private folders, bounded reading of files that users name, and atomic writing."""

import errno
import os
import stat
import tempfile
from pathlib import Path

from spsa.errors import TuningError

MAX_TEXT = 2**24
"""Bytes of a file that holds a URL, a token or a configuration."""

MAX_BOOK = 2**28
"""Bytes of a book of openings: the largest in use have about 200 MB."""

_READING = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_MODE = 0o644
_ALL_USERS_MAPPED = ["0", "0", str(2**32 - 1)]


def cache_folder() -> Path:
    """The tuner's folder in the user's cache (XDG base directories)."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "spsa-tuner"


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
    if not stat.S_ISDIR(status.st_mode):
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
    if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
        return f"every user may write {parent} (`chmod o-w` closes it)"
    if status.st_mode & stat.S_IWGRP and not status.st_mode & stat.S_ISVTX:
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


def content(path: Path, most: int, *, follow: bool = True) -> bytes:
    """The bytes of a regular file of at most `most` bytes; without `follow` a link is refused.

    Raises:
        OSError: it cannot be read, or is a folder, a device, a pipe or too long; its `strerror`
            says which.
    """
    try:
        # A plain open of a pipe without a writer would block for ever.
        descriptor = os.open(path, _READING | (0 if follow else os.O_NOFOLLOW))
    except ValueError as error:  # a NUL in the name
        raise OSError(errno.EINVAL, str(error), str(path)) from None
    with os.fdopen(descriptor, "rb") as file:
        _check_regular(os.fstat(descriptor), path, most)
        found = file.read(most + 1)
    if len(found) > most:
        raise _too_long(path, most)
    return found


def _check_regular(status: os.stat_result, path: Path, most: int) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(
            errno.EINVAL,
            f"it is a pipe or a device, and not a regular file of at most {most:,} bytes",
            str(path),
        )
    if status.st_size > most:
        raise _too_long(path, most)


def _too_long(path: Path, most: int) -> OSError:
    return OSError(errno.EFBIG, f"it has more than {most:,} bytes", str(path))


def write_whole(path: Path, content: bytes, mode: int | None = None) -> None:
    """Write beside the file, then rename: a reader sees the old content or the new.

    Without a `mode` that of an existing file stays.

    Raises:
        OSError: the file cannot be written; what was there is as it was.
    """
    if path.exists() and not path.is_file():
        path.write_bytes(content)  # /dev/stdout takes no other file's place
        return
    if mode is None:
        mode = path.stat().st_mode if path.exists() else _MODE & ~_umask()
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".spsa-")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(stat.S_IMODE(mode))
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def _umask() -> int:
    """The process's mask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, so that they survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
