"""What it costs that engines have no network: `python -m benches.isolation [ENGINE]`.

Starts of a program that does nothing, with and without, in turn; with an engine also matches of it
against itself. Medians, as the machine is never quite idle.
"""

import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import click

from spsa.uci.spawning import EngineLimits, spawn
from spsa.uci.system import isolation

NOTHING = "/bin/true"
MATCH = ("--games", "60", "--nodes", "2000", "-c", "1")


@click.command()
@click.argument("engine", required=False, type=click.Path(exists=True, path_type=Path))
@click.option("--starts", default=400, show_default=True)
@click.option("--matches", default=5, show_default=True)
def main(engine: Path | None, starts: int, matches: int) -> None:
    """Measure it."""
    began = time.perf_counter()
    with isolation() as found:
        made = time.perf_counter() - began
        if found is None:
            raise click.ClickException("this system gives no namespaces")
        kinds = (EngineLimits(), EngineLimits(isolation=found))
        times = [[_start(kind) for kind in kinds] for _ in range(starts)]
    without, with_them = (median(column) for column in zip(*times, strict=True))
    click.echo(f"namespaces made once in {1000 * made:.1f} ms")
    click.echo(f"a start: {1000 * without:.2f} ms without, {1000 * with_them:.2f} ms with them")
    if engine is not None:
        runs = [[_cpu(engine, *flags) for flags in ((), ("--no-sandbox",))] for _ in range(matches)]
        confined, free = (median(column) for column in zip(*runs, strict=True))
        click.echo(f"CPU of runner and engines: {confined / free:.3f} of that without")


def _start(sandbox: EngineLimits) -> float:
    """Seconds until the program runs."""
    began = time.perf_counter()
    process = spawn(NOTHING, sandbox)
    took = time.perf_counter() - began
    process.communicate()
    return took


def _cpu(engine: Path, *flags: str) -> float:
    """Seconds of processor time of a match of an engine against itself."""
    before = _spent()
    command = [sys.executable, "-m", "worker", str(engine), str(engine), *MATCH, *flags]
    subprocess.run(command, check=True, capture_output=True)
    return _spent() - before


def _spent() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
