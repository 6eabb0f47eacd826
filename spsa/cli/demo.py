"""`spsa-master demo`: tunes the bundled engine from bad values and measures the gain."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click
import tomlkit

import spsa
from spsa.cli.held_run import held_run, interruptible, tune_and_measure
from spsa.config import load_config
from spsa.config.settings import Config
from spsa.db import Store, migrate
from spsa.db.tables import Run
from spsa.errors import InvalidInput, TuningError
from spsa.files import write_whole
from spsa.live_display import working
from spsa.master.start import checked_space, prepare
from spsa.output import echo
from spsa.report.html import page
from spsa.report.report import report
from spsa.report.screen import rendered
from spsa.report.table import terminal
from spsa.text import plural
from spsa.uci import system

_MARK = ".spsa-demo"
_DRAIN_SECONDS = 20.0


@click.command()
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=1, show_default=True)
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".tuning/demo"),
    show_default=True,
    help="Where the files of the run go; what an earlier demo left there is replaced.",
)
def demo(seed: int, folder: Path) -> int:
    """A real tuning run of the bundled engine, start to result, in about five minutes.

    Builds, plays and measures as any run does: a master here, a worker as a process of its own, an
    SQLite file between them. The same seed gives the same games.
    """
    config = fresh(folder, seed)
    slots = len(system.logical_cores())
    games, iterations = config.games.games_per_iteration, config.spsa.max_iterations
    echo(
        f"tuning the bundled engine: {plural(iterations, 'iteration')} of {games:,} games, "
        f"{slots} at a time, then a match of {config.validation.games:,}; all files are in {folder}"
    )
    migrate.upgrade(config.database.url)
    with (
        interruptible() as stopping,
        Store(config.database.url) as store,
        worker_beside(config, folder, slots),
    ):
        prepared = prepare(config, store, checked_space(config))
        with held_run(store, config, prepared.run, terminal(), stopping) as held:
            if not tune_and_measure(held, prepared):
                return 130
        _show(store, store.run(config.run.name), folder)
    return 0


def fresh(folder: Path, seed: int) -> Config:
    """The configuration of a demo, in a folder without anything of an earlier one.

    Raises InvalidInput: the folder exists and no demo created it.
    """
    if folder.exists() and not (folder / _MARK).exists():
        found = "exists, and no demo created it"
        raise InvalidInput.of(folder, "--folder", found, "name another folder")
    root = _bundled()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / _MARK).touch()
    shutil.copy(root / "params.toml", folder)
    document: Any = tomlkit.parse((root / "config.toml").read_text(encoding="utf-8"))
    document["run"]["seed"] = seed
    document["build"]["source_path"] = str(root / "engine")
    (folder / "config.toml").write_text(tomlkit.dumps(document), encoding="utf-8")
    return load_config(folder / "config.toml", {})


def _bundled() -> Path:
    """The folder of the engine and its files: the checkout, or what came with the wheel."""
    package = Path(spsa.__file__).resolve().parent
    for root in (package.parent, package / "_demo"):
        if (root / "engine" / "Cargo.toml").is_file() and (root / "config.toml").is_file():
            return root
    raise TuningError("the demo's files are missing in this installation: run it in a checkout")


@contextmanager
def worker_beside(config: Config, folder: Path, slots: int, *options: str) -> Iterator[None]:
    """A worker process beside the master, which dies with it; its output goes to worker.log."""
    command = [sys.executable, "-m", "worker", "--spsa", "-c", str(slots), "--force", *options]
    environment = {**os.environ, "DATABASE_URL": config.database.url}
    with (folder / "worker.log").open("wb") as log:
        process = subprocess.Popen(
            command,
            env=environment,
            stdout=log,
            stderr=log,
            cwd=folder,
            preexec_fn=partial(system.bind_engine, os.getpid(), isolated=False),
        )
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(_DRAIN_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _show(store: Store, run: Run, folder: Path) -> None:
    with working("writing the report"):
        found = report(store, run)
        write_whole(folder / "report.html", page(found).encode())
    terminal().print(rendered(found.status))
    called = Path(sys.argv[0])
    program = str(called) if called.name == "spsa-master" else "spsa-master"
    echo(
        "The demo started from bad values: its patch shows what a patch looks like, and may make "
        "the engine weaker than the values in its source.",
        "",
        f"the report, to open in a browser or to send: {folder / 'report.html'}",
        "look further:",
        *(
            f"  {program} {command} --config {folder / 'config.toml'}"
            for command in ("status", f"params diff --run {run.name}", "doctor")
        ),
    )
