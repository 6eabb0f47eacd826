"""Writes a change as a patch that `git apply` and `patch -p1` accept."""

from collections.abc import Iterator
from difflib import unified_diff


def unified_patch(before: str, after: str, name: str) -> str:
    """A unified diff of the file `name` (relative to the tree); "" when nothing changed."""
    lines = unified_diff(_lines(before), _lines(after), f"a/{name}", f"b/{name}", lineterm="\n")
    return "".join(_marked(lines))


def _lines(text: str) -> list[str]:
    """Lines with their ends. Not splitlines, which also splits at form feeds and the like."""
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _marked(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
