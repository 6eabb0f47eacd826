"""`make bench-page`: the page of a run in Chromium, and the server's response times, as Markdown.

A run under the default rule, on SQLite and on PostgreSQL. The rows of its iterations are copies of
one, and theta wanders.
"""

import json
import shutil
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from queue import Queue
from statistics import median

import click
import numpy as np
import sqlalchemy as sa
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from benches.database import server
from benches.database.looks import copy_rows
from benches.database.scene import LEASE, TERMS, claimed, register, reported, shell
from spsa.algorithms.tuning import tuning
from spsa.core.parameter import Location, Parameter
from spsa.core.params import Space
from spsa.db import Store
from spsa.db.master_queries import NewIteration, Side, Sides
from spsa.db.migrate import upgrade
from spsa.db.tables import EngineRow, Iteration, Run, Step
from spsa.history.replay import updated
from spsa.master.session import RunSettings, tuning_of
from spsa.server.app import application, listening
from spsa.server.people import People

MEMORY = Path("/dev/shm")
BATCHES = 4
AGAIN = 7
GAMES = 2 * BATCHES
_LONG_AGO = "'2026-01-01 00:00:00.000'"
PATHS = {
    "runs": "/",
    "run": "/run",
    "parameters": "/parameters?sort=steps+moved&order=descending",
    "parameter": "/parameter?name=PARAMETER_7",
    "workers": "/workers",
    "iterations": "/iterations",
    "iteration": "/iteration?number=1",
    "events": "/events",
    "/api/run": "/api/run",
    "/api/history": "/api/history",
    "/api/figures": "/api/figures",
    "/metrics": "/metrics",
}


@dataclass(frozen=True, slots=True)
class Measured:
    """Milliseconds of the first answer of a new server and of the next ones, and kilobytes.

    Those in `cpu` are of a processor.
    """

    first: float
    again: float
    cpu: tuple[float, float]
    size: float


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--iterations", "lengths", type=int, multiple=True, default=(2_000,))
@click.option("--parameters", type=int, default=100, show_default=True)
@click.option("--workers", type=int, default=64, show_default=True)
def main(lengths: Sequence[int], parameters: int, workers: int) -> None:
    """Measure the page of a run in a browser, and every page, on both databases."""
    for kind in ("SQLite", "PostgreSQL"):
        columns, drawn = [], []
        for length in lengths:
            with _database(kind) as url:
                make(url, length, parameters, workers)
                columns.append({name: measured(url, path) for name, path in PATHS.items()})
                drawn.append(f"{length:,} iterations: {seen(url)}")
        click.echo(f"\n{kind}, {parameters} parameters, {workers} workers\n")
        click.echo("\n".join(drawn) + f"\n\n{_markdown(lengths, columns)}")


@contextmanager
def _database(kind: str) -> Iterator[str]:
    with ExitStack() as stack:
        if kind == "SQLite":
            folder = stack.enter_context(tempfile.TemporaryDirectory(dir=MEMORY))
            yield f"sqlite:///{folder}/bench.db"
            return
        programs = server.binaries()
        if programs is None:
            raise click.ClickException("there is no initdb: PostgreSQL is not installed")
        url, _ = stack.enter_context(server.running(programs, MEMORY))
        yield server.create(url, "bench")


def make(url: str, length: int, parameters: int, workers: int) -> None:
    """A run of so many complete iterations, of four batches each, and one that is open."""
    upgrade(url)
    with Store(url, durable=False) as store:
        run = store.create_run(_new_run(_space(parameters), length))
        master = store.acquire_master_lease(run.id, "bench", LEASE)
        register(store, workers)
        store.open_iteration(master, _iteration(run, 1))
        for n in range(1, 1 + BATCHES):
            claim = claimed(store, f"first-{n}", n)
            if claim is not None:
                reported(store, claim)
        oldest = store.tick(master, LEASE).open[0]
        update = updated(tuning_of(run), run.state, run.theta, oldest)
        store.apply(master, oldest.id, run, update)
        _multiply(url, store.run(), length, workers)
        store.open_iteration(master, _iteration(store.run(), length + 1))
    with shell(url) as connection:
        if connection.dialect.name == "postgresql":  # as autovacuum does; SQLite has no statistics
            connection.exec_driver_sql("ANALYZE")


