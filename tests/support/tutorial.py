"""`make tutorial`: play what docs/tutorial.md tells, and write the output of its commands into it.

A line of a block that begins with `$ ` is a command; the lines up to the next one are its output.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import tomlkit
from console import environment

ROOT = Path(__file__).parents[2]
TUTORIAL, ENGINES = (ROOT / "docs" / name for name in ("tutorial.md", "engines.md"))
_BLOCK = re.compile(r"^```(toml)?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_PROGRAMS = ("spsa-master ", "cat ")
_INIT = "spsa-master init ../my-engine"
_BEFORE = ("spsa-master params show", "spsa-master plan")
_WALKS = "\n## 7. "
_HOME = "/home/me"
_ITERATION = 2
"""Whose lines of the master are shown."""


def text() -> str:
    return TUTORIAL.read_text(encoding="utf-8")


def blocks(language: str = "") -> list[str]:
    """Those before the walks."""
    return [block for of, block in _BLOCK.findall(text().partition(_WALKS)[0]) if of == language]


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
    del document["time_control"]
    config.write_text(tomlkit.dumps(document), encoding="utf-8")
    _write(folder / "tuning", written[1])
    shell(_said(r"`(mkdir \S+ && cp .*?)` keeps"), folder / "tuning")
    before = [command for command, _ in transcripts() if command.startswith(_BEFORE)]
    return said | {command: output_of(command, folder) for command in before}


@contextmanager
def playing(folder: Path) -> Iterator[None]:
    """A worker on two slots."""
    words = [sys.executable, "-m", "worker", "--spsa", "-c", "2", "--force"]
    with subprocess.Popen(words, cwd=folder, env=environment(), stderr=subprocess.DEVNULL) as one:
        try:
            yield
        finally:
            one.terminate()


def play(folder: Path) -> None:
    """The run and both of its matches."""
    with playing(folder / "tuning"):
        (folder / "run.log").write_text(shell("spsa-master run 2>&1", folder / "tuning"))
        shell("spsa-master validate --games 200", folder / "tuning")


def walked(folder: Path) -> str:
    """The page, with what the commands of its walks say beside the folder `tuning`.

    What says the same but for what a clock decides stays as it is. The walks that have servers and
    machines of their own, at the end, are played by the tests of these.
    """
    page, walks = text(), folder / "walks"
    first, *sections = page.partition(_WALKS)[2].partition("\n### Send")[0].split("\n### ")
    (_, committed), (_, keys) = _BLOCK.findall(first)
    shell('git -C ../my-engine apply "$PWD/tuned.patch"', folder / "tuning")
    shell(committed, folder / "tuning")
    begin = _said(r"walk begins with `(cp .*?)`")
    (program,) = re.findall(r"```python\n(.*?)```", ENGINES.read_text(encoding="utf-8"), re.S)
    (walks / "net").mkdir()
    (walks / "net" / "squares.py").write_text(program)
    with playing(walks):
        for section in sections:
            shell(begin, walks)
            _write(walks, keys)
            for language, block in _BLOCK.findall(section):
                here = block.replace(_HOME, str(folder))
                if language:
                    _write(walks, here)
                for part in re.split(r"^\$ ", here, flags=re.MULTILINE)[1:]:
                    command, _, shown = part.partition("\n")
                    now = output_of(command, folder, "walks")
                    if _masked(command, shown) != _masked(command, now):
                        told = f"{command}\n{now}".replace(str(folder), _HOME)
                        page = page.replace(part.replace(str(folder), _HOME), told)
    return page


def _said(pattern: str) -> str:
    """A command within a sentence of the page."""
    return re.findall(pattern, text())[0]


def _write(folder: Path, block: str) -> None:
    """The file that a block names, or its tables in config.toml."""
    if named := re.match(r"# (\S+\.toml)\n", block):
        (folder / named[1]).write_text(block, encoding="utf-8")
        return
    config = folder / "config.toml"
    document = tomlkit.parse(config.read_text(encoding="utf-8"))
    for name, table in tomlkit.parse(block).unwrap().items():
        if isinstance(table, dict) and isinstance(had := document.get(name), dict):
            had.update(table)
        else:
            document[name] = table
    config.write_text(tomlkit.dumps(document), encoding="utf-8")


def _masked(command: str, said: str) -> list[str]:
    """Its words, without hashes and seconds; where a clock ends a match, without figures."""
    figures = r"[+-]?\d[\d.,]*" if "--sprt" in command else r"(?<=\d% ) *[\d.]+"
    return re.sub(rf"\b[0-9a-f]{{10}}\b|{figures}", "#", said).split()


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


def output_of(command: str, folder: Path, place: str = "tuning") -> str:
    """What a command shows in a played folder, without spaces at the ends of lines."""
    found = shell(command, folder / place).rstrip()
    return "".join(f"{line.rstrip()}\n" for line in found.splitlines())


def write(folder: Path, before: Mapping[str, str]) -> None:
    """Replace the output of all commands, and the master's lines about one iteration.

    `before` is what some have shown before the run.
    """
    page = text()
    for command, shown in transcripts():
        now = before.get(command) or output_of(command, folder).replace(str(folder), _HOME)
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
        TUTORIAL.write_text(walked(Path(place)), encoding="utf-8")
