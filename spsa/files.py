"""Private folders, bounded reading of files that users name, and atomic writing."""

import errno
import os
import secrets
import shutil
import stat
import time
from contextlib import suppress
from pathlib import Path

from spsa.errors import TuningError

MAX_TEXT = 2**24  # bytes of a file that holds a URL, a token or a configuration
MAX_BOOK = 2**28  # bytes of a book of openings: the largest in use have about 200 MB
WORK = ".tuning"  # beside config.toml: the pinned source, private work trees, locks
_DAY = 86_400.0
_READING = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


def cache_folder() -> Path:
    """The tuner's folder in the user's cache (XDG base directories)."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "spsa-tuner"


def private_folder(folder: Path, what: str) -> Path:
    """The real path of `folder`, which is created if it is missing and closed to other users.

    TuningError names `what` it is, and why that failed.
    """
    folder = folder.absolute()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        raise TuningError(f"{what} {folder} cannot be made: {error.strerror}") from error
    if not stat.S_ISDIR(status.st_mode):
        raise TuningError(f"{what} {folder} is a symbolic link; name the directory itself")
    if status.st_uid != os.getuid():
        raise TuningError(f"{what} {folder} belongs to user {status.st_uid}; use your own")
    folder.chmod(0o700)
    return folder.parent.resolve() / folder.name


def content(path: Path, most: int, *, follow: bool = True) -> bytes:
    """The bytes of a regular file of at most `most` bytes; without `follow` a link is refused.

    Raises OSError: it cannot be read, or is a folder, a device, a pipe or too long; `strerror` says
    which.
    """
    try:
        # A plain open of a pipe without a writer would block for ever.
        descriptor = os.open(path, _READING | (0 if follow else os.O_NOFOLLOW))
    except ValueError as error:  # a NUL in the name
        raise OSError(errno.EINVAL, str(error), str(path)) from None
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(status.st_mode):
            what = f"it is a pipe or a device, and not a regular file of at most {most:,} bytes"
            raise OSError(errno.EINVAL, what, str(path))
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            found = file.read(min(most, max(status.st_size, MAX_TEXT)) + 1)  # of /proc it is 0
    finally:
        os.close(descriptor)
    if len(found) > most:
        raise OSError(errno.EFBIG, f"it has more than {most:,} bytes", str(path))
    return found


def encoding_of(source: bytes) -> str:
    """UTF-8, or Latin-1 for any other source of an engine: all its bytes are characters then.

    With a NUL byte it is taken for UTF-8 even so: reading UTF-16 raises UnicodeDecodeError.
    """
    try:
        source.decode("utf-8")
    except UnicodeDecodeError:
        return "utf-8" if b"\0" in source else "latin-1"
    return "utf-8"


def write_whole(path: Path, content: bytes, mode: int | None = None) -> None:
    """Write beside the file, then rename: a reader sees the old content or the new.

    Without a `mode` that of an existing file stays. OSError names the file, which cannot be
    written; what was there is as it was.
    """
    if path.exists() and not path.is_file():
        path.write_bytes(content)  # /dev/stdout takes no other file's place
        return
    if mode is None and path.exists():
        mode = stat.S_IMODE(path.stat().st_mode)
    temporary = path.with_name(f".spsa-{secrets.token_hex(8)}")
    created = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(temporary, created, mode or 0o666), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            temporary.chmod(mode)
        temporary.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        with suppress(OSError):
            temporary.unlink()
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, so that they survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def lock_text(run: str, database: str) -> str:
    """What the master that writes a params.toml leaves in its lock in the folder `WORK`."""
    return f"run {run} in {database}"


def moved_last(folder: Path) -> str:
    """The run that a master moved last beside this config.toml, by the newest lock; else ""."""
    with suppress(OSError, ValueError):  # a folder of another user, or without a lock
        last = max((folder / WORK).glob("*.lock"), key=lambda lock: lock.stat().st_mtime)
        return last.read_text().rpartition(" in ")[0].removeprefix("run ")
    return ""


def remove_old(folder: Path, pattern: str = "*") -> None:
    """Remove the folders in it that fit the pattern and were not touched for a day."""
    for home in folder.glob(pattern):
        with suppress(OSError):  # another process may be removing it
            if home.stat().st_mtime < time.time() - _DAY:
                shutil.rmtree(home)