def _space(parameters: int) -> Space:
    return Space(
        tuple(
            Parameter(
                name=f"PARAMETER_{n}",
                value=100.0 + n / 3,
                minimum=0.0,
                maximum=1000.0,
                step=4.0,
                group=f"group {n % 10}",
                location=Location.parse(f"PARAMETER_{n}"),
                option=f"PARAMETER_{n}",
            )
            for n in range(parameters)
        )
    )


def _new_run(space: Space, length: int) -> Run:
    settings = RunSettings(
        rule={},
        planned_iterations=length + 1,
        games_per_iteration=GAMES,
        batch_size=2,
        iterations_in_flight=1,
        max_attempts=3,
        delivery={},
        game_settings=TERMS,
    )
    theta, state = tuning(
        space, "mixture", {}, iterations=length + 1, pairs=GAMES // 2, seed=1
    ).start()
    return Run(
        name="bench",
        seed=1,
        algorithm="mixture",
        settings=settings.to_json(),
        space=space.to_json(),
        game_settings=TERMS,
        source_sha256=None,
        max_iterations=length + 1,
        theta=theta,
        state=state,
    )


def _iteration(run: Run, k: int) -> NewIteration:
    asked = tuning_of(run).propose(run.state, run.theta, k)
    engines = [
        EngineRow(
            sha256=side * 64, build_key=side, target="-", size=1, bench=None, path=f"/srv/{side}"
        )
        for side in "ab"
    ]
    row = Iteration(
        k=k,
        opened_on=k - 1,
        in_flight=1,
        a_k=asked.a_k,
        c_k=asked.c_k,
        game_settings=TERMS,
        target_games=GAMES,
        base_parameters=asked.base,
        plus_parameters=asked.played.plus,
        minus_parameters=asked.played.minus,
        perturbation_signs=asked.signs,
    )
    sides = Sides(Side(engines[0]), Side(engines[1]))
    return NewIteration(row=row, sides=sides, batches=[2] * BATCHES, max_attempts=3)


def _multiply(url: str, run: Run, last: int, workers: int) -> None:
    """Copy iteration 1, its batches and its step; theta wanders."""
    first = "f.iteration_number = 1"
    own = {"iteration_number": "n.k", "k": "n.k", "opened_on": "n.k - 1"}
    batch = {
        "iteration_id": "i.id",
        "claim_id": "t.claim_id || '-' || n.k",
        "worker_id": f"1 + (n.k + t.seq) % {workers}",
        "reported_at": _LONG_AGO,
    }
    step = {"iteration_id": "i.id", "k": "n.k"}
    theta = dict.fromkeys(("theta_before", "delta", "theta_after"), "'{}'")
    with shell(url) as connection:
        done = {"completed_at": _LONG_AGO, "gradient_estimate": "'{}'"}
        copy_rows(connection, "spsa_iteration", own | done, "t.iteration_number = 1", last)
        copy_rows(connection, "spsa_batch", batch, first, last)
        copy_rows(connection, "spsa_step", step | theta, first, last)
        connection.execute(sa.text("UPDATE spsa_run SET applied = :last"), {"last": last})
        _wander(connection, run, last)


def _wander(connection: sa.Connection, run: Run, last: int) -> None:
    noise = np.random.default_rng(1).standard_normal((last, len(run.theta))).cumsum(axis=0)
    for k, moved in enumerate(noise[1:], 2):
        theta = {
            name: float(value + change)
            for (name, value), change in zip(run.theta.items(), moved, strict=True)
        }
        connection.execute(sa.update(Step).where(Step.k == k).values(theta_after=theta))


def measured(url: str, path: str) -> Measured:
    """One answer of a server that keeps nothing yet, and the median of the next ones."""
    with Store(url) as store, _serving(store) as address:
        _asked(f"{address}/static/icon.svg")
        began = time.process_time()
        first, size = _asked(address + path)
        answered = time.process_time()
        again = median(_asked(address + path)[0] for _ in range(AGAIN))
        cpu = (answered - began, (time.process_time() - answered) / AGAIN)
    return Measured(first, again, (1000 * cpu[0], 1000 * cpu[1]), size)


