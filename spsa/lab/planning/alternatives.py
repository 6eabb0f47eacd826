"""Variants of a run, to find out whether they recover more."""

from collections.abc import Iterator
from dataclasses import replace

from spsa.lab.planning.prospect import RunDesign

_RULES = ("mixture", "spsa", "fishtest")
_CUTS = (4, 2, 0.5, 0.25)
_BUDGETS = (0.5, 2, 4)
_STRETCHES = (0.5, 2.0)


def alternatives(design: RunDesign) -> Iterator[tuple[str, RunDesign]]:
    """The design as it is, and its variants, which differ in one setting; with names."""
    yield "as it is", design
    yield from _rules(design)
    yield from _depths(design)
    yield from _cuts(design)
    yield from _budgets(design)
    for stretch in _STRETCHES:
        yield f"steps x {stretch:g}", replace(design, stretch=stretch)


def _rules(design: RunDesign) -> Iterator[tuple[str, RunDesign]]:
    for rule in _RULES:
        if rule != design.algorithm or design.settings:
            yield f'algorithm = "{rule}"', replace(design, algorithm=rule, settings={})


def _depths(design: RunDesign) -> Iterator[tuple[str, RunDesign]]:
    for depth in {1, 2 * design.depth} - {design.depth}:
        yield f"iterations_in_flight = {depth}", replace(design, depth=depth, grows=False)


def _cuts(design: RunDesign) -> Iterator[tuple[str, RunDesign]]:
    """The same games in fewer or more iterations."""
    problem = design.problem
    for cut in _CUTS:
        pairs, iterations = round(problem.pairs * cut), round(problem.iterations / cut)
        if pairs >= 1 and iterations >= 1:
            cut_problem = replace(problem, pairs=pairs, iterations=iterations)
            yield f"games_per_iteration = {2 * pairs}", replace(design, problem=cut_problem)


def _budgets(design: RunDesign) -> Iterator[tuple[str, RunDesign]]:
    problem = design.problem
    for times in _BUDGETS:
        iterations = round(problem.iterations * times)
        if iterations >= 1:
            longer = replace(problem, iterations=iterations)
            yield f"max_iterations x {times:g}", replace(design, problem=longer)
