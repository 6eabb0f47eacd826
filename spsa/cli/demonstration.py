"""The demo: a run that tunes the bundled engine from bad values and measures the gain."""

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomlkit
from rich.console import Console
from rich.table import Table

import spsa
from spsa.builds.sources import element, parse
from spsa.cli.held_run import (
    HeldRun,
    held_run,
    interruptible,
    play_match,
    tune,
    tuned_against_start,
)
from spsa.cli.measuring import chosen_size, write_size
from spsa.cli.trial import trial
from spsa.config import Config, load_config, load_space, read_sources
from spsa.core.params import Constant, Space
from spsa.core.scoring import Tally
from spsa.db import Store, migrate
from spsa.db.tables import Iteration, Run
from spsa.errors import Fault, InvalidInput, TuningError
from spsa.files import write_whole
from spsa.live_display import working
from spsa.master.delivery_setup import source_of
from spsa.master.new_run import Prepared
from spsa.master.start import checked_space, prepare
from spsa.report.drawing import Kind
from spsa.report.export_html import WITHOUT_PICTURES, page
from spsa.report.export_json import report
from spsa.report.parameters import parameters
from spsa.report.pictures import can_draw, chosen, drawn
from spsa.report.runs import duration
from spsa.report.text import elo_text, number, score, terminal
from spsa.uci.system import logical_cores

MARK = ".spsa-demo"
DRAIN_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Bundle:
    """The files that the demo starts from."""

    config: Path
    params: Path
    engine: Path


@dataclass(frozen=True, slots=True)
class Result:
    """What a demo ends with; `own` are the values in the engine's source."""

    run: Run
    match: Iteration
    own: Mapping[str, float]
    seconds: float


def demonstrate(seeds: Sequence[int], concurrency: int | None, folder: Path, minutes: float) -> int:
    """Run a demo of about so many minutes for each seed and show its result; the exit code."""
    console = terminal()
    bundle = bundled()
    slots = concurrency or len(logical_cores())
    results: list[Result] = []
    with interruptible() as stopping:
        for seed in seeds:
            place = fresh(folder / f"seed-{seed}", bundle, seed)
            began = time.monotonic()
            _fit(place, slots, console, stopping, began + 60 * minutes)
            result = _run(place, slots, console, stopping, began)
            if result is None:
                return 130
            _show(result, place, console)
            leave_report(place, result.run.name, console)
            results.append(result)
    if len(results) > 1:
        pooled = sum((result.match.tally for result in results), Tally())
        console.print(f"\n{len(results)} seeds pooled, tuned against start: {score(pooled)}")
    return 0


def bundled() -> Bundle:
    """The checkout's own files, or those that came with the wheel."""
    package = Path(spsa.__file__).resolve().parent
    for root in (package.parent, package / "_demo"):
        bundle = Bundle(root / "config.toml", root / "params.toml", root / "engine")
        if (bundle.engine / "Cargo.toml").is_file() and bundle.config.is_file():
            return bundle
    raise TuningError("the demo's files are missing in this installation: run it in a checkout")


def fresh(folder: Path, bundle: Bundle, seed: int) -> Path:
    """A folder with config.toml and params.toml for the demo, and nothing of an earlier one.

    Raises:
        InvalidInput: the folder exists and no demo created it.
    """
    if folder.exists() and not (folder / MARK).exists():
        found, remedy = "exists, and no demo created it", "name another folder"
        raise InvalidInput(
            [Fault(file=str(folder), line=None, name="--folder", found=found, remedy=remedy)]
        )
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / MARK).touch()
    shutil.copy(bundle.params, folder / "params.toml")
    (folder / "config.toml").write_text(_configured(bundle, seed), encoding="utf-8")
    return folder


def _configured(bundle: Bundle, seed: int) -> str:
    document: Any = tomlkit.parse(bundle.config.read_text(encoding="utf-8"))
    document["run"]["seed"] = seed
    document["build"]["source_path"] = str(bundle.engine)
    return tomlkit.dumps(document)


def _fit(folder: Path, slots: int, console: Console, stopping: threading.Event, end: float) -> None:
    """Write into config.toml the size that ends at about `end`, a time of the monotonic clock."""
    config = load_config(folder / "config.toml", {})
    console.print("measuring how fast this machine builds and plays")
    with working("building engines and playing a few games"):
        speed = trial(config, checked_space(config), slots, stopping, rounds=2, games_a_slot=4)
    left = end - time.monotonic()
    write_size(config.path, chosen_size(speed, slots, config.games.batch_size, left))
    console.print(
        f"two engines take {speed.builds:.1f} s to build, a game takes {speed.game:.2f} s"
    )


