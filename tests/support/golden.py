"""Golden files: what was shown once, and what is compared with it ever after.

`GOLDEN=write` writes the files anew. What changed is then read as any other change of the code.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from difflib import unified_diff
from itertools import groupby
from pathlib import Path

_GIVEN = re.compile(r"(\S*) \| ?(.*)", re.DOTALL)
_SHOWN = "    "


def compare(path: Path, found: str) -> None:
    """What was found has to be the text of the file."""
    if os.environ.get("GOLDEN") == "write":
        path.write_text(found, encoding="utf-8")
    was = path.read_text(encoding="utf-8").splitlines()
    changed = [*unified_diff(was, found.splitlines(), path.name, "what was found", lineterm="")]
    assert not changed, "\n".join(changed)


def compare_cases(path: Path, show: Callable[[dict[str, str]], Iterable[str]]) -> None:
    """Of every case in the file, what `show` says of its files has to be what stands below it.

    Lines `NAME | TEXT` are the files of a case, the lines below with four spaces what is shown of
    them. Any other line is a heading.
    """
    compare(path, "".join(f"{line}\n" for line in _cases(path, show)))


def _cases(path: Path, show: Callable[[dict[str, str]], Iterable[str]]) -> Iterator[str]:
    for kind, each in groupby(path.read_text(encoding="utf-8").split("\n")[:-1], _kind):
        lines = [*each]
        if kind != _SHOWN:
            yield from lines
        if kind == "given":
            for line in [*show(_files(lines))] or ["nothing"]:
                yield f"{_SHOWN}{line}"


def _kind(line: str) -> str:
    if line.startswith(_SHOWN):
        return _SHOWN
    return "given" if _GIVEN.fullmatch(line) else "heading"


def _files(lines: Iterable[str]) -> dict[str, str]:
    files: dict[str, list[str]] = {}
    for line in lines:
        given = _GIVEN.fullmatch(line)
        assert given is not None
        files.setdefault(given[1], []).append(given[2])
    return {name: "\n".join(text) for name, text in files.items()}
