"""How much Elo a run has gained, as far as its rule believes to know it.

The mixture of filters holds hypotheses j: a step away from the best value mu_j costs h_j Elo in
each parameter (`spsa.algorithms.mixture`). Under each, theta is better than the start by

    g_j = h_j sum((start - mu_j)^2 - (theta - mu_j)^2)

with the deviation 2 h_j sqrt(sum((theta - start)^2 v_j)). The bank is weighted as for the intervals
of theta, and its deviation is doubled: a single one covers too little where steps are misjudged or
the loss is no parabola (docs/lab-results.md has what it covers by family). Rules that hold no
belief have a mixture as a witness of the same games. The whole path is judged by what is known now.
"""

from dataclasses import dataclass
from math import log

import numpy as np

from spsa.algorithms import Vector
from spsa.algorithms.mixture import INTERVAL, Bank, Mixture
from spsa.algorithms.observing import Observation, Observed
from spsa.db.store import Run
from spsa.errors import UnusableState
from spsa.master.start import tuning_of

_DOUBT = 2.0  # by which the deviation of the model is multiplied


@dataclass(frozen=True, slots=True)
class EstimatedGain:
    """Elo over the start, and one deviation of it, for each point of a path.

    A model's belief and no measurement: the deviation is too small where the model is wrong.
    """

    elo: tuple[float, ...]
    deviation: tuple[float, ...]


def estimated_gain(run: Run, path: Vector) -> EstimatedGain | None:
    """The gain along a path of theta in steps, shape (points, n), the start first.

    None where the rule of the run holds no such belief, or its state cannot be read.
    """
    if run.applied == 0:
        return None
    try:
        rule = tuning_of(run).rule
        found = _filters(rule, rule.load(run.state))
    except UnusableState:
        return None
    if found is None:
        return None
    mixture, bank = found
    return gain_of(bank, mixture.per_step * (200 / log(10)), path)


def gain_of_parameter(run: Run, path: Vector, column: int) -> EstimatedGain | None:
    """The part of `estimated_gain` that one parameter has; the parts of all add up to its Elo."""
    alone = np.tile(path[0], (len(path), 1))
    alone[:, column] = path[:, column]
    return estimated_gain(run, alone)


def _filters(rule: Observed, state: Observation) -> tuple[Mixture, Bank] | None:
    witness = None if state.notes is None else state.notes.witness
    for one, its_state in ((rule.rule, state.rule), (rule.witness, witness)):
        if isinstance(one, Mixture) and isinstance(its_state, Bank):
            return one, its_state
    return None


def gain_of(bank: Bank, elo_per_step: Vector, path: Vector) -> EstimatedGain:
    """`elo_per_step` is h, shape (J, 1)."""
    away = path - path[0]
    squares = np.sum(path[0] ** 2 - path**2, axis=-1)
    gains = elo_per_step * (squares + 2.0 * bank.mean @ away.T)  # (J, points)
    variances = 4.0 * elo_per_step**2 * (bank.variance @ (away**2).T)
    weight = bank.weight(INTERVAL)
    mean = np.sum(weight * gains, axis=0)
    variance = np.sum(weight * (variances + (gains - mean) ** 2), axis=0)
    deviation = _DOUBT * np.sqrt(variance)
    return EstimatedGain(tuple(mean.tolist()), tuple(deviation.tolist()))
