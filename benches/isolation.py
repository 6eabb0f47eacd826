"""What the sandbox of engines costs: `python -m benches.isolation [ENGINE]`.

Starts of a program that does nothing until it has ended, without the sandbox, with its network
namespace, and with a PID namespace too, in turn; with an engine also matches of it against itself.
Medians, as the machine is never quite idle.
"""

import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import click

from spsa.uci.spawning import EngineLimits, spawn
from spsa.uci.system import Isolation, isolation

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
        kinds = (None, Isolation(found.namespaces), found)
        times = [[_start(EngineLimits(isolation=kind)) for kind in kinds] for _ in range(starts)]
    without, network, own_pids = (1000 * median(column) for column in zip(*times, strict=True))
    click.echo(f"namespaces made and tools tried once in {1000 * made:.1f} ms")
    click.echo(f"a start: {without:.2f} ms without, {network:.2f} ms with no network")
    click.echo(f"and {own_pids:.2f} ms with own PIDs by {''.join(found.wrapper[:1]) or 'nothing'}")
    if engine is not None:
        flags = ((), ("--no-sandbox",))
        runs = [[_match(engine, *each) for each in flags] for _ in range(matches)]
        confined, free = (median(column) for column in zip(*runs, strict=True))
        click.echo(f"a match takes {confined / free:.3f} of the time without")


def _start(sandbox: EngineLimits) -> float:
    """Seconds until the program has ended: bwrap and unshare start it when they run themselves."""
    began = time.perf_counter()
    spawn(NOTHING, sandbox).communicate()
    return time.perf_counter() - began


def _match(engine: Path, *flags: str) -> float:
    """Seconds of a match of an engine against itself."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "worker", str(engine), str(engine), *MATCH, *flags]
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
