"""Disks of known slowness: for a server, and for the processes that write an SQLite file."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_SHIM = Path(__file__).with_name("slow_disk.c")


def compiled_shim(folder: Path) -> Path | None:
    """The library that makes every fsync slow; None where there is no C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    library = folder / "slow_disk.so"
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", library, _SHIM, "-ldl"], check=True)
    library.chmod(0o755)
    return library


def variables(shim: Path | None, milliseconds: float) -> Mapping[str, str]:
    """The environment of a process whose fsyncs take so long; without a shim, what they take."""
    if shim is None:
        return {}
    return {"LD_PRELOAD": str(shim), "FSYNC_MICROSECONDS": str(round(1000 * milliseconds))}


@contextmanager
def passed_on(shim: Path | None, milliseconds: float) -> Iterator[None]:
    """Let the processes that are started meanwhile have slow fsyncs."""
    given = variables(shim, milliseconds)
    os.environ.update(given)
    try:
        yield
    finally:
        for name in given:
            del os.environ[name]
