"""What the sandbox of engines costs: `python -m benches.isolation [ENGINE]`.

Starts of a program that does nothing until it has ended, without and with namespaces, in turn; with
an engine also its searches. Medians, as the machine is never quite idle.
"""

import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from statistics import median

import click

from spsa.uci import system
from spsa.uci.engine import EngineSpec, Limit, UciEngine
from spsa.uci.process import StopSignal
from spsa.uci.spawning import EngineLimits, spawn

NOTHING = "/bin/true"
SEARCH = b"position startpos", Limit(b"go nodes 2000\n", 60.0)


@click.command()
@click.argument("engine", required=False, type=click.Path(exists=True, path_type=Path))
@click.option("--starts", default=400, show_default=True)
@click.option("--searches", default=10_000, show_default=True)
def main(engine: Path | None, starts: int, searches: int) -> None:
    """Measure it."""
    began = time.perf_counter()
    found = system.isolation()
    made = time.perf_counter() - began
    if found is None:
        raise click.ClickException("this system gives no namespaces")
    kinds = [EngineLimits(isolation=kind) for kind in (None, found)]
    click.echo(
        f"{found.wrapper[0]} gives {' and '.join(found.kinds)}; tried in {1000 * made:.1f} ms"
    )
    _say("a start", [[_start(kind) for kind in kinds] for _ in range(starts)])
    if engine is not None:
        _say("2,000 nodes", _searches(engine, kinds, searches))


def _say(what: str, times: Sequence[Sequence[float]]) -> None:
    without, sandboxed = (1000 * median(column) for column in zip(*times, strict=True))
    click.echo(f"{what}: {without:.3f} ms without, {sandboxed:.3f} ms in namespaces")


def _start(limits: EngineLimits) -> float:
    """Seconds until the program has ended: bwrap and unshare start it when they run themselves."""
    began = time.perf_counter()
    spawn(NOTHING, limits).communicate()
    return time.perf_counter() - began


def _searches(engine: Path, kinds: Sequence[EngineLimits], times: int) -> list[list[float]]:
    """Seconds of each search, from the question until the answer has been read."""
    spec = EngineSpec(name=engine.name, path=str(engine.resolve()), options={})
    with ExitStack() as stack:
        stop_signal = stack.enter_context(closing(StopSignal()))
        engines = [
            stack.enter_context(closing(UciEngine(spec, stop_signal, kind))) for kind in kinds
        ]
        for running in engines:
            running.complete_handshake(spec)
        return [[running.search(*SEARCH).seconds for running in engines] for _ in range(times)]


if __name__ == "__main__":
    main()
