"""The crates that an engine needs are compiled once for both sides and all iterations of a run."""

import re
import shutil
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from spsa.builds.cargo import messages
from spsa.builds.tree import WorkCopy

_STARTED = re.compile(r"^\s*Compiling \S+ v\S+(?: \((?P<place>[^)]*)\))?", re.MULTILINE)
_WAIT_SECONDS = 0.2


class SharedDependencies:
    """The work copy that new ones of one run start from."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._first: tuple[WorkCopy, Path] | None = None
        self._compiled = threading.Event()

    @contextmanager
    def for_build(
        self,
        work_copy: WorkCopy,
        target: Path,
        rewritten: Collection[str],
        wait: Callable[[float], None],
    ) -> Iterator[Callable[[], None]]:
        """Fill a new work copy if another build of the run can; yields what cargo's run calls.

        `rewritten` are the files that hold values, by path in the tree; `wait` sleeps.
        """
        if target.exists():
            yield lambda: None
        elif self._is_first(work_copy, target):
            try:
                yield lambda: self._look(work_copy, rewritten)
            finally:
                self._compiled.set()
        else:
            while not self._compiled.is_set():
                wait(_WAIT_SECONDS)
            self._take_over(work_copy, target)
            yield lambda: None

    def _is_first(self, work_copy: WorkCopy, target: Path) -> bool:
        with self._guard:
            if self._first is not None and self._first[0] != work_copy:
                return False
            self._first = work_copy, target
            return True

    def _look(self, work_copy: WorkCopy, rewritten: Collection[str]) -> None:
        """Let the others go on when the dependencies are compiled."""
        if self._compiled.is_set():
            return
        out, err = (work_copy.home / "log" / f"{name}.log" for name in ("stdout", "stderr"))
        files = [str(work_copy.tree / name) for name in rewritten]
        if dependencies_are_compiled(_text(out), _text(err), files):
            self._compiled.set()

    def _take_over(self, work_copy: WorkCopy, target: Path) -> None:
        """Copy what is compiled, and the files with the dates by which cargo knows them."""
        assert self._first is not None
        first, compiled = self._first
        for folder in sorted(compiled.rglob(".fingerprint")):
            # first, because one that is there vouches for what it names
            _copy(folder, target / folder.relative_to(compiled))
        _copy(compiled, target, ".fingerprint")
        _copy(first.tree, work_copy.tree)


def dependencies_are_compiled(stdout: str, stderr: str, rewritten: list[str]) -> bool:
    """Whether cargo has begun with a crate that holds one of the files, and ended all others."""
    places = [found["place"] or "" for found in _STARTED.finditer(stderr)]
    own = [place for place in places if place and any(f.startswith(f"{place}/") for f in rewritten)]
    return bool(own) and len(_finished(stdout)) >= len(places) - len(own)


def _finished(stdout: str) -> set[str]:
    """The packages with a library; of those with a build script, that alone does not count."""
    return {
        str(message["package_id"])
        for message in messages(stdout)
        if message["reason"] == "compiler-artifact"
        and "custom-build" not in message["target"]["kind"]
    }


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


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
