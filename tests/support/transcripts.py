"""Transcripts: commands in a text file beside a test, and what they say, situation by situation.

A situation begins with `== HEADING`. In it `-- FILE` begins the text of a file, which is written,
and `$ COMMAND` is carried out; what it says goes through a shell's command behind ` | `. Below it
stand its stdout, its stderr behind `! `, without click's lines on usage, and its exit code if that
is not 0. `GOLDEN=write` writes what is below the commands anew.
"""

import os
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from unittest.mock import patch

from console import Ask, Said
from golden import compare

from spsa.cli.common import actor

MASKS = {
    r"(\d{4}-)?\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?(\.\d+)?(\+00:00)?": "{time}",
    r"(\d[\d.]*[smhd] )+ago": "{ago}",
    r"left: \d.* an hour": "left: {long}",
    r"\d[\d,]{4,} nodes a second;": "{many} nodes a second;",
    r"\b\d{10}\.[\w-]{30,}": "{session}",
    r"\bspsa_[\w-]{43}\b": "{token}",
    r"\b[0-9a-f]{40}\b": "{hash}",
    r"(?<=\S) {2,}": "  ",
}
"""What a clock or a key decides, and the widths of columns that follow from it."""


@dataclass(frozen=True)
class Transcript:
    """The situations of a file, and what carries out a command."""

    run: Callable[[str], Said]
    file: Path

    def __call__(self, heading: str, **names: object) -> list[Said]:
        """Carry out the commands of a situation; what they say has to be what is below them.

        What is shown as `{name}` is the value of that name, `{here}` the present folder.
        """
        said = list[Said]()
        named = {name: str(value) for name, value in {**names, "here": Path.cwd()}.items()}
        lines = _situations(self.file)[heading]
        self._compare(heading, list(_carried_out(lines, self.run, named, said)))
        return said

    def shows(self, heading: str, text: str) -> None:
        """What is shown in a situation has to be what stands there."""
        self._compare(heading, [_masked(line, {}) for line in text.strip("\n").splitlines()])

    def _compare(self, heading: str, shown: list[str]) -> None:
        found = {**_situations(self.file), heading: shown}
        text = "\n".join("\n".join([f"== {one}", *lines, ""]) for one, lines in found.items())
        compare(self.file, text)

    def refused(self, heading: str, **names: object) -> None:
        """The same, of commands that fail, print nothing and leave all files as they were."""
        before = _files()
        for said in self(heading, **names):
            assert said.code and not said.out, said
        assert _files() == before


def typed(ask: Ask, command: str) -> Said:
    """`NAME=VALUE ... spsa-master WORDS` within this process, anything else by a shell."""
    before, program, words = command.partition("spsa-master")
    if not program:
        return _by_shell(command)
    with patch.dict(os.environ, [word.split("=", 1) for word in before.split()]):
        said: Said = ask(*shlex.split(words, comments=True))
        return said


def headings(test: str) -> list[str]:
    """The situations beside a test file, as parameters."""
    return [*_situations(Path(test).with_suffix(".txt"))]


def _files() -> dict[Path, bytes]:
    """What there is below the present folder, and the text of configurations."""
    found = {path: path.suffix == ".toml" for path in Path().rglob("*")}
    return {path: path.read_bytes() if is_text else b"" for path, is_text in found.items()}


def _situations(file: Path) -> dict[str, list[str]]:
    parts = re.split(r"^== (.*)\n", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    texts = (text.rstrip("\n").split("\n") for text in parts[2::2])
    return dict(zip(parts[1::2], texts, strict=True))


def _carried_out(
    lines: list[str], run: Callable[[str], Said], names: Mapping[str, str], all_said: list[Said]
) -> Iterator[str]:
    """The lines of a situation, below each command what it says now."""
    at = 0
    while at < len(lines):
        line = lines[at]
        rest = [*takewhile(lambda one: not one.startswith(("$ ", "-- ")), lines[at + 1 :])]
        at += 1 + len(rest)
        yield line
        if line.startswith("$ "):
            command, _, pipe = _named(line.removeprefix("$ "), names).partition(" | ")
            said = run(command)
            all_said.append(replace(said, out=_by_shell(pipe, said.out).out) if pipe else said)
            yield from _told(all_said[-1], names)
        else:
            yield from rest
        if line.startswith("-- "):
            _write(Path(line.removeprefix("-- ")), "".join(f"{one}\n" for one in rest))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755 if text.startswith("#!") else 0o644)


def _named(command: str, names: Mapping[str, str]) -> str:
    for name, value in names.items():
        command = command.replace(f"{{{name}}}", value)
    return command


def _by_shell(command: str, text: str = "") -> Said:
    done = subprocess.run(command, shell=True, input=text, capture_output=True, text=True)
    return Said(done.returncode, done.stdout, done.stderr)


def _told(said: Said, names: Mapping[str, str]) -> Iterator[str]:
    err = re.sub(r"\AUsage: .*\nTry .*\n\n", "", said.err)
    for line in (*said.out.splitlines(), *(f"! {line}" for line in err.splitlines())):
        yield _masked(line, {**names, "owner": actor()})
    if said.code:
        yield f"exit {said.code}"


def _masked(line: str, names: Mapping[str, str]) -> str:
    for name, value in names.items():
        line = line.replace(value, f"{{{name}}}")
    for pattern, mask in MASKS.items():
        line = re.sub(pattern, mask, line)
    return line.rstrip()
