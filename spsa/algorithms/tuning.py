"""Applies a rule to a space: from theta to the values of two engines, and from games to theta.

Beside theta there is an estimate of the best values: what the games support, which is the belief of
the rule, or of a witness. Pure: the same seed, state and counts give the same numbers, bit for bit.
The master acts on these numbers; `doctor` computes them again and compares.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, ulp
from typing import Any

import numpy as np

from spsa.algorithms import create
from spsa.algorithms.rule import Belief, Outcome, Perturbation, Problem, Rule, State
from spsa.algorithms.state import Carry, restored, saved
from spsa.algorithms.time_controls import TimeControlSums
from spsa.core import Estimates, Update, derived_seed
from spsa.core.params import PlayedValues, Space, Vector
from spsa.core.scoring import Tally


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """The states of a rule and of its witness, and sums over results for several time controls."""

    rule: State
    witness: State
    time_controls: TimeControlSums | None


@dataclass(frozen=True, eq=False)  # no slots: the witness is made once
class Observed:
    """A rule, with a witness if it has no belief of its own.

    A witness is a `mixture` that is told the same outcomes but chooses no points. As far as its
    model is true, it does not matter who chose the points; after a short run of a rule with small
    steps its answer is far closer to the optimum than theta (benches/RESULTS.md). `ask` and `tell`
    are those of the rule.
    """

    rule: Rule
    time_controls: int = 1

    @cached_property
    def witness(self) -> Rule | None:
        return None if self.rule.believes else create("mixture", {}, self.rule.problem)

    def start(self) -> Observation:
        several, size = self.time_controls, self.rule.problem.start.shape[-1]
        return Observation(
            self.rule.start(),
            self.witness and self.witness.start(),
            TimeControlSums.nothing(several, size) if several > 1 else None,
        )

    def theta(self, state: Observation) -> Vector:
        return self.rule.theta(state.rule)

    def ask(self, state: Observation, k: int, rng: np.random.Generator) -> Perturbation:
        return self.rule.ask(state.rule, k, rng)

    def tell(self, state: Observation, outcome: Outcome) -> Observation:
        witness = self.witness and self.witness.tell(state.witness, outcome)
        return replace(state, rule=self.rule.tell(state.rule, outcome), witness=witness)

    def forked(self, state: Observation, carry: Carry) -> Observation:
        """What this rule knew on another problem, as the start of a run on this one."""
        return replace(
            self.start(),
            rule=self.rule.carried(state.rule, carry),
            witness=self.witness and self.witness.carried(state.witness, carry),
        )

    def supported(self, state: Observation) -> Belief:
        """The optimum that all games together suggest."""
        if self.witness is None:
            return self.rule.belief(state.rule)
        return self.witness.belief(state.witness)

    def dump(self, state: Observation) -> dict[str, Any]:
        """The state as JSON values, from which `load` restores it to the bit."""
        return saved(state)

    def load(self, data: Mapping[str, Any]) -> Observation:
        """The state that `dump` wrote. Raises UnusableState for anything else."""
        state: Observation = restored(self.rule.name, data, self.start())
        return state


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """The values that iteration k plays, in the units of params.toml, by parameter name."""

    k: int
    a_k: float
    c_k: float
    base: Mapping[str, float]
    played: PlayedValues
    signs: Mapping[str, int]


@dataclass(frozen=True)  # no slots: the bounds are computed once
class Tuning:
    """One run's space and rule.

    `start_state` is what the rule of a fork knows at the start. `weights` are those of several time
    controls; a single one has none.
    """

    space: Space
    observed: Observed
    start_state: Mapping[str, Any] | None = None
    weights: tuple[float | None, ...] = ()

    def start(self) -> tuple[Mapping[str, float], Mapping[str, Any]]:
        """The start of the run: theta in the units of params.toml, and the rule's state."""
        theta = self._natural(self.space.start())
        return theta, self.start_state or self.observed.dump(self.observed.start())

    def forked(self, before: "Tuning", state: Mapping[str, Any]) -> "Tuning":
        """This tuning with what `before`, which has the same rule, knows in this state."""
        index = {p.name: i for i, p in enumerate(before.space.active)}
        step = {p.name: p.step for p in before.space.active}
        carry = Carry(
            source=np.array([index.get(p.name, -1) for p in self.space.active], dtype=np.intp),
            scale=np.array([step.get(p.name, p.step) / p.step for p in self.space.active]),
            value=self.space.start(),
        )
        known = self.observed.forked(before.observed.load(state), carry)
        return replace(self, start_state=self.observed.dump(known))

    def propose(self, state: Mapping[str, Any], theta: Mapping[str, float], k: int) -> Proposal:
        """The values that iteration k plays if it is opened on this state."""
        known = self.observed.load(state)
        perturbation = self.observed.ask(known, k, self._generator("perturb", k))
        uniform = self._generator("round", k).random(len(self.space.active))
        signs = self._by_name(np.sign(perturbation.offset))
        return Proposal(
            k=k,
            a_k=perturbation.a_k,
            c_k=float(np.ravel(perturbation.c_k)[0]),
            base=dict(theta),
            played=self.space.realise(perturbation.centre, perturbation.offset, uniform),
            signs={name: int(sign) for name, sign in signs.items()},
        )

    def outcome(
        self,
        theta: Mapping[str, float],
        played: PlayedValues,
        tally: Tally,
        *,
        k: int,
        a_k: float,
        c_k: float,
    ) -> Outcome:
        """The result of iteration k.

        Where the sides have no value of a parameter, it is too new, and they were equal. A rule
        multiplies a distance by the difference, so theta may stand for that value.
        """
        plus, minus = (self.space.steps({**theta, **side}) for side in (played.plus, played.minus))
        return Outcome(
            k=k,
            centre=(plus + minus) / 2,
            difference=plus - minus,
            pentanomial=np.array(tally.pentanomial, dtype=np.float64),
            a_k=a_k,
            c_k=c_k,
        )

    def update(
        self,
        state: Mapping[str, Any],
        theta: Mapping[str, float],
        outcome: Outcome,
        by_time_control: Sequence[Tally] = (),
    ) -> Update:
        """The update of `theta` by a result, with its parts by time control if these are several.

        The state and theta contain every result before it; the iteration may have been opened on
        fewer.
        """
        before = self.observed.load(state)
        if (sums := before.time_controls) is not None:
            counts = np.array([one.pentanomial for one in by_time_control], dtype=np.float64)
            outcome = replace(outcome, pentanomial=sums.weighed(counts, self.weights))
            before = replace(before, time_controls=sums.after(counts, outcome.difference))
        after, elo = self.observed.tell(before, outcome), self.observed.rule.counted_elo(outcome)
        delta = self._delta(theta, self.observed.theta(after))
        return Update(
            k=outcome.k,
            state=self.observed.dump(after),
            delta=delta,
            theta={name: theta[name] + delta[name] for name in theta},
            estimates=self._estimates(after),
            gradient=self._by_name(elo * outcome.inverse),
            elo=float(elo[0]),
            bounded=bool(elo[0] != outcome.elo[0]),
        )

    def sums(self, state: Mapping[str, Any]) -> TimeControlSums | None:
        """The sums over results by time control; None for a single time control."""
        return self.observed.load(state).time_controls

    def _estimates(self, state: Observation) -> Estimates:
        belief = self.observed.supported(state)
        return Estimates(
            supported=self._natural(belief.mean), better_step=self._better_steps(belief)
        )

    def _better_steps(self, belief: Belief) -> dict[str, float] | None:
        """The steps that `Belief.too_large` suggests, where they differ from those of the space."""
        if belief.too_large is None:
            return None
        factors = zip(self.space.active, belief.too_large.tolist(), strict=True)
        better = {p: p.nearest_step(p.step / factor) for p, factor in factors if factor != 1.0}
        return {p.name: step for p, step in better.items() if step != p.step} or None

    def _generator(self, what: str, k: int) -> np.random.Generator:
        seed = self.observed.rule.problem.seed
        return np.random.Generator(np.random.PCG64(derived_seed(seed, what, k)))

    def _delta(self, theta: Mapping[str, float], wanted: Vector) -> dict[str, float]:
        """The logged step: theta plus this step is the new theta, and is inside the bounds."""
        goal, bounds = self._natural(wanted), self._bounds
        return {name: _inside(theta[name], goal[name], *bounds[name]) for name in goal}

    def _natural(self, theta: Vector) -> dict[str, float]:
        """Theta in the units of params.toml, inside the bounds of that file.

        A bound that was divided by its step and multiplied again may be off by a rounding error.
        """
        natural, bounds = self.space.natural(self.space.clip(theta)), self._bounds
        return {
            name: min(max(value, bounds[name][0]), bounds[name][1])
            for name, value in natural.items()
        }

    @cached_property
    def _bounds(self) -> dict[str, tuple[float, float]]:
        return {
            p.name: (p.minimum, p.maximum) if p.active else (-inf, inf)
            for p in self.space.parameters
        }

    def _by_name(self, vector: Vector) -> dict[str, float]:
        return {p.name: x for p, x in zip(self.space.active, vector.tolist(), strict=True)}