def _run(
    folder: Path, slots: int, console: Console, stopping: threading.Event, began: float
) -> Result | None:
    """One demo; None when it was interrupted."""
    config = load_config(folder / "config.toml", {})
    own = own_values(config, checked_space(config))
    _introduce(config, folder, slots, console)
    migrate.upgrade(config.database.url)
    with Store(config.database.url) as store, worker_beside(config, folder, slots):
        prepared = prepare(config, store)
        with held_run(store, config, prepared.run, console, stopping) as held:
            run = _tuned(held, prepared)
            match = None if run is None else _measured(held, run)
    if run is None or match is None:
        return None
    return Result(run, match, own, time.monotonic() - began)


def _tuned(held: HeldRun, prepared: Prepared) -> Run | None:
    if tune(held, prepared) is None:
        return None
    return held.store.run(prepared.run.name)


def _measured(held: HeldRun, run: Run) -> Iteration | None:
    games = held.config.validation.games
    held.console.print(f"tuned; now {games} games of the tuned values against the start")
    return play_match(held, run, tuned_against_start(run), games, run.game_settings)


@contextmanager
def worker_beside(config: Config, folder: Path, slots: int, *options: str) -> Iterator[None]:
    """A worker process beside the master; its output goes to worker.log."""
    command = [sys.executable, "-m", "worker", "--spsa", "-c", str(slots), "--force", *options]
    environment = {**os.environ, "DATABASE_URL": config.database.url}
    with (folder / "worker.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=folder)
        try:
            yield
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(DRAIN_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def own_values(config: Config, space: Space) -> dict[str, float]:
    """The values in the engine's source of the parameters that are single numbers."""
    constants = config.build.constants_file
    texts = read_sources(space, source_of(config), constants)
    files = {name: parse(text, name) for name, text in texts.items()}
    return {
        p.name: element(files[p.place.location.file or constants], p.place.location).number
        / (p.scale or 1)
        for p in space.parameters
        if isinstance(p.place, Constant)
    }


def _introduce(config: Config, folder: Path, slots: int, console: Console) -> None:
    each, iterations = config.games.games_per_iteration, config.spsa.max_iterations
    names = ", ".join(p.name for p in load_space(config.run.params).active)
    console.print(
        f"tuning {names}\n"
        f"{iterations} iterations of {each} games, {iterations * each} in all, "
        f"{slots} at a time, seed {config.run.seed}; all files are in {folder}"
    )


def _show(result: Result, folder: Path, console: Console) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("parameter")
    for heading in ("start", "tuned", "steps moved", "in the engine's source"):
        table.add_column(heading, justify="right")
    for p in parameters(result.run):
        own = result.own.get(p.name)
        table.add_row(
            p.name,
            number(p.start),
            number(p.played),
            f"{p.steps_moved:+.2f}",
            "" if own is None else number(own),
        )
    console.print(table)
    console.print(f"\ntuned against start, {score(result.match.tally)}")
    console.print(
        f"the tuned engine is {elo_text(result.match.tally)} Elo stronger than the start (95%), "
        f"found in {duration(result.seconds)}\n"
        "The demo started from bad values: its patch shows what a patch looks like, and may make "
        "the engine weaker than the values in its source.\n\nlook further:"
    )
    for command in ("status", f"params diff --run {result.run.name}", "doctor"):
        console.print(f"  {_program()} {command} --config {folder / 'config.toml'}")


def _program() -> str:
    """How this program was called, so that what is shown can be pasted."""
    called = Path(sys.argv[0])
    return str(called) if called.name == "spsa-master" else "spsa-master"


def leave_report(folder: Path, run: str, console: Console) -> None:
    """Write report.html and run.png into the demo's folder, and say where they are."""
    url = load_config(folder / "config.toml", {}).database.url
    with working("writing the report"), Store(url) as store:
        found = report(store, store.run(run))
        write_whole(folder / "report.html", page(found).encode())
    console.print(f"\nthe report, to open in a browser or to send: {folder / 'report.html'}")
    if not can_draw():
        console.print(WITHOUT_PICTURES)
        return
    paths = chosen(found.history.parameters)
    with working("drawing"):
        write_whole(folder / "run.png", drawn(found.history, list(Kind), "png", paths=paths))
    console.print(f"the same run as a picture: {folder / 'run.png'}")
