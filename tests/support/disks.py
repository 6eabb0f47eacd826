"""Folders and small file systems of their own, to be filled; only root may make a file system."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def open_folder() -> Iterator[Path]:
    """Readable to whoever the server runs as."""
    made = Path(tempfile.mkdtemp(prefix="spsa-crashing-"))
    made.chmod(0o755)
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


@contextmanager
def disk_of(mebibytes: int) -> Iterator[Path]:
    """A file system of its own with so much room."""
    with open_folder() as disk:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m,mode=755", "tmpfs", disk]
        if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
            pytest.skip("no file system may be mounted here")
        try:
            yield disk
        finally:
            subprocess.run(["umount", "-l", disk], check=True)


def fill(disk: Path) -> Path:
    """Take what room there is, to the last page; the file that took it."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for piece in (1 << 16, 1 << 12):
            try:
                while True:
                    file.write(bytes(piece))
            except OSError:
                continue
    return ballast
