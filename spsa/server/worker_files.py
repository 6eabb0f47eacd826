"""What workers fetch: worker.pyz, and the files that their claims name.

worker.pyz is the worker as one file for any machine with Python 3.11, packed from what is here. It
has the worker, what the worker imports of spsa, and four libraries in pure Python. It has nothing
that needs a database, numpy or a compiler. The same installation always packs the same bytes, so
that their hash says whether a worker is of this version.
"""

import hashlib
import io
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from functools import cache
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path
from threading import Lock

from spsa.files import MAX_BOOK, content

LIBRARIES = ("chess", "click", "rich", "urllib3")
"""Each is a distribution and its package; rich's view imports none of its own dependencies."""

SPSA = (
    *("__init__.py", "errors.py", "files.py", "lifecycle.py", "live_display.py", "output.py"),
    *("protocol.py", "text.py", "builds", "core", "openings", "uci"),
)
"""What a remote worker imports of spsa: modules, and folders with all that is in them."""

LEFT_OUT = (
    *("spsa/builds/sources", "spsa/core/params.py"),  # they need tree-sitter and numpy
    "spsa/core/parameter.py",
    *("worker/direct.py", "worker/replay.py"),  # they need a database
)

KEPT_BYTES = 2**29
"""Of files that were sent last."""

_SUFFIXES = (".py", ".epd")
_LICENCES = ("LICENSE", "LICENCE", "COPYING", "NOTICE")
_FIRST_LINE = b"#!/usr/bin/env python3\n"
_EARLIEST = (1980, 1, 1, 0, 0, 0)  # what a zip file can say
_MAIN = b"""\
import sys

if sys.version_info < (3, 11):
    found = sys.version.split()[0]
    sys.stderr.write("worker.pyz needs Python 3.11 or newer, and this is %s\\n" % found)
    sys.exit(2)

from worker.cli import main

main()
"""


@cache
def packed() -> bytes:
    """The file; packed once in this process."""
    file = io.BytesIO()
    file.write(_FIRST_LINE)
    with zipfile.ZipFile(file, "a") as packing:
        for name, content in sorted({"__main__.py": _MAIN, **dict(_contents())}.items()):
            entry = zipfile.ZipInfo(name, _EARLIEST)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            packing.writestr(entry, content)
    return file.getvalue()


@cache
def packed_sha256() -> str:
    """The hash of `packed` in hexadecimal: what a worker compares with its own file's."""
    return hashlib.sha256(packed()).hexdigest()


def _contents() -> Iterator[tuple[str, bytes]]:
    """Names in the file, and what they hold."""
    for place in SPSA:
        yield from _files(_folder("spsa"), place)
    yield from _files(_folder("worker"), "")
    for library in LIBRARIES:
        yield from _files(_folder(library), "")
        yield from _licences(library)
    yield from _licences("spsa-tuner")


def _files(package: Path, place: str) -> Iterator[tuple[str, bytes]]:
    """The modules and data of a part of a package."""
    part = package / place
    for path in part.rglob("*") if part.is_dir() else (part,):
        name = path.relative_to(package.parent).as_posix()
        if path.suffix in _SUFFIXES and not name.startswith(LEFT_OUT):
            yield name, path.read_bytes()


def _licences(name: str) -> Iterator[tuple[str, bytes]]:
    for file in distribution(name).files or ():
        if file.name.upper().startswith(_LICENCES):
            yield f"licences/{name}/{file.name}", file.read_binary()


def _folder(package: str) -> Path:
    """Where a package is; it is not imported."""
    spec = find_spec(package)
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent


class SentFiles:
    """The files that were sent last: `KEPT_BYTES` of them on disk, or the one that is asked for."""

    def __init__(self, read: Callable[[str], bytes | None]) -> None:
        self._read = read
        self._lock = Lock()
        self._folder = tempfile.TemporaryDirectory()

    def find(self, sha256: str, place: str) -> Path | None:
        """The file with this hash, from the database or from `place` on this machine."""
        path = Path(self._folder.name) / sha256
        with self._lock:
            if not path.exists():
                found = self._read(sha256) or _kept(place, sha256)
                if found is None:
                    return None
                path.write_bytes(found)
            path.touch()
            kept = sorted(path.parent.iterdir(), key=lambda one: one.stat().st_mtime_ns)
            while len(kept) > 1 and sum(one.stat().st_size for one in kept) > KEPT_BYTES:
                kept.pop(0).unlink()
        return path


def _kept(place: str, sha256: str) -> bytes | None:
    """The bytes of a file that the master keeps here; None if they have another hash."""
    try:
        found = content(Path(place), MAX_BOOK) if place else b""
    except OSError:
        return None
    return found if hashlib.sha256(found).hexdigest() == sha256 else None
