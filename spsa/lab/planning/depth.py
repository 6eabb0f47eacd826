"""How many iterations in flight a run needs, and how many it can bear."""

from collections.abc import Iterator
from dataclasses import replace

from spsa.algorithms import method
from spsa.lab.planning.plan_warnings import PlanWarning
from spsa.lab.planning.question import Question, depth_without_idling

_DEPTHS = (2, 4, 8)
_FREE = 0.01  # of the stake: what depth may cost
_UNSEEN = 0.03  # and what it may cost where so few simulated runs cannot tell it from nothing


def free_depth(question: Question) -> int:
    """The most iterations in flight that cost less than a hundredth of the stake.

    What is simulated here is kinder than many an engine, so that the length of the run has to allow
    for it as well (`iterations_per_depth`).
    """
    design = replace(question.design, depth=1, grows=False)
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


def busy_depth(question: Question) -> int | None:
    """The fewest in flight that keep every slot busy; None where nobody knows how long games are.

    Where the depth follows the fleet, also that takes engines that are built late.
    """
    demand = question.demand
    if demand is None or question.shape.adapts:
        return None if demand is None else demand.depth
    return depth_without_idling(question.shape, question.fleet, demand.game_seconds)


def of_depth(question: Question, free: int, busy: int | None) -> Iterator[PlanWarning]:
    """What is wrong with the depth of the files."""
    depth = question.shape.depth
    if question.builds_are_slower:
        yield PlanWarning(
            name="games_per_iteration",
            found="its games are played before the next engines are built, whatever is in flight",
            remedy="more games in an iteration, or a delivery without builds, keep slots busy",
        )
    if question.shape.adapts:
        yield from _of_bearing(question, busy)
    elif depth > free:
        yield PlanWarning(
            name="iterations_in_flight",
            found=f"{depth} lets theta move on results that are out of date",
            remedy=f"{free} costs nothing",
        )
    elif not question.builds_are_slower and busy is not None and busy > depth:
        best = min(busy, free)
        yield PlanWarning(
            name="iterations_in_flight",
            found=f"{depth} in flight lets slots wait for builds or for the last games of one",
            remedy=f"{busy} would keep them busy, {free} costs nothing: use {best}"
            if best > depth
            else "more games in an iteration keep them busy",
        )


def _of_bearing(question: Question, busy: int | None) -> Iterator[PlanWarning]:
    """A fleet that is too large for the iterations, however many of them are in flight."""
    shape, demand = question.shape, question.demand
    if busy is None or demand is None or busy <= shape.depth:
        return
    yield PlanWarning(
        name="games_per_iteration",
        found=f"{demand.slots} slots would need {busy} iterations in flight, and a run of "
        f"{shape.iterations} bears {shape.depth}: slots will wait",
        remedy=demand.remedy(shape.depth),
    )
