"""`python -m benches.database`: measures what it is asked to and prints Markdown."""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median

import click

from benches.database import c_client, looks, loop, pollers, scene, server
from benches.database.loop import Measured
from benches.database.slowness import compiled_shim, passed_on
from benches.database.tables import Cell, cycles, markdown

SCHEMES = ("ours", "bare increment")
CLIENTS = ("pgbench", "the store")
MEMORY = Path("/dev/shm")
_seconds = click.option("--seconds", type=float, default=3.0, show_default=True)
_connections = click.option(
    "-c", "--connections", "counts", type=int, multiple=True, default=(1, 8, 64, 256)
)
_slots = click.option(
    *("-s", "--slots"),
    type=int,
    multiple=True,
    default=(1, 8),
    help="Batches that one call hands in and takes out.",
)
_fsync = click.option(
    "--fsync", "waits", type=float, multiple=True, default=(0.0, 1.0, 5.0), help="Milliseconds."
)
_rounds = click.option("--rounds", type=int, default=2, show_default=True, help="In turns.")
_batches = click.option("--batches", type=int, default=100_000, show_default=True)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """What the database costs."""


@main.command("cycles")
@_seconds
@_connections
@_slots
@_fsync
@_rounds
@_batches
@click.option("--disk", is_flag=True, help="On this machine's disk too, as slow as it is.")
@click.option("--client", "clients", type=click.Choice(CLIENTS), multiple=True, default=CLIENTS)
def postgresql(
    seconds: float,
    counts: Sequence[int],
    slots: Sequence[int],
    waits: Sequence[float],
    rounds: int,
    batches: int,
    disk: bool,
    clients: Sequence[str],
) -> None:
    """Claims and reports on PostgreSQL, by a client in C and by workers' own code."""
    programs = _programs()
    plays: dict[str, Callable[[str, str, int, int, float], Measured]] = {
        "pgbench": partial(c_client.play, programs),
        "the store": loop.play,
    }
    cells: dict[str, list[Cell]] = {client: [] for client in clients}
    for where, folder, wait, shim in _disks(waits, disk):
        with server.running(programs, folder, wait, shim) as (url, _):
            scene.make(server.create(url, "scene"), batches, max(counts))
            for client, count, size in product(clients, counts, slots):
                play = _on_copies(url, plays[client])
                found = _in_turns(play, count, size, seconds, rounds)
                cells[client].append((where, count, size, *found))
    for client, table in cells.items():
        click.echo(f"\nPostgreSQL, {client}\n\n{cycles(table)}")


@main.command()
@_seconds
@_connections
@_slots
@_fsync
@_rounds
@_batches
@click.option("--disk", is_flag=True, help="On this machine's disk too, as slow as it is.")
def sqlite(
    seconds: float,
    counts: Sequence[int],
    slots: Sequence[int],
    waits: Sequence[float],
    rounds: int,
    batches: int,
    disk: bool,
) -> None:
    """Claims and reports on SQLite, by workers' own code."""
    cells: list[Cell] = []
    for where, folder, wait, shim in _disks(waits, disk):
        with tempfile.TemporaryDirectory(dir=folder) as place:
            template = Path(place, "scene.db")
            scene.make(f"sqlite:///{template}", batches, max(counts))

            def play(scheme: str, count: int, size: int, time: float) -> Measured:
                # a folder of its own: a log beside it that is another file's would be believed
                with tempfile.TemporaryDirectory(dir=place) as cell:
                    copy = shutil.copy(template, cell)  # noqa: B023
                    with passed_on(shim, wait):  # noqa: B023
                        return loop.play(f"sqlite:///{copy}", scheme, count, size, time)

            for count, size in product(counts, slots):
                found = _in_turns(play, count, size, seconds, rounds)
                cells.append((where, count, size, *found))
    click.echo(f"\nSQLite, the store\n\n{cycles(cells)}")


@main.command("looks")
@click.option("--lengths", type=int, multiple=True, default=(10, 1_000, 100_000))
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
        scene.make(place, 0, pollers.CONNECTIONS)
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


def _disks(waits: Sequence[float], real: bool) -> Iterator[tuple[str, Path, float, Path | None]]:
    """Name, folder, milliseconds of an fsync, and the library that makes it last so long."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        shim = compiled_shim(Path(folder))
        for wait in waits:
            if wait and shim is None:
                click.echo("no cc here: disks that are slow on purpose are left out", err=True)
            else:
                yield f"fsync {wait:g} ms", MEMORY, wait, shim
        if real:
            yield "this machine's", Path(tempfile.gettempdir()), 0.0, None


Play = Callable[[str, int, int, float], Measured]


def _on_copies(url: str, play: Callable[[str, str, int, int, float], Measured]) -> Play:
    def on_copy(scheme: str, count: int, size: int, seconds: float) -> Measured:
        with server.fresh_copy(url, "scene") as cell:
            return play(cell, scheme, count, size, seconds)

    return on_copy


def _in_turns(
    play: Play, count: int, size: int, seconds: float, rounds: int
) -> tuple[Measured, Measured]:
    """Ours and the bare increment, each the middle of its rounds."""
    found: dict[str, list[Measured]] = {scheme: [] for scheme in SCHEMES}
    for _ in range(rounds):
        for scheme in SCHEMES:
            found[scheme].append(play(scheme, count, size, seconds))
    ours, bare = (_middle(found[scheme]) for scheme in SCHEMES)
    return ours, bare


def _middle(found: list[Measured]) -> Measured:
    return Measured(
        rate=median(one.rate for one in found),
        p50=median(one.p50 for one in found),
        p99=median(one.p99 for one in found),
    )


if __name__ == "__main__":
    main()
