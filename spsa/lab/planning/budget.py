"""Whether the games of a run are enough for its parameters, and how many would be."""

from collections.abc import Iterator
from dataclasses import replace

from spsa.lab.planning.plan_warnings import PlanWarning
from spsa.lab.planning.prospect import Recovery
from spsa.lab.planning.question import Question

_WORTH_IT = 0.5  # a run that recovers less than half needs another budget
_LARGEST_BUDGET = 64


def budget_warnings(question: Question, usual: Recovery) -> Iterator[PlanWarning]:
    """The warnings about the number of games; `usual` is what they recover."""
    if usual.mean < 0:
        yield PlanWarning(
            name="spsa",
            found=f"with these settings {question.design.algorithm} loses Elo",
            remedy="use its defaults, or make its steps much smaller",
        )
    elif usual.mean < _WORTH_IT:
        yield _too_few(question, usual)


def _too_few(question: Question, usual: Recovery) -> PlanWarning:
    games = question.shape.iterations * question.shape.games
    found = (
        f"{games} games recover {usual.mean:.0%} of {question.elo_to_gain:g} Elo: "
        "too few for so many parameters"
    )
    return PlanWarning(name="max_iterations", found=found, remedy=_remedy(question))


def _remedy(question: Question) -> str:
    """How many games would recover half, and for how many parameters these games are enough."""
    remedies = []
    if (times := _enough_games(question)) is not None:
        remedies.append(f"{question.shape.iterations * times} iterations recover half")
    if (count := _possible_parameters(question)) is not None:
        parameters = "one parameter" if count == 1 else f"about {count} parameters"
        remedies.append(f"these games are enough for {parameters} with as much to gain")
    return ", or ".join(remedies) or f"not even {_LARGEST_BUDGET} times as many would recover half"


def _enough_games(question: Question) -> int | None:
    times = 2
    while times <= _LARGEST_BUDGET:
        problem = question.design.problem
        longer = replace(question.design, problem=replace(problem, pairs=problem.pairs * times))
        if question.recovery(longer, question.elo_to_gain).mean >= _WORTH_IT:
            return times
        times *= 2
    return None


def _possible_parameters(question: Question) -> int | None:
    problem = question.design.problem
    n = problem.start.size // 2
    while n:
        fewer = replace(
            problem,
            start=problem.start[:n],
            lower=problem.lower[:n],
            upper=problem.upper[:n],
            unit=problem.unit[:n],
        )
        design = replace(question.design, problem=fewer)
        if question.recovery(design, question.elo_to_gain).mean >= _WORTH_IT:
            return n
        n //= 2
    return None
