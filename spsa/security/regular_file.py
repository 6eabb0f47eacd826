"""Reads a file that the user named, in bounded time and memory whatever is at its path."""

import errno
import os
import stat
from pathlib import Path

MOST_TEXT = 2**24
"""Bytes of a file that holds a URL, a key or a configuration."""

MOST_BOOK = 2**28
"""Bytes of a book of openings: the largest in use have about 200 MB."""


def content(path: Path, most: int) -> bytes:
    """The bytes of a regular file of at most `most` bytes.

    Raises:
        OSError: it cannot be read, or is a folder, a device, a pipe or too long; its `strerror`
            says which.
    """
    try:
        # A plain open of a pipe without a writer would block for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
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
