"""How much of the Elo to gain `spsa` recovers on synthetic engines, beside other gains.

`pytest tests/algorithms/test_algorithms_recovery.py` prints the table of the rule's docstring.
An engine here loses sum h_i x_i^2 Elo, x_i steps from the best value of parameter i; pairs are two
independent games whose draws get fewer the further apart the two sides are.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pytest
from elo import score_of_elo

from spsa.algorithms import Outcome, Problem, Vector, create
from spsa.core.scoring import ELO_PER_SCORE

pytestmark = pytest.mark.slow

REACH = 8.0  # bounds, in steps from the optimum


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A family of problems: `stake` is Elo in all, or for each parameter where `each`."""

    parameters: int
    iterations: int
    pairs: int
    distance: tuple[float, float]
    stake: tuple[float, float]
    each: bool = False
    replicas: int

    def problem(self, start: Vector, seed: int) -> Problem:
        n = self.parameters
        return Problem(
            start=start,
            lower=np.full(n, -REACH),
            upper=np.full(n, REACH),
            unit=np.zeros(n),
            iterations=self.iterations,
            pairs=self.pairs,
            seed=seed,
        )


CASES = {
    "demo": Case(
        parameters=8, iterations=30, pairs=30, distance=(2, 5), stake=(20, 80), each=True,
        replicas=40,
    ),
    "focused": Case(
        parameters=5, iterations=250, pairs=75, distance=(0.4, 2.5), stake=(5, 30), replicas=10
    ),
    "moderate": Case(
        parameters=10, iterations=500, pairs=75, distance=(0.4, 2.5), stake=(5, 30), replicas=10
    ),
    "comprehensive": Case(
        parameters=20, iterations=1000, pairs=75, distance=(0.4, 2.5), stake=(5, 30), replicas=4
    ),
    "hasty": Case(
        parameters=16, iterations=67, pairs=75, distance=(0.4, 2.5), stake=(3, 30), replicas=40
    ),
}  # fmt: skip

Settings = Callable[[Case], Mapping[str, object]]


def fishtest(case: Case) -> Mapping[str, object]:
    """Gains that make theta move as by R_k c_k W delta with c_end = 1 step and r_end = 0.002."""
    # W = 2 P E / C at equality, so a_k E / (2 c_k) = R_k c_k W needs a_k = R_k c_k^2 4 P / C.
    a_end = 0.002 * 4 * case.pairs / ELO_PER_SCORE
    return {"a": a_end * (1.1 * case.iterations) ** 0.602}


GAINS: Mapping[str, Settings] = {
    "default": lambda _: {},
    "noise_walk = 1.25": lambda _: {"noise_walk": 1.25},
    "noise_walk = 5": lambda _: {"noise_walk": 5},
    "c = 1": lambda _: {"c": 1},
    "r_end = 0.002": fishtest,
    "a = 1, c = 1, A = 50": lambda _: {"a": 1, "c": 1, "A": 50},
}


def recovered(case: Case, settings: Mapping[str, object], seed: int, name: str = "spsa") -> float:
    """The part of the Elo to gain that one run recovers; negative where it loses."""
    rng = np.random.default_rng([seed, case.parameters, case.iterations])
    start, curvature, draws = drawn_problem(case, rng)

    def loss(x: Vector) -> float:
        return float(curvature @ x**2)

    rule = create(name, settings, case.problem(start, seed))
    state = rule.start()
    for k in range(1, case.iterations + 1):
        asked = rule.ask(state, k, rng)
        better = loss(asked.centre - asked.offset) - loss(asked.centre + asked.offset)
        outcome = Outcome(
            k=k,
            centre=asked.centre,
            difference=2 * asked.offset,
            pentanomial=played(better, draws, case.pairs, rng),
            a_k=asked.a_k,
            c_k=asked.c_k,
        )
        state, _ = rule.tell(state, outcome)
    return 1 - loss(rule.theta(state)) / loss(start)


def drawn_problem(case: Case, rng: np.random.Generator) -> tuple[Vector, Vector, float]:
    n = case.parameters
    start = rng.uniform(*case.distance, size=n) * rng.choice([-1.0, 1.0], size=n)
    if case.each:
        curvature = rng.uniform(*case.stake, size=n) / start**2
    else:
        shape = np.exp(0.5 * rng.standard_normal(n))
        curvature = shape * rng.uniform(*case.stake) / (shape @ start**2)
    return start, curvature, rng.uniform(0.3, 0.7)


def played(elo: float, draws: float, pairs: int, rng: np.random.Generator) -> Vector:
    """Pairs of two independent games between sides `elo` apart."""
    score = score_of_elo(elo)
    drawn = draws * 2 * min(score, 1 - score)
    game = np.array([1 - score - drawn / 2, drawn, score - drawn / 2])
    return rng.multinomial(pairs, np.convolve(game, game)).astype(np.float64)


def mean_recovered(case: Case, settings: Settings) -> float:
    runs = [recovered(case, settings(case), seed) for seed in range(case.replicas)]
    return float(np.mean(runs))


@pytest.fixture(scope="module")
def table() -> Mapping[tuple[str, str], float]:
    return {
        (gains, name): mean_recovered(case, settings)
        for gains, settings in GAINS.items()
        for name, case in CASES.items()
    }


def text(table: Mapping[tuple[str, str], float]) -> str:
    rows = ["".join([" " * 24, *(f"{name:>14}" for name in CASES)])]
    for gains in GAINS:
        rows.append("".join([f"{gains:<24}", *(f"{table[gains, name]:14.2f}" for name in CASES)]))
    return "\n".join(rows)


def test_the_derived_gains_recover_most_of_what_is_at_stake(
    table: Mapping[tuple[str, str], float], capsys: pytest.CaptureFixture[str]
) -> None:
    with capsys.disabled():
        sys.stdout.write(f"\n{text(table)}\n")
    least = {"demo": 0.8, "focused": 0.8, "moderate": 0.7, "comprehensive": 0.6, "hasty": 0.3}
    for name, wanted in least.items():
        assert table["default", name] > wanted, text(table)


@pytest.mark.parametrize("gains", [gains for gains in GAINS if gains != "default"])
def test_no_other_gains_are_better_over_all(
    table: Mapping[tuple[str, str], float], gains: str
) -> None:
    def average(row: str) -> float:
        return float(np.mean([table[row, name] for name in CASES]))

    assert average("default") > average(gains), text(table)


def test_gains_made_for_a_loss_of_size_one_are_destructive_on_elo(
    table: Mapping[tuple[str, str], float],
) -> None:
    assert all(table["a = 1, c = 1, A = 50", name] < 0 for name in CASES), text(table)
