"""The Rust files of an engine's crate, or of the workspace that the crate is a member of."""

import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from posixpath import normpath

from spsa.errors import Fault, InvalidInput
from spsa.security.files import content

_MOST_BYTES = 2**19
"""Bytes of one file: a person does not write a longer one, and its tree takes seconds."""

_MOST_FILES = 2000
_FOREIGN = ("tests", "benches", "examples", "fuzz", "target", "vendor", "node_modules")


@dataclass(frozen=True, slots=True)
class Crate:
    """The folder that cargo builds from, and the binary that is the engine, if one has to be named.

    `root` is that of the workspace where the crate is a member of one. `texts` are the Rust files
    by path from `root`; `unread` tells of each other file why it was not read.
    """

    root: Path
    binary: str | None
    texts: Mapping[str, str]
    unread: Mapping[str, str]


def find_crate(source: Path) -> tuple[Path, str | None]:
    """The folder to build from for the crate in `source`, and its binary if it is one of several.

    Raises InvalidInput without a Cargo.toml that can be read.
    """
    manifest = _manifest(source)
    for folder in source.resolve().parents:
        workspace = _manifest(folder).get("workspace") if (folder / "Cargo.toml").is_file() else {}
        relative = source.resolve().relative_to(folder).as_posix()
        if isinstance(workspace, dict) and _names(workspace.get("members"), relative):
            return folder, _binary(source, manifest)
    return source, None


def read_crate(root: Path, binary: str | None = None) -> Crate:
    """Every Rust file below `root` that is a part of the engine and no test."""
    texts: dict[str, str] = {}
    unread: dict[str, str] = {}
    for path in _rust_files(root):
        name = path.relative_to(root).as_posix()
        try:
            if len(texts) == _MOST_FILES:
                raise OSError(0, f"there are more than {_MOST_FILES:,} files")
            texts[name] = content(path, _MOST_BYTES).decode("utf-8")
        except OSError as error:
            unread[name] = error.strerror or str(error)
        except UnicodeDecodeError:
            unread[name] = "it is not UTF-8"
    return Crate(root, binary, texts, unread)


def _rust_files(root: Path) -> Iterator[Path]:
    for folder, inner, names in os.walk(root):
        inner[:] = sorted(name for name in inner if name not in _FOREIGN and name[0] != ".")
        for name in sorted(names):
            if name.endswith(".rs") and name not in ("build.rs", "tests.rs"):
                yield Path(folder, name)


def _manifest(folder: Path) -> Mapping[str, object]:
    path = folder / "Cargo.toml"
    try:
        return tomllib.loads(content(path, 2**20).decode("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise _refused(folder, "has no Cargo.toml") from None
    except (OSError, ValueError) as error:
        raise _refused(folder, f"has a Cargo.toml that cannot be read: {error}") from None


def _names(members: object, relative: str) -> bool:
    patterns = members if isinstance(members, list) else []
    return any(fnmatch(relative, normpath(str(pattern))) for pattern in patterns)


def _binary(source: Path, manifest: Mapping[str, object]) -> str | None:
    """The name of the member's own binary; None where cargo has to tell."""
    package = manifest.get("package")
    bins = manifest.get("bin")
    if isinstance(bins, list) and len(bins) == 1 and isinstance(bins[0], dict):
        return str(bins[0].get("name"))
    main = (source / "src" / "main.rs").is_file() and not bins
    return (
        str(package["name"]) if main and isinstance(package, dict) and "name" in package else None
    )


def _refused(source: Path, found: str) -> InvalidInput:
    remedy = "name the folder that holds the engine's Cargo.toml"
    return InvalidInput(
        [Fault(file=str(source), line=None, name="SOURCE", found=found, remedy=remedy)]
    )