def tuning(
    space: Space,
    algorithm: str,
    settings: Mapping[str, object],
    *,
    iterations: int,
    pairs: int,
    seed: int,
    weights: tuple[float | None, ...] = (),
) -> Tuning:
    """The named rule on this space, for a run of `iterations` with `pairs` each.

    `weights` are those of its time controls, if these are several.
    """
    problem = problem_of(space, iterations=iterations, pairs=pairs, seed=seed)
    observed = Observed(create(algorithm, settings, problem), len(weights))
    return Tuning(space, observed, weights=weights)


def problem_of(space: Space, *, iterations: int, pairs: int, seed: int = 0) -> Problem:
    """The problem that a rule has to solve on this space."""
    return Problem(
        start=space.start(),
        lower=space.lower,
        upper=space.upper,
        unit=space.unit,
        iterations=iterations,
        pairs=pairs,
        seed=seed,
    )


def _inside(before: float, goal: float, minimum: float, maximum: float) -> float:
    """goal - before, reduced by the few ulps that keep the sum inside the bounds.

    The correction uses the largest of the three ulps: a smaller one might not change the sum.
    """
    delta = goal - before
    one_ulp = max(ulp(before), ulp(goal), ulp(delta))
    while before + delta > maximum:
        delta -= one_ulp
    while before + delta < minimum:
        delta += one_ulp
    return delta
