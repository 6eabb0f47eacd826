"""`python -m benches.verdict`: how honest the verdict on a run is, by `benches.papers`.

Every problem is tuned by `mixture`. At an eighth, a quarter, half and all of its games, the Elo
gained by the verdict is compared with the true gain, and so is what it expects of the games that
are left.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace

import click
import numpy as np

from benches.papers.suite import SIZES, ProblemGroup, ProblemSet, Suite
from spsa.algorithms import create
from spsa.algorithms.filter_bank import Bank
from spsa.algorithms.mixture import MAX_MISFIT, Mixture
from spsa.algorithms.rule import Problem, State
from spsa.core.params import Vector
from spsa.master.verdict import WORTHWHILE, misfit, too_many_at_bounds

PAIRS = 75
PARTS = (0.125, 0.25, 0.5, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One problem after part of its games; `more` and `brought` are of those that are left.

    `estimated` is None where the verdict gives no number, `brought` where the run is over.
    """

    family: str
    estimated: float | None
    gain: float
    stops: bool
    more: float
    brought: float | None

    @property
    def is_near(self) -> bool:
        """Whether the gain is half to twice the number."""
        return self.estimated is not None and 0.5 <= self.gain / self.estimated <= 2.0


def judged(suite: Suite, most_results: int) -> Iterator[Judged]:
    """All problems of the suite whose runs have at most so many results."""
    for group in suite.groups(PAIRS):
        if group.iterations <= most_results:
            yield from _of_heat(suite, group)


def _of_heat(suite: Suite, group: ProblemGroup) -> Iterator[Judged]:
    field = suite.problems(group)
    rule = create("mixture", {}, field.problem)
    assert isinstance(rule, Mixture)
    marks = [max(1, round(part * group.iterations)) for part in PARTS]
    states = {
        k: state
        for k, state in enumerate(field.simulated_run(1).run(rule, suite.games(group)), 1)
        if k in marks
    }
    gains = {k: _gain(field, rule.theta(state)) for k, state in states.items()}
    for k in marks:
        for i in range(len(group.families) * group.problems):
            family, left = group.families[i // group.problems], group.iterations - k
            later = float(gains[group.iterations][i] - gains[k][i]) if left else None
            yield _judged(family, *_one(rule, states[k], i), k, float(gains[k][i]), later)


def _gain(field: ProblemSet, theta: Vector) -> Vector:
    engine, start = field.losses.engine, field.losses.start
    gain: Vector = (engine.elo(theta) - engine.elo(start))[:, 0]
    return gain


def _one(rule: Mixture, bank: State, i: int) -> tuple[Mixture, Bank]:
    """The rule and the filters of one problem alone."""
    values = {name: getattr(rule.problem, name)[i] for name in ("start", "lower", "upper", "unit")}
    problem: Problem = replace(rule.problem, **values)
    return replace(rule, problem=problem), _at(bank, i)


def _at(state: State, i: int) -> State:
    """The state of one problem."""
    parts = {one.name: getattr(state, one.name) for one in fields(state)}
    its = {name: _at(part, i) if is_dataclass(part) else part[i] for name, part in parts.items()}
    return replace(state, **its)


def _judged(
    family: str, rule: Mixture, bank: Bank, k: int, gain: float, brought: float | None
) -> Judged:
    problem, theta = rule.problem, rule.theta(bank)
    estimated = float(bank.gained(np.array([problem.start, theta]))[-1])
    is_known = not too_many_at_bounds(theta, problem.lower, problem.upper)
    more = rule.elo_of(bank, float(bank.pairs[0]) * max(1.0, problem.iterations / k - 1.0))
    return Judged(
        family=family,
        estimated=estimated if is_known else None,
        gain=gain,
        stops=is_known and more < WORTHWHILE and misfit(bank, k) <= MAX_MISFIT,
        more=more,
        brought=brought,
    )


def near(verdicts: Sequence[Judged]) -> float:
    """The part of the numbers, 0..1, of which the gain is half to twice."""
    return _part([one for one in verdicts if one.estimated is not None], lambda one: one.is_near)


def _rows(verdicts: Sequence[Judged]) -> Iterator[str]:
    families = dict.fromkeys(one.family for one in verdicts)
    for name, some in (
        ("all", verdicts),
        *((name, [one for one in verdicts if one.family == name]) for name in families),
    ):
        told = [one for one in some if one.estimated is not None]
        estimated, gain = (_mean(told, key) for key in (lambda x: x.estimated, lambda x: x.gain))
        later = [one for one in some if one.brought is not None]
        expected, brought = (_mean(later, key) for key in (lambda x: x.more, lambda x: x.brought))
        stopped = [one for one in later if one.stops]
        yield (
            f"| {name} | {len(some)} | {estimated:.1f} / {gain:.1f} | {near(some):.0%} "
            f"| {1 - len(told) / max(1, len(some)):.1%} "
            f"| {expected:.2f} / {brought:.2f} | {len(stopped) / max(1, len(later)):.0%} "
            f"| {_mean(stopped, lambda x: x.brought):.2f} "
            f"| {_part(stopped, lambda x: (x.brought or 0.0) > 2 * WORTHWHILE):.1%} |"
        )


def _mean(some: Sequence[Judged], of: Callable[[Judged], float | None]) -> float:
    return float(np.mean([of(one) or 0.0 for one in some])) if some else 0.0


def _part(some: Sequence[Judged], is_so: Callable[[Judged], bool]) -> float:
    return sum(map(is_so, some)) / max(1, len(some))


@click.command()
@click.option("--half", type=click.Choice(["choose", "judge"]), default="judge", show_default=True)
@click.option("--seed", "seeds", type=click.IntRange(min=0), multiple=True, default=(1, 2))
@click.option("--most-results", type=click.IntRange(min=1), default=1100, show_default=True)
def main(half: str, seeds: tuple[int, ...], most_results: int) -> None:
    """How near the verdict's number is to the true gain, and what more games brought."""
    verdicts = [
        one
        for seed in seeds
        for one in judged(Suite(seed=seed, half=half, size=SIZES["short"]), most_results)
    ]
    click.echo(
        "| family | verdicts | Elo gained: verdict / true | half to twice the number | no number "
        "| the games that are left: expected / brought | stop | then brought | then over 2 Elo |"
    )
    click.echo("|---" * 9 + "|")
    for row in _rows(verdicts):
        click.echo(row)


if __name__ == "__main__":
    main()
