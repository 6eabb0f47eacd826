"""`python -m benches.database`: measures what it is asked to and prints Markdown."""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median

import click

from benches.database import c_client, looks, loop, pollers, scene, server
from benches.database.loop import Measured
from benches.database.slowness import compiled_shim, passed_on
from benches.database.tables import Cell, cycles, markdown

SCHEMES = ("ours", "without triggers", "bare increment")
MEMORY = Path("/dev/shm")


def _common(command: Callable[..., None]) -> Callable[..., None]:
    """The options of both commands that count claims and reports."""
    for option in (
        click.option("--batches", type=int, default=200, show_default=True, help="An iteration."),
        click.option("--iterations", type=int, default=100, show_default=True),
        click.option("--rounds", type=int, default=2, show_default=True, help="In turns."),
        click.option("--fsync", "waits", type=float, multiple=True, default=(0, 1, 5), help="ms."),
        click.option("-c", "--connections", "counts", type=int, multiple=True, default=(1, 8, 64)),
        click.option("--seconds", type=float, default=3.0, show_default=True),
    ):
        command = option(command)
    return command


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """What the database costs."""


@main.command("cycles")
@_common
def postgresql(
    seconds: float,
    counts: Sequence[int],
    waits: Sequence[float],
    rounds: int,
    iterations: int,
    batches: int,
) -> None:
    """Claims and reports on PostgreSQL, by a client in C."""
    programs, cells = _programs(), list[Cell]()
    for where, wait, shim in _disks(waits):
        with server.running(programs, MEMORY, wait, shim) as (url, _):
            scene.make(server.create(url, "scene"), scene.Size(iterations, batches, max(counts)))

            def play(scheme: str, count: int) -> Measured:
                with server.fresh_copy(url, "scene") as cell:
                    return _played(partial(c_client.play, programs), cell, scheme, count, seconds)

            cells += [(where, count, _in_turns(play, count, rounds)) for count in counts]
    click.echo(f"PostgreSQL, pgbench\n\n{cycles(cells)}")


@main.command()
@_common
def sqlite(
    seconds: float,
    counts: Sequence[int],
    waits: Sequence[float],
    rounds: int,
    iterations: int,
    batches: int,
) -> None:
    """Claims and reports on SQLite, by workers' own code in so many processes."""
    cells = list[Cell]()
    for where, wait, shim in _disks(waits):
        with tempfile.TemporaryDirectory(dir=MEMORY) as place, passed_on(shim, wait):
            template = Path(place, "scene.db")
            scene.make(f"sqlite:///{template}", scene.Size(iterations, batches, max(counts)))

            def play(scheme: str, count: int) -> Measured:
                # a folder of its own: a log beside it that is another file's would be believed
                with tempfile.TemporaryDirectory(dir=place) as cell:
                    copy = f"sqlite:///{shutil.copy(template, cell)}"  # noqa: B023
                    return _played(loop.play, copy, scheme, count, seconds)

            cells += [(where, count, _in_turns(play, count, rounds)) for count in counts]
    click.echo(f"SQLite, the store\n\n{cycles(cells)}")


@main.command("looks")
@click.option("--lengths", type=int, multiple=True, default=(100, 10_000, 100_000))
def look(lengths: Sequence[int]) -> None:
    """A master's tick and a `status`, after so many iterations."""
    rows = []
    with server.running(_programs(), MEMORY, 0, None) as (url, _):
        for length in lengths:
            rows.append(_looked("PostgreSQL", server.create(url, f"looks_{length}"), length))
    for length in lengths:
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
            rows.append(_looked("SQLite", f"sqlite:///{folder}/spsa.db", length))
    click.echo(markdown(["database", "iterations", "tick, ms", "status, ms"], rows))


def _looked(database: str, url: str, length: int) -> list[str]:
    looks.make(url, length)
    return [database, f"{length:,}", *(f"{each:.1f}" for each in looks.measure(url))]


@main.command()
@click.option("--workers", type=int, multiple=True, default=(100, 1_000, 10_000))
@click.option("--seconds", type=int, default=10, show_default=True)
def idle(workers: Sequence[int], seconds: int) -> None:
    """Workers that find nothing to do, and ask again."""
    rows = []
    with server.running(_programs(), MEMORY, 0, None) as (url, pid):
        place = server.create(url, "idle")
        scene.make(place, scene.Size(0, 0, pollers.CONNECTIONS))
        for count in workers:
            found = pollers.idle(_programs(), place, pid, count, seconds)
            numbers = (f"{found.polls:.0f}", f"{found.cores:.2f}", f"{found.milliseconds:.2f}")
            rows.append([f"{count:,}", *numbers])
    click.echo(markdown(["workers", "polls/s", "cores of the server", "p50 ms"], rows))


def _programs() -> Path:
    found = server.binaries()
    if found is None:
        raise click.ClickException("no PostgreSQL here: neither initdb in PATH nor installed")
    return found


def _disks(waits: Sequence[float]) -> Iterator[tuple[str, float, Path | None]]:
    """Name, milliseconds of an fsync, and the library that makes it last so long."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        shim = compiled_shim(Path(folder))
        for wait in waits:
            if wait and shim is None:
                click.echo("no cc here: disks that are slow on purpose are left out", err=True)
            else:
                yield f"fsync {wait:g} ms", wait, shim


def _played(
    play: Callable[[str, bool, int, float], Measured],
    url: str,
    scheme: str,
    count: int,
    seconds: float,
) -> Measured:
    if scheme == "without triggers":
        scene.drop_triggers(url)
    return play(url, scheme == "bare increment", count, seconds)


def _in_turns(play: Callable[[str, int], Measured], count: int, rounds: int) -> list[Measured]:
    """Each scheme, the middle of its rounds."""
    found: dict[str, list[Measured]] = {scheme: [] for scheme in SCHEMES}
    for _ in range(rounds):
        for scheme in SCHEMES:
            found[scheme].append(play(scheme, count))
    return [_middle(found[scheme]) for scheme in SCHEMES]


def _middle(found: list[Measured]) -> Measured:
    return Measured(
        cycles=sum(one.cycles for one in found),
        rate=median(one.rate for one in found),
        p50=median(one.p50 for one in found),
        p99=median(one.p99 for one in found),
    )


if __name__ == "__main__":
    main()
