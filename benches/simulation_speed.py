"""How fast simulations are: `python -m benches.simulation_speed [--peer PATH]`.

Simulated games per second of processor time, in one process, for van den Bergh's problem with 1, 4,
16 and 64 parameters; PATH is his simulator (spsa_simul, in C), which is run in turns with ours on
the same problem. That it is the same problem shows in the loss, beside the formula's. Then what a
second process adds, and what the default rule needs for a result with 1,000 parameters.
"""

import re
import resource
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from math import nan, sqrt
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import click
import numpy as np

from benches.papers.constant import ConstantGains
from benches.papers.constant_gains import Goal, Landscape, at_once, cautious, noise_of_game
from benches.papers.process import ConstantGainProcess
from spsa.algorithms import create
from spsa.algorithms.rule import Problem
from spsa.planning.simulated_run import Quadratic, SimulatedGames, SimulatedRun

DRAW_RATE, START_ELO = 0.61, 2.0  # the peer's defaults, as all of `designed`
ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Size:
    """A problem, and how much of it is simulated at a time: about a second each."""

    parameters: int
    replicas: int
    games: int
    peer_runs: int


SIZES = (
    Size(1, 4096, 60_000, 200),
    Size(4, 4096, 40_000, 80),
    Size(16, 2048, 30_000, 20),
    Size(64, 1024, 20_000, 6),
)


@dataclass(frozen=True, slots=True)
class Speed:
    """Million games per second of processor time, and the Elo they left, in standard errors off."""

    games: float
    z: float


def designed(parameters: int) -> ConstantGainProcess:
    """The peer's default problem: 2 Elo lost 100 off the best value, c a sixth of 200."""
    width = np.full(parameters, 200.0)
    landscape = Landscape(
        loss=2.0 / np.square(width / 2), moment=at_once(width / 6), noise=noise_of_game(DRAW_RATE)
    )
    return ConstantGainProcess.of(landscape, cautious(Goal(precision=0.5), landscape).r)


def ours(size: Size, seed: int) -> Speed:
    process = designed(size.parameters)
    gains = ConstantGains(
        loss=process.loss, c=np.sqrt(process.moment), r=process.r, draw_rate=DRAW_RATE
    )
    start = np.sqrt(START_ELO / size.parameters / process.loss)
    rng = np.random.default_rng(seed)
    begun = process_time()
    theta = gains.at_once(np.tile(start, (size.replicas, 1)), size.games, rng)
    seconds = process_time() - begun
    lost, expected = theta**2 @ process.loss, process.losses(start, size.games)
    z = (lost.mean() - expected.mean) / (expected.deviation / sqrt(size.replicas))
    return Speed(size.replicas * size.games / seconds / 1e6, float(z))


def peers(peer: Path, size: Size, seed: int) -> float:
    """Million games per second of the peer's processor time; its last run may be cut off.

    Not a number where it refuses: as it comes it takes 20 parameters (MAX_PARAMS).
    """
    command = [
        str(peer),
        *("--num_params", str(size.parameters)),
        *("--threads", "1"),
        *("--truncate", str(size.peer_runs)),
        *("--seed", str(seed)),
    ]
    begun = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return nan
    seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - begun
    games = int(re.findall(r"num_games *= *(\d+)", done.stdout)[-1])
    runs = int(re.findall(r"sims=(\d+)", done.stdout)[-1])
    return games * runs / seconds / 1e6


def compared(size: Size, peer: Path | None) -> str:
    found, theirs = [], []
    for seed in range(1, ROUNDS + 1):
        found.append(ours(size, seed))
        if peer:
            theirs.append(peers(peer, size, seed))
    speed = median(one.games for one in found)
    z = sum(one.z for one in found) / sqrt(ROUNDS)
    beside = f"{median(theirs):12.1f}{speed / median(theirs):10.1f}" if theirs else ""
    return f"{size.parameters:10d}{speed:12.1f}{z:+10.1f}{beside}"


def together(processes: int) -> float:
    """Million games per second of time, by so many processes."""
    size = SIZES[2]
    with ProcessPoolExecutor(processes) as pool:
        list(pool.map(ours, [SIZES[0]] * processes, range(processes)))  # they have to start first
        begun = perf_counter()
        list(pool.map(ours, [size] * 2 * processes, range(2 * processes)))
        return size.replicas * size.games * 2 * processes / (perf_counter() - begun) / 1e6


def milliseconds_of_a_result(parameters: int, results: int = 200) -> float:
    """Of processor time, asking and playing included, for the default rule."""
    problem = Problem(
        start=np.ones(parameters),
        lower=np.full(parameters, -10.0),
        upper=np.full(parameters, 10.0),
        unit=np.zeros(parameters),
        iterations=results,
        pairs=75,
    )
    engine = Quadratic(optimum=np.zeros(parameters), curvature=np.full(parameters, 0.05))
    simulated_run = SimulatedRun(problem=problem, engine=engine, games=SimulatedGames(DRAW_RATE))
    states = simulated_run.run(create("mixture", {}, problem), np.random.default_rng(1))
    next(states)
    return timed(lambda: sum(1 for _ in states)) * 1000


def timed(work: Callable[[], int]) -> float:
    """Seconds of processor time for each of the things done."""
    begun = process_time()
    done = work()
    return (process_time() - begun) / done


def sizes(wanted: Sequence[int]) -> list[Size]:
    return [size for size in SIZES if not wanted or size.parameters in wanted]


@click.command()
@click.option(
    "--peer",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The binary of spsa_simul, to be measured beside ours.",
)
@click.option("-n", "--parameters", type=int, multiple=True, help="Only so many; may be repeated.")
def main(peer: Path | None, parameters: tuple[int, ...]) -> None:
    """How fast simulations are."""
    beside = f"{'peer':>12}{'ours/peer':>10}" if peer else ""
    click.echo(f"median of {ROUNDS}, million games per second of processor time")
    click.echo(f"{'parameters':>10}{'ours':>12}{'z of loss':>10}{beside}")
    for size in sizes(parameters):
        click.echo(compared(size, peer))
    one, two = together(1), together(2)
    click.echo(
        f"1 process {one:.1f}, 2 processes {two:.1f} million games per second, 16 parameters"
    )
    click.echo(f"mixture, 1000 parameters: {milliseconds_of_a_result(1000):.2f} ms a result")


if __name__ == "__main__":
    main()
