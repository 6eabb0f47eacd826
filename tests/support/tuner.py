"""A real tuner in a folder: a master and workers as processes, on an engine that is built or told.

`bundled` tunes the engine of this repository, built by cargo; `uci_tuner` one that needs no build,
so that a run starts in a second.
"""

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from asking import Store
from console import FIXTURES, PATIENCE, ROOT, Done, Running, call, master, worker
from engines.faulty import running_with, wait_until

from spsa.db.tables import Run
from spsa.errors import IllegalTransition, TuningError
from spsa.lifecycle import RunStatus

ENDLESS = 1000
"""Iterations that nobody plays; a run that has to last longer than what is done to it has them."""

ENGINE = ROOT / "engine"
OPTIONAL = Path(__file__).parent / "engines" / "optional.py"


@dataclass(slots=True)
class Tuner:
    """The files of a run in `folder`, and the processes started for it."""

    folder: Path
    url: str
    config: str
    params: str
    processes: list[Running] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir(exist_ok=True)
        self.write_files()

    def write_files(self) -> None:
        (self.folder / "config.toml").write_text(self.config)
        (self.folder / "params.toml").write_text(self.params)

    def configure(self, old: str, new: str) -> None:
        """Replace a part of config.toml that is there."""
        assert old in self.config
        self.config = self.config.replace(old, new)
        self.write_files()

    def start(self, *words: object, **variables: str) -> Running:
        """A command of spsa-master that goes on for a while."""
        return self._start(master(*words), **variables)

    def master(self, *words: object, **variables: str) -> Running:
        return self.start("run", *words, **variables)

    def worker(self, *words: object, machine: str = "cache", **variables: str) -> Running:
        """A worker with the caches, and so the secret, of this machine; it ends with the run."""
        caches = self.folder / machine
        usual = ("--spsa", "-c", 1, "--lease", 10, "--engines-cache", caches / "engines")
        variables = {"XDG_CACHE_HOME": str(caches), **variables}
        return self._start(worker(*usual, *(words or ("--once",))), **variables)

    def ask(self, *words: object, code: int = 0) -> Done:
        """A command of spsa-master that ends by itself, with this exit code."""
        done = call(master(*words), self.folder, DATABASE_URL=self.url)
        assert done.returncode == code, done.stdout + done.stderr
        return done

    def invite(self, machine: str) -> str:
        """The token of a machine that is invited now."""
        return self.ask("workers", "invite", machine).stdout.partition("SPSA_TOKEN=")[2].split()[0]

    def ask_json(self, *words: object) -> dict[str, Any]:
        return dict(json.loads(self.ask(*words, "--json").stdout))

    def until(self, holds: Callable[[Store], object]) -> None:
        """Wait until something holds in the database, while any process is left."""

        def look() -> bool:
            with suppress(TuningError), Store(self.url) as store:
                return bool(holds(store))
            return False

        def is_over() -> bool:
            return all(process.poll() is not None for process in self.processes)

        with suppress(TimeoutError):
            wait_until(lambda: look() or is_over(), PATIENCE)
        assert look(), self.account()

    def wait_for_run(self) -> None:
        """Wait until a master moves a run."""
        self.until(lambda store: any(run.status is RunStatus.RUNNING for run in store.runs()))

    def wait_for_work(self) -> None:
        """Wait until a master has opened an iteration."""
        self.until(lambda store: store.open_iterations(store.run(None).id))

    def wait_for_games(self, games: int) -> None:
        self.until(lambda store: store.totals(store.run(None).id).tally.games >= games)

    def outcome(self) -> tuple[Run, list[tuple[Any, ...]]]:
        """Where the run is, and what was played in it, without who did it when."""
        with Store(self.url) as store:
            run = store.run(None)
            rows = store.iterations(run.id)
        sides = ((dict(it.plus_parameters), dict(it.minus_parameters)) for it in rows)
        return run, [(it.k, it.opened_on, it.tally, *s) for it, s in zip(rows, sides, strict=True)]

    def ends(self, *processes: Running, codes: tuple[int, ...] = (0,)) -> None:
        """Wait until these end by themselves, each with one of these exit codes."""
        for process in processes:
            assert process.ended() in codes, self.account()

    def tune(self, *words: object, workers: int = 1) -> None:
        """Start a master and workers, and see all of them end by themselves."""
        master = self.master(*words)
        self.wait_for_run()
        playing = [self.worker() for _ in range(workers)]
        self.ends(master)
        self.ends(*playing, codes=(0, 3))  # a worker to whom the others left nothing says 3

    def validate(self, *words: object) -> None:
        """Play a validation with a worker that stays: both engines are built before it has work."""
        validation, playing = self.start("validate", *words), self.worker("--drain", 0)
        self.ends(validation)
        playing.terminate()
        self.ends(playing)

    def end_soon(self) -> int:
        """Let the run end with little more than it has opened; its iterations then."""
        with Store(self.url) as store:
            run = store.run(None)
            while True:
                last = 3 + max(it.k or 0 for it in store.iterations(run.id))
                with suppress(IllegalTransition):  # more were opened just now: asked again
                    store.extend(run.name, "test", last)
                    return last

    def kill_all(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        self.processes.clear()

    def words(self) -> str:
        """All that the processes have said."""
        return "\n".join(process.out + process.log for process in self.processes)

    def account(self) -> str:
        """Who runs, who has left and how, what everybody said, and how the run stands."""
        said = "\n".join(process.account() for process in self.processes)
        with suppress(TuningError), Store(self.url) as store:
            run = store.run(None)
            return f"{said}\n{run.status} {run.applied} {run.reason} {store.workers()}"
        return said

    def _start(self, command: list[str], **variables: str) -> Running:
        usual = {"DATABASE_URL": self.url, "SPSA_DEBUG": "1"}
        self.processes.append(Running(command, self.folder, **usual | variables))
        return self.processes[-1]


def texts(name: str) -> tuple[str, str]:
    """The two files of a fixture."""
    folder = FIXTURES / name
    return (folder / "config.toml").read_text(), (folder / "params.toml").read_text()


def bundled(folder: Path, url: str, engines: Path) -> Tuner:
    """A run of the engine of this repository, which is published in `engines`."""
    tuner = Tuner(folder, url, *texts("bundled"))
    tuner.configure('source_path = "engine"', f'source_path = "{ENGINE}"')
    tuner.configure('engines_path = "engines"', f'engines_path = "{engines}"')
    return tuner


def uci_tuner(
    folder: Path, url: str, *, name: str = "small", iterations: int = 3, think: float = 0.0
) -> Tuner:
    """A run whose engine thinks for so many seconds a move."""
    tuner = Tuner(folder, url, *texts("uci"))
    tuner.configure('name = "small"', f'name = "{name}"')
    tuner.configure("max_iterations = 3", f"max_iterations = {iterations}")
    script = folder / "optional.py"
    script.write_text(OPTIONAL.read_text())
    before_each_answer(script, f"__import__('time').sleep({think})")
    engine = folder / "optional"
    engine.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}"\n')
    engine.chmod(0o755)
    return tuner


def before_each_answer(script: Path, code: str) -> None:
    """Have the engine of a tuner run this before it answers `go`."""
    answer, text = 'case ["go", *limit]:\n', script.read_text()
    assert answer in text
    lines = "".join(f"{' ' * 16}{line}\n" for line in code.splitlines())
    script.write_text(text.replace(answer, answer + lines))


def engines_of(tuner: Tuner) -> list[int]:
    """The engines of a tuner that run."""
    return running_with(str(tuner.folder / "optional.py"))
