"""What is special to cargo: configuration, workspaces, binaries, messages, shared dependencies."""

import json
import os
import re
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from spsa.builds.subprocesses import Commands
from spsa.builds.tree import WorkCopy
from spsa.errors import BuildFailed, InvalidInput

SHOWN_LINES = 60
_WAIT_SECONDS = 0.2
_TARGET_FLAGS = re.compile(r"CARGO_TARGET_\w+_RUSTFLAGS")
_OF_TARGET = re.compile(r"^\s*\[target\.[^\n]*\n[^\[]*?^\s*rustflags\b", re.MULTILINE)


def configurations_around(work: Path) -> list[str]:
    """The configuration that a build below `work` reads besides that of the source."""
    home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    folders = {home.resolve(), *(folder / ".cargo" for folder in (work, *work.parents))}
    paths = (folder / name for folder in sorted(folders) for name in ("config", "config.toml"))
    return [p.read_text(encoding="utf-8", errors="replace") for p in paths if p.is_file()]


def refuse_unbuildable(source: Path) -> None:
    """Raise InvalidInput if cargo could not build a copy of this folder alone."""
    if not (source / "Cargo.toml").is_file():
        remedy = "name the directory that holds the engine's Cargo.toml"
        raise InvalidInput.of(source, "source_path", "there is no Cargo.toml here", remedy)
    if (root := workspace_of(source)) is not None:
        raise InvalidInput.of(
            source,
            "source_path",
            f"this crate is a member of the workspace {root}, whose profiles it would lose",
            f'set source_path to "{root}" and name the engine with `package`',
        )


def workspace_of(crate: Path) -> Path | None:
    """The folder of the workspace that cargo finds around this crate."""
    words = ["cargo", "locate-project", "--workspace", "--message-format", "plain"]
    try:
        found = Path(Commands(os.environ).answer(words, crate).strip()).parent
    except BuildFailed:
        return None
    return None if found == crate.resolve() else found


def level_flags(
    level: str, environment: Mapping[str, str], configured: Sequence[str]
) -> tuple[dict[str, str], tuple[str, ...]]:
    """The variables and the words of the command line with which cargo builds for a level.

    Cargo takes flags from the first of these places that has any, and rustc the last processor that
    they name: two variables, `target.*.rustflags`, `build.rustflags`
    (https://doc.rust-lang.org/cargo/reference/config.html#buildrustflags).

    Args:
        configured: the texts of all configuration that cargo reads.
    """
    flag = f"-Ctarget-cpu={level}"
    for name, between in (("CARGO_ENCODED_RUSTFLAGS", "\x1f"), ("RUSTFLAGS", " ")):
        if written := environment.get(name):
            return {name: f"{written}{between}{flag}"}, ()
    if any(map(_TARGET_FLAGS.fullmatch, environment)) or any(map(_OF_TARGET.search, configured)):
        # of the targets that fit, cargo takes the flags of the last name last
        return {}, ("--config", f'target."cfg(unix)".rustflags=["{flag}"]')
    name = "CARGO_BUILD_RUSTFLAGS"
    return {name: f"{environment.get(name, '')} {flag}".strip()}, ()


def binary_of(metadata: str, source: Path, package: str | None, binary: str | None) -> str:
    """The binary to build of those in cargo's metadata.

    Raises InvalidInput with the choices if there is no such package, or the binary is ambiguous.
    """
    packages: list[dict[str, Any]] = json.loads(metadata)["packages"]
    chosen = [each for each in packages if package in (None, each["name"])]
    manifest = source / "Cargo.toml"
    if not chosen:
        remedy = f"name one of: {', '.join(sorted(each['name'] for each in packages))}"
        raise InvalidInput.of(
            manifest, "package", f'the workspace has no package "{package}"', remedy
        )
    targets = (target for each in chosen for target in each["targets"])
    choices = sorted({target["name"] for target in targets if "bin" in target["kind"]})
    if binary is not None and binary in choices:
        return binary
    defaults = {each["default_run"] for each in chosen if each.get("default_run")}
    likely: list[str] = sorted(defaults) if len(defaults) == 1 else choices
    if binary is None and len(likely) == 1:
        return likely[0]
    lacks = f'has no binary "{binary}"' if binary else "has more than one binary"
    found = f"the source {lacks}" if choices else "the source has no binary at all"
    remedy = f"name one of: {', '.join(choices)}" if choices else "name an engine's source"
    raise InvalidInput.of(manifest, "binary", found, remedy)


def complaint(stderr: str) -> str:
    """What cargo and the compiler said, from the first error on."""
    lines = stderr.strip().splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith("error")), 0)
    more = len(lines) - first - SHOWN_LINES
    shown = lines[first : first + SHOWN_LINES]
    return "\n".join([*shown, *([f"... and {more} lines more"] if more > 0 else [])])


def made(stdout: str, binary: str, target: Path) -> tuple[Path, str | None]:
    """The binary that cargo made in its folder `target`, and its triple if not the host's."""
    for line in stdout.splitlines():
        if not line.startswith('{"reason":"compiler-artifact"'):
            continue
        message = json.loads(line)
        of, executable = message["target"], message["executable"]
        if executable and of["name"] == binary and "bin" in of["kind"]:
            # `target/<profile>/x` was made for the host, `target/<triple>/<profile>/x` was not
            parts = Path(executable).resolve().relative_to(target.resolve()).parts
            return Path(executable), parts[0] if len(parts) > 2 else None
    raise BuildFailed(f'cargo succeeded without making "{binary}"')


class SharedDependencies:
    """The work copy that new ones of one run start from."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._first: tuple[WorkCopy, Path] | None = None

    @contextmanager
    def for_build(
        self, work_copy: WorkCopy, target: Path, wait: Callable[[float], None]
    ) -> Iterator[None]:
        """The first build of a run goes alone; each new work copy starts with what it compiled.

        `wait` raises when builds are cancelled.
        """
        if target.exists():
            yield
            return
        while not self._guard.acquire(timeout=_WAIT_SECONDS):
            wait(0)
        try:
            if self._first is None or self._first[0] == work_copy:
                yield
                self._first = work_copy, target
                return
        finally:
            self._guard.release()
        self._take_over(work_copy, target)
        yield

    def _take_over(self, work_copy: WorkCopy, target: Path) -> None:
        """Copy what is compiled, and the files with the dates by which cargo knows them."""
        assert self._first is not None
        first, compiled = self._first
        for folder in sorted(compiled.rglob(".fingerprint")):
            # first, because one that is there vouches for what it names
            _copy(folder, target / folder.relative_to(compiled))
        _copy(compiled, target, ".fingerprint")
        _copy(first.tree, work_copy.tree)


def _copy(source: Path, target: Path, *ignored: str) -> None:
    """Copy a folder, dates included; what is removed during the copy is left out."""
    with suppress(shutil.Error, FileNotFoundError):
        shutil.copytree(
            source,
            target,
            symlinks=True,
            ignore=shutil.ignore_patterns(*ignored),
            dirs_exist_ok=True,
        )
