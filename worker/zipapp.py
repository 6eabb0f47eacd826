"""The file that a worker runs from, where it was not installed: replaced whole, started again."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import worker


class Restart(Exception):
    """The worker has another file now, and has to start it in its own place."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = environment
        super().__init__("this worker starts its new version")

    def carry_out(self) -> int:
        """Become the new version; on Windows, run it and return its exit code."""
        command = [sys.executable, *sys.orig_argv[1:]]
        sys.stdout.flush()
        sys.stderr.flush()
        if sys.platform != "win32":
            os.execve(sys.executable, command, dict(self.environment))
        return subprocess.call(command, env=dict(self.environment))


@dataclass(frozen=True, slots=True)
class Zipapp:
    """The file of this process; its hash and metadata are those when the process started."""

    path: Path
    sha256: str
    mark: tuple[int, ...]

    @classmethod
    def running(cls) -> Self | None:
        """None where the worker was installed."""
        archive = getattr(getattr(worker.__spec__, "loader", None), "archive", None)
        if archive is None:
            return None
        path = Path(archive).resolve()
        return cls(path, sha256_of(path.read_bytes()), _mark(path))

    @property
    def is_replaced(self) -> bool:
        """Whether another process has put another file in its place."""
        try:
            return _mark(self.path) != self.mark
        except OSError:
            return False

    def is_now(self, sha256: str) -> bool:
        """Whether the file was replaced by one with this hash."""
        return self.is_replaced and sha256_of(self.path.read_bytes()) == sha256

    @contextmanager
    def draft(self, data: bytes) -> Iterator[Path]:
        """A new file beside this one, with the same mode; gone at the end, unless it was renamed.

        OSError if the folder cannot be written.
        """
        beside, name = self.path.parent, self.path.name
        descriptor, found = tempfile.mkstemp(prefix=f".{name}-", suffix=".pyz", dir=beside)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            shutil.copymode(self.path, found)
            yield Path(found)
        finally:
            Path(found).unlink(missing_ok=True)

    def replace(self, draft: Path) -> None:
        """Give the draft the name of this file, whose content stays beside it as NAME.previous."""
        if not self.is_replaced:
            with self.draft(self.path.read_bytes()) as copy:
                copy.replace(self.path.with_name(f"{self.path.name}.previous"))
        draft.replace(self.path)


def command(zipapp: Path) -> Sequence[str]:
    """The command line of this process, with another file in the place of its own."""
    place = len(sys.orig_argv) - len(sys.argv)
    return [sys.executable, *sys.orig_argv[1:place], str(zipapp), *sys.argv[1:]]


def sha256_of(data: bytes) -> str:
    """The hash in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def _mark(path: Path) -> tuple[int, ...]:
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
