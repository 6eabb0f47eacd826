"""The two programs as processes, with an environment that holds nothing by chance."""

import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

import chess.pgn
import click
from engines.faulty import wait_until

from spsa.cli import cli

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
OWN = (
    *("DATABASE_URL", "SPSA_SERVER", "SPSA_TOKEN", "SPSA_CONFIG", "SPSA_NOTIFY_URLS", "SPSA_DEBUG"),
    *("COLUMNS", "NO_COLOR", "FORCE_COLOR"),
)
PATIENCE = 240.0
"""Seconds; what is not done by then on the slowest machine never will be."""

Done = subprocess.CompletedProcess[str]


def environment(**variables: str) -> dict[str, str]:
    usual = {name: value for name, value in os.environ.items() if name not in OWN}
    return {**usual, "PYTHONPATH": str(ROOT), **variables}


def master(*words: object) -> list[str]:
    """The console script's command line, whether or not it is installed."""
    return [sys.executable, "-c", "from spsa.cli import main; main()", *map(str, words)]


def worker(*words: object) -> list[str]:
    return [sys.executable, "-m", "worker", *map(str, words)]


def call(command: Sequence[object], folder: Path, **variables: str) -> Done:
    """Run a program that ends by itself, and hold it to what is true of every one of them."""
    done = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env=environment(**variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    said = done.stdout + done.stderr
    assert "Traceback" not in said and "defect of this program" not in said, said
    assert "Warning" not in said, said
    return done


def compete(*words: object, cwd: Path = ROOT, **variables: str) -> Done:
    """`compete WORDS` until it ends by itself, however it ends."""
    return call(worker(*words), cwd, **variables)


def games_of(pgn: Path) -> list[chess.pgn.Game]:
    """The games of a file that `compete` has written."""
    text = io.StringIO(pgn.read_text())
    return list(iter(lambda: chess.pgn.read_game(text), None))


class Running(subprocess.Popen[bytes]):
    """A program at work, and what it has written so far; it is killed at the end of the test."""

    def __init__(
        self,
        command: Sequence[object],
        folder: Path = ROOT,
        env: Mapping[str, str] | None = None,
        **variables: str,
    ) -> None:
        files = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 - while it runs
        self._out, self._log = files
        super().__init__(
            [str(word) for word in command],
            cwd=folder,
            env=environment(**variables) if env is None else env,
            stdin=subprocess.DEVNULL,
            stdout=self._out,
            stderr=self._log,
        )
        STARTED.append(self)

    @property
    def out(self) -> str:
        return _written(self._out)

    @property
    def log(self) -> str:
        """What it has written to stderr."""
        return _written(self._log)

    def until(self, holds: Callable[[], object]) -> None:
        """Wait until something holds, which it has to before the program ends."""
        wait_until(lambda: bool(holds()) or self.poll() is not None, PATIENCE)
        assert holds(), self.account()

    def ended(self, seconds: float = PATIENCE) -> int:
        """The exit code of a program that ends by itself, without a defect."""
        try:
            self.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"not ended after {seconds:g} s: {self.account()}") from None
        assert "Traceback" not in self.log and "defect" not in self.log, self.log
        return self.returncode

    def account(self) -> str:
        """What it is, whether it runs, and all that it has said."""
        state = "runs" if self.poll() is None else f"exit {self.returncode}"
        return f"{state}: {' '.join(map(str, self.args))}\n{self.out}{self.log}"  # type: ignore[arg-type]


STARTED: list[Running] = []


def end_all() -> None:
    """Kill all that were started and still run."""
    while STARTED:
        with STARTED.pop() as process:
            process.kill()


def _written(file: IO[bytes]) -> str:
    """All of a file, whose position is where the program writes."""
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode()


CONFIG, PARAMS = (
    (FIXTURES / "small" / f"{name}.toml").read_text() for name in ("config", "params")
)
SOURCE = "pub const MARGIN: i32 = 200;\npub const DEPTH: i32 = 3;\n"


def write_project(folder: Path, config: str = CONFIG, params: str = PARAMS) -> None:
    """Both files and an engine's source, complete and right unless told otherwise."""
    (folder / "config.toml").write_text(config)
    (folder / "params.toml").write_text(params)
    source = folder / "engine" / "src"
    source.mkdir(parents=True, exist_ok=True)
    (source / "engine_constants.rs").write_text(SOURCE)
    (folder / "engine" / "Cargo.toml").write_text('[package]\nname = "small"\nversion = "1.0.0"\n')


@dataclass(frozen=True)
class Said:
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """What it printed for a program, which has to be JSON without NaN."""
        assert self.code in (0, 1), self.err
        found: dict[str, Any] = json.loads(self.out, parse_constant=_no_constant)
        return found


def _no_constant(word: str) -> NoReturn:
    raise AssertionError(f"{word} is no JSON")


Ask = Callable[..., Said]
"""`ask("status", "--json")`: `spsa-master` within this process."""


def commands(group: click.Group = cli, *words: str) -> dict[tuple[str, ...], click.Command]:
    """Every command of `spsa-master` that does something, by the words that call it."""
    found: dict[tuple[str, ...], click.Command] = {}
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        path = (*words, name)
        found |= commands(command, *path) if isinstance(command, click.Group) else {path: command}
    return found
