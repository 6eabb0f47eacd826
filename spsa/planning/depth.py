"""How many iterations in flight a run needs, and how many it can bear."""

from collections.abc import Iterator
from dataclasses import replace

from spsa.algorithms import method
from spsa.planning.cautions import Caution
from spsa.planning.question import Question

_DEPTHS = (2, 4, 8)
_FREE = 0.01  # of the stake: what depth may cost
_UNSEEN = 0.03  # and what it may cost where so few simulated runs cannot tell it from nothing


def free_depth(question: Question) -> int:
    """The most iterations in flight that cost less than a hundredth of the stake.

    What is simulated here is kinder than many an engine, so that the length of the run has to allow
    for it as well (`iterations_per_depth`).
    """
    design = replace(question.design, depth=1)
    needed = method(design.algorithm).iterations_per_depth
    alone = question.recovery(design, question.stake)
    free = 1
    for depth in _DEPTHS:
        if depth > question.shape.iterations / needed:
            break
        lost, error = alone.better_than(
            question.recovery(replace(design, depth=depth), question.stake)
        )
        if lost > max(_FREE, min(2 * error, _UNSEEN)):
            break
        free = depth
    return free


def of_depth(question: Question, free: int, busy: int | None) -> Iterator[Caution]:
    """What is wrong with the depth of the files."""
    depth = question.shape.depth
    if question.builds_are_slower:
        yield Caution(
            name="games_per_iteration",
            found="its games are played before the next engines are built, whatever is in flight",
            remedy="more games in an iteration, or a delivery without builds, keep slots busy",
        )
    if depth > free:
        yield Caution(
            name="iterations_in_flight",
            found=f"{depth} lets theta move on results that are out of date",
            remedy=f"{free} costs nothing",
        )
    elif not question.builds_are_slower and busy is not None and busy > depth:
        best = min(busy, free)
        yield Caution(
            name="iterations_in_flight",
            found=f"{depth} in flight lets slots wait for builds or for the last games of one",
            remedy=f"{busy} would keep them busy, {free} costs nothing: use {best}"
            if best > depth
            else "more games in an iteration keep them busy",
        )