def seen(url: str) -> str:
    """When a browser without a cache shows the page of the run, and all of its figures.

    The server has answered others before. What it reads is kept for some seconds: a person who
    opens the page finds nothing kept, unless another one looks at it.
    """
    times: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    with Store(url) as store, _chromium() as browser:
        for _ in range(1 + AGAIN):
            for is_kept, found in times.items():
                found.append(_look(store, browser, is_kept))
    return "; ".join(
        f"{name}: first paint after {median(paint for paint, _ in times[is_kept][1:]):.0f} ms, "
        f"all figures drawn after {median(drawn for _, drawn in times[is_kept][1:]):.0f} ms"
        for is_kept, name in ((False, "nothing kept"), (True, "kept"))
    )


@contextmanager
def _chromium() -> Iterator[str]:
    """The address of a browser that opens tabs, in which no debugger looks.

    A debugger makes it parse the script of the figures three times more.
    """
    program = shutil.which("chromium")
    if program is None:
        raise click.ClickException("there is no chromium")
    with tempfile.TemporaryDirectory(dir=MEMORY, ignore_cleanup_errors=True) as folder:
        flags = ("--headless", "--no-sandbox", "--no-first-run", "--window-size=1280,800")
        where = (f"--user-data-dir={folder}", "--remote-debugging-port=0")
        with subprocess.Popen([program, *flags, *where], stderr=subprocess.DEVNULL) as browser:
            told = Path(folder, "DevToolsActivePort")
            while not told.exists():
                time.sleep(0.05)
            yield f"http://127.0.0.1:{told.read_text().split()[0]}"
            browser.terminate()


def _look(store: Store, browser: str, is_kept: bool) -> tuple[float, float]:
    """Milliseconds until the first paint and until all figures of a tab are drawn.

    Each look has an address of its own, of which the browser has nothing in its cache.
    """
    told: Queue[tuple[float, float]] = Queue()
    with _serving(store, told) as address:
        if is_kept:
            _asked(f"{address}/run")
            _asked(f"{address}/api/figures")
        opening = urllib.request.Request(f"{browser}/json/new?{address}/run", method="PUT")
        with urllib.request.urlopen(opening, timeout=60) as answer:
            tab = json.load(answer)["id"]
        found = told.get(timeout=60)
        _asked(f"{browser}/json/close/{tab}")
    return found


_WATCH = """
const looking = setInterval(() => {
  const places = [...document.querySelectorAll("[data-figure]")];
  if (!places.every((place) => place.dataset.isDrawn || place.closest("figure").hidden)) return;
  clearInterval(looking);
  const [paint] = performance.getEntriesByName("first-contentful-paint");
  fetch(`/told?paint=${paint.startTime}&drawn=${performance.now()}`);
}, 20);
"""


def _telling(server: Starlette, told: Queue[tuple[float, float]]) -> Starlette:
    """The same server, whose page tells when it was painted and drawn."""
    pages = files("spsa.server").joinpath("static/pages.js").read_text(encoding="utf-8")

    def tell(request: Request) -> Response:
        told.put((float(request.query_params["paint"]), float(request.query_params["drawn"])))
        return Response()

    def script(_request: Request) -> Response:
        return Response(pages + _WATCH, media_type="text/javascript")

    routes = [Route("/told", tell), Route("/static/pages.js", script), Mount("/", server)]
    return Starlette(routes=routes, lifespan=server.router.lifespan_context)


@contextmanager
def _serving(store: Store, told: Queue[tuple[float, float]] | None = None) -> Iterator[str]:
    listener = listening("127.0.0.1", 0)
    server = application(store, People())
    watched = server if told is None else _telling(server, told)
    running = uvicorn.Server(uvicorn.Config(watched, log_level="error"))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        running.should_exit = True
        thread.join()
        listener.close()


def _asked(address: str) -> tuple[float, float]:
    began = time.perf_counter()
    with urllib.request.urlopen(address, timeout=60) as answer:
        content = answer.read()
    return 1000 * (time.perf_counter() - began), len(content) / 1024


def _markdown(lengths: Sequence[int], columns: Sequence[dict[str, Measured]]) -> str:
    heads = [f"{length:,} iterations" for length in lengths]
    lines = [f"| page | KiB | {' | '.join(heads)} |", "|---" * (2 + len(heads)) + "|"]
    for name in PATHS:
        found = [column[name] for column in columns]
        cells = [
            f"{one.first:.0f} ({one.cpu[0]:.0f}), {one.again:.0f} ({one.cpu[1]:.0f})"
            for one in found
        ]
        lines.append(f"| {name} | {columns[-1][name].size:.0f} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
