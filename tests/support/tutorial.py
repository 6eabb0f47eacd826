"""`make tutorial`: play what docs/tutorial.md tells, and write the output of its commands into it.

A line of a block that begins with `$ ` is a command; the lines up to the next one are its output.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import tomlkit
from console import environment

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "docs" / "tutorial.md"
_BLOCK = re.compile(r"^```(toml)?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_PROGRAMS = ("spsa-master ", "cat ")
_INIT = "spsa-master init ../my-engine"
_BEFORE = ("spsa-master params show", "spsa-master plan")
_ITERATION = 2
"""Whose lines of the master are shown."""


def text() -> str:
    return TUTORIAL.read_text(encoding="utf-8")


def blocks(language: str = "") -> list[str]:
    return [block for of, block in _BLOCK.findall(text()) if of == language]


def prepare(folder: Path) -> dict[str, str]:
    """The engine of the tutorial, and the two files as its sections 1 to 3 leave them.

    Returns what the commands before the run show.
    """
    cloned, written = blocks()[1], blocks("toml")
    shell(cloned.replace("/path/to/this/checkout", str(ROOT)), folder)
    (folder / "tuning").mkdir()
    said = {_INIT: shell(_INIT, folder / "tuning")}
    (folder / "tuning" / "params.toml").write_text(written[0], encoding="utf-8")
    config = folder / "tuning" / "config.toml"
    document = tomlkit.parse(config.read_text(encoding="utf-8"))
    document["time_control"] = tomlkit.table()
    for name, table in tomlkit.parse(written[1]).items():
        document[name].update(table)  # type: ignore[union-attr]
    config.write_text(tomlkit.dumps(document), encoding="utf-8")
    before = [command for command, _ in transcripts() if command.startswith(_BEFORE)]
    return said | {command: output_of(command, folder) for command in before}


def play(folder: Path) -> None:
    """The run and both of its matches, with a worker on two slots beside the master."""
    worker = subprocess.Popen(
        [sys.executable, "-m", "worker", "--spsa", "-c", "2", "--force"],
        cwd=folder / "tuning",
        env=environment(),
        stderr=subprocess.DEVNULL,
    )
    try:
        (folder / "run.log").write_text(shell("spsa-master run 2>&1", folder / "tuning"))
        shell("spsa-master validate --games 200", folder / "tuning")
    finally:
        worker.terminate()
        worker.wait()


def shell(command: str, folder: Path) -> str:
    """What a command writes to its stdout; `spsa-master` is that of this environment.

    Raises:
        CalledProcessError: it fails.
    """
    programs = f"spsa-master() {{ '{sys.executable}' -m spsa.master \"$@\"; }}\n"
    names = "-c user.name=me -c user.email=me@example.org"
    done = subprocess.run(
        ["bash", "-ec", programs + command.replace("git commit", f"git {names} commit")],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


def transcripts() -> Iterator[tuple[str, str]]:
    """Every command of the tutorial that ends by itself, and what it shows there."""
    for block in blocks():
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            if command.startswith(_PROGRAMS) and command != "spsa-master run":
                yield command, output


def output_of(command: str, folder: Path) -> str:
    """What a command shows in the played folder, without spaces at the ends of lines."""
    found = shell(command, folder / "tuning").rstrip()
    return "".join(f"{line.rstrip()}\n" for line in found.splitlines())


def write(folder: Path, before: Mapping[str, str]) -> None:
    """Replace the output of all commands, and the master's lines about one iteration.

    `before` is what some have shown before the run.
    """
    page = text()
    for command, shown in transcripts():
        now = before.get(command) or output_of(command, folder)
        page = page.replace(f"$ {command}\n{shown}", f"$ {command}\n{now}")
    lines = (folder / "run.log").read_text().splitlines()
    told = "\n".join(one for one in lines if one.startswith(f"iteration {_ITERATION} "))
    page = re.sub(rf"^iteration {_ITERATION} opened.*\n.*$", lambda _: told, page, flags=re.M)
    TUTORIAL.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        said = prepare(Path(place))
        play(Path(place))
        write(Path(place), said)
