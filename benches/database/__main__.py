"""`python -m benches.database`: measures what it is asked to and prints Markdown."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import click

from benches.database import looks, server
from benches.database.cycles import Way, measured
from spsa.db.migrate import upgrade

MEMORY = Path("/dev/shm")
NEEDED = 10_000 / 60
"""Claims and reports a second of 10,000 slots whose batches take a minute."""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """What the database costs."""


@main.command()
@click.option("-c", "--connections", type=int, multiple=True, default=(1, 16, 64))
@click.option("--seconds", type=float, default=5.0, show_default=True)
@click.option("--rounds", type=int, default=1, show_default=True)
def cycles(connections: Sequence[int], seconds: float, rounds: int) -> None:
    """Claims and reports a second, direct and by HTTP, on both databases."""
    rows = []
    with _databases() as databases:
        for name, url in databases:
            for count in connections:
                rows += [_cycle(name, url, way, count, seconds, rounds) for way in WAYS]
    heads = ["database", "way", "connections", "pairs/s", "p50 ms", "p99 ms"]
    click.echo(_markdown(heads, rows))
    click.echo(
        f"\n10,000 slots with batches of a minute make {NEEDED:.0f} claims and reports a second."
    )


WAYS: Sequence[Way] = ("direct", "HTTP")


def _cycle(
    name: str, url: str, way: Way, connections: int, seconds: float, rounds: int
) -> list[str]:
    found = [measured(url, way, connections, seconds) for _ in range(rounds)]
    best = sorted(found, key=lambda one: one.rate)[len(found) // 2]
    figures = (f"{best.rate:.0f}", f"{best.p50:.1f}", f"{best.p99:.1f}")
    return [name, way, str(connections), *figures]


@contextmanager
def _databases() -> Iterator[list[tuple[str, str]]]:
    """A fresh database of each kind, with its data in memory."""
    with (
        tempfile.TemporaryDirectory(dir=MEMORY) as folder,
        server.running(_programs(), MEMORY) as (url, _),
    ):
        file = f"sqlite:///{folder}/spsa.db"
        found = [("SQLite", file), ("PostgreSQL", server.create(url, f"b{uuid4().hex[:8]}"))]
        for _, each in found:
            upgrade(each)
        yield found


@main.command("looks")
@click.option("--lengths", type=int, multiple=True, default=(100, 10_000, 100_000))
def look(lengths: Sequence[int]) -> None:
    """A master's tick and a `status`, after so many iterations."""
    rows = []
    for length in lengths:
        with _databases() as databases:
            for name, url in databases:
                looks.make(url, length)
                rows.append([name, f"{length:,}", *(f"{ms:.1f}" for ms in looks.measure(url))])
    click.echo(_markdown(["database", "iterations", "tick, ms", "status, ms"], rows))


def _markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---", *(["---:"] * (len(heads) - 1))], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _programs() -> Path:
    found = server.binaries()
    if found is None:
        raise click.ClickException("PostgreSQL's server programs are not installed")
    return found


if __name__ == "__main__":
    main()
