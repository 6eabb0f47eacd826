"""`spsa-master demo`."""

from pathlib import Path

import click

from spsa.cli.demonstration import demonstrate


def _seeds(_context: click.Context, _option: click.Parameter, text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a list of numbers, as in 1,2,3") from None


@click.command()
@click.option(
    "--seed",
    "--seeds",
    "seeds",
    default="1",
    show_default=True,
    callback=_seeds,
    metavar="N[,N...]",
    help="One demo for each seed; several have their matches pooled at the end.",
)
@click.option("-c", "--concurrency", type=click.IntRange(1, 1000), help="Default: one game a core.")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".tuning/demo"),
    show_default=True,
    help="Where the files of the runs go; what an earlier demo left there is replaced.",
)
@click.option(
    "--minutes",
    type=click.FloatRange(min=0.0, min_open=True, max=1440.0),
    default=4.0,
    show_default=True,
    help="About how long each demo takes: it plays less on a slower machine.",
)
def demo(seeds: tuple[int, ...], concurrency: int | None, folder: Path, minutes: float) -> int:
    """A real tuning run of the bundled engine, start to result.

    Builds, plays and measures as any run does: a master here, a worker as a process of its own, an
    SQLite file between them. It first measures this machine and plays as much as fits into
    --minutes. The same seed and the same number of games give the same games.
    """
    return demonstrate(seeds, concurrency, folder, minutes)
