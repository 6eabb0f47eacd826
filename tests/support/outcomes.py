"""Problems for rules, and outcomes of what they asked for."""

from collections.abc import Sequence

import numpy as np

from spsa.algorithms.rule import Outcome, Perturbation, Problem, Rule, State
from spsa.core.params import Vector

START = np.array([0.5, -1.25, 3.0, 0.0, 2.0])
N = len(START)


def problem(
    start: Vector = START, *, reach: float = 6.0, iterations: int = 200, pairs: int = 50
) -> Problem:
    """Bounds are `reach` steps from 0 to either side."""
    n = start.shape[-1]
    return Problem(
        start=start,
        lower=np.full(n, -reach),
        upper=np.full(n, reach),
        unit=np.zeros(n),
        iterations=iterations,
        pairs=pairs,
    )


def generator(seed: int = 1) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


def outcome(
    asked: Perturbation,
    pentanomial: Sequence[float] | Vector,
    *,
    k: int = 1,
    centre: Vector | None = None,
    difference: Vector | None = None,
) -> Outcome:
    """What was asked for was played, unless another centre or difference was."""
    return Outcome(
        k=k,
        centre=asked.centre if centre is None else centre,
        difference=2 * asked.offset if difference is None else difference,
        pentanomial=np.array(pentanomial, dtype=np.float64),
        a_k=asked.a_k,
        c_k=asked.c_k,
    )


def told(rule: Rule, *outcomes: Outcome) -> State:
    """The state after these outcomes."""
    state = rule.start()
    for one in outcomes:
        state = rule.tell(state, one)
    return state


def tallies(seed: int, count: int, shape: tuple[int, ...] = (), pairs: int = 50) -> Vector:
    """So many random pentanomials, shape (count, *shape, 5)."""
    rng = generator(seed)
    chances = rng.dirichlet(np.array([1.0, 3.0, 6.0, 3.0, 1.0]), size=(count, *shape))
    return rng.multinomial(pairs, chances).astype(np.float64)


def walked(rule: Rule, results: Vector, seed: int = 1) -> State:
    """The state after these results, one iteration open at a time."""
    rng, state = generator(seed), rule.start()
    for k, pentanomial in enumerate(results, start=1):
        asked = rule.ask(state, k, rng)
        state = rule.tell(state, outcome(asked, pentanomial, k=k))
    return state
