"""`python -m benches.fleet`: prints a Markdown table of what the slots of a fleet do."""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import click

from benches.fleet.measuring import of_lockstep, of_ours
from benches.fleet.scene import FLEETS, Outcome, Scene
from benches.fleet.server import postgresql
from spsa.db import migrate

HEAD = (
    "| workers | slots | games an iteration | time | lock-step: in games | ours: in games "
    "| iterations in flight | database, of one processor | workers, of one |\n"
    "|---|---|---|---|---|---|---|---|---|"
)

_QUICKER = 4.0  # lock-step hardly asks anything of a database


@contextmanager
def _database(kind: str) -> Iterator[tuple[str, int | None]]:
    """A fresh database with its tables: its URL, and the process of its server."""
    if kind == "postgresql":
        with postgresql() as served:
            yield served
        return
    with tempfile.TemporaryDirectory(prefix="spsa-fleet-") as folder:
        url = f"sqlite:///{folder}/fleet.db"
        migrate.upgrade(url)
        yield url, None


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--workers", type=click.Choice([str(n) for n in FLEETS]), multiple=True)
@click.option("--database", type=click.Choice(["postgresql", "sqlite"]), default="postgresql")
@click.option("--haste", type=click.FloatRange(min=0.1), help="How many times as fast time runs.")
@click.option("--seconds", type=click.FloatRange(min=1), help="Of the fleet's, to be measured.")
@click.option("--warm", type=click.FloatRange(min=0), help="Of the fleet's, before that.")
@click.option("--fixed", type=click.IntRange(min=1), help="So many in flight, not as needed.")
@click.option("--lock-step/--no-lock-step", default=True, help="Measure that design too.")
def main(
    workers: Sequence[str],
    database: str,
    haste: float | None,
    seconds: float | None,
    warm: float | None,
    fixed: int | None,
    lock_step: bool,
) -> None:
    """How much of the slots' time is spent in games, with this design and with lock-step."""
    click.echo(HEAD)
    given = {"haste": haste, "seconds": seconds, "warm": warm}
    chosen = {name: value for name, value in given.items() if value is not None}
    for number in workers or [str(n) for n in FLEETS]:
        scene = replace(FLEETS[int(number)], **chosen)  # type: ignore[arg-type]
        before = None
        if lock_step:
            with _database(database) as (url, server):
                before = of_lockstep(url, replace(scene, haste=_QUICKER * scene.haste), server)
        with _database(database) as (url, server):
            after = of_ours(url, scene, server, fixed or "auto")
        click.echo(line(scene, before, after))


def line(scene: Scene, before: Outcome | None, after: Outcome) -> str:
    """A row of the table."""
    cells = (
        str(scene.workers),
        str(scene.slots),
        str(scene.games),
        f"x {scene.haste:g}",
        "" if before is None else f"{before.playing:.1%}",
        f"{after.playing:.1%}",
        f"{after.in_flight:.1f}",
        "" if after.database is None else f"{after.database:.0%}",
        f"{after.fleet:.0%}",
    )
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
