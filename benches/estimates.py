"""`python -m benches.estimates`: which theta of a run is the best one.

Every rule tunes the same synthetic engines with its defaults; printed is the part of the Elo
to gain that its final and supported theta recover, and, where the rule has intervals, how
many of the best values lie within the 95% interval of the supported one.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import click
import numpy as np

from spsa.algorithms import RULES, create
from spsa.algorithms.rule import Belief, Problem
from spsa.algorithms.tuning import Observation, Observed
from spsa.core.params import Vector
from spsa.planning.recovery import EngineAssumptions
from spsa.planning.simulated_run import Quadratic, SimulatedGames, SimulatedRun

_REACH = 8.0  # bounds, in steps from the start


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A kind of run: so many parameters, iterations of so many pairs, and what there is to gain."""

    name: str
    parameters: int
    iterations: int
    pairs: int
    assumptions: EngineAssumptions

    def problem(self, runs: int) -> Problem:
        start = np.zeros((runs, self.parameters))
        return Problem(
            start=start,
            lower=start - _REACH,
            upper=start + _REACH,
            unit=np.zeros(self.parameters),
            iterations=self.iterations,
            pairs=self.pairs,
        )


CASES = (
    Case(
        name="24 x 60 games, 7 parameters 2-5 steps off, 350 Elo",
        parameters=7,
        iterations=24,
        pairs=30,
        assumptions=EngineAssumptions(elo_to_gain=350, draw_rate=0.5, nearest=2.0, farthest=5.0),
    ),
    Case(
        name="67 x 150 games, 16 parameters, 15 Elo",
        parameters=16,
        iterations=67,
        pairs=75,
        assumptions=EngineAssumptions(elo_to_gain=15, draw_rate=0.5),
    ),
    Case(
        name="250 x 150 games, 5 parameters, 15 Elo",
        parameters=5,
        iterations=250,
        pairs=75,
        assumptions=EngineAssumptions(elo_to_gain=15, draw_rate=0.5),
    ),
)


@dataclass(frozen=True, slots=True)
class Found:
    """Mean parts recovered, 0..1, and the part of best values inside the 95% intervals, if any."""

    final: float
    supported: float
    covered: float | None

    def __str__(self) -> str:
        thetas = f"{self.final:.2f} / {self.supported:.2f}"
        return thetas if self.covered is None else f"{thetas}, {self.covered:.0%}"


def found(case: Case, rule: str, runs: int, seed: int) -> Found:
    """What the two thetas of so many runs are worth."""
    problem = case.problem(runs)
    engine = case.assumptions.engines(problem, runs, np.random.default_rng([seed, 0]))
    watched = Observed(create(rule, {}, problem))
    simulated_run = SimulatedRun(
        problem=problem, engine=engine, games=SimulatedGames(case.assumptions.draw_rate)
    )
    states: Iterator[Observation] = simulated_run.run(watched, np.random.default_rng([seed, 1]))
    end = deque(states, maxlen=1).pop()
    supported = watched.supported(end)
    return Found(
        _recovered(engine, problem.start, watched.theta(end)),
        _recovered(engine, problem.start, supported.mean),
        _covered(engine, supported),
    )


def _recovered(engine: Quadratic, start: Vector, theta: Vector) -> float:
    return float((1 - engine.elo(theta) / engine.elo(start)).mean())


def _covered(engine: Quadratic, belief: Belief) -> float | None:
    if belief.deviation is None:
        return None
    return float((np.abs(belief.mean - engine.optimum) < 1.96 * belief.deviation).mean())


@click.command()
@click.option("--runs", type=click.IntRange(min=2), default=300, show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True)
def main(runs: int, seed: int) -> None:
    """Final / supported theta: part recovered, and cover of the 95% intervals."""
    click.echo("| rule | " + " | ".join(case.name for case in CASES) + " |")
    click.echo("|---" * (len(CASES) + 1) + "|")
    for rule in RULES:
        cells = [str(found(case, rule, runs, seed)) for case in CASES]
        click.echo(f"| `{rule}` | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
