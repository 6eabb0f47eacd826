"""A file that is there whole or not at all."""

import os
import tempfile
from pathlib import Path

_MODE = 0o644


def write_whole(path: Path, content: bytes) -> None:
    """Write beside the file, then rename: a reader sees the old content or the new.

    Raises:
        OSError: the file cannot be written; what was there is as it was.
    """
    if path.exists() and not path.is_file():
        path.write_bytes(content)  # /dev/stdout takes no other file's place
        return
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".spsa-")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(_MODE & ~_umask())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    """The process's mask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
