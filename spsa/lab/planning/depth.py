"""How many iterations in flight a run needs, and how many cost nothing."""

from collections.abc import Iterator
from dataclasses import replace

from spsa.algorithms import method
from spsa.lab.planning.plan_warnings import PlanWarning
from spsa.lab.planning.question import Question, depth_without_idling

_DEPTHS = (2, 4, 8)
_FREE = 0.01  # the part of the Elo to gain that depth may cost
_INSIGNIFICANT = 0.03  # the same, if so few simulated runs cannot tell it from 0


def free_depth(question: Question) -> int:
    """The most iterations in flight that cost less than a hundredth of the Elo to gain.

    The simulated engines are easier than many real ones, so `iterations_per_depth` limits it too.
    """
    design = replace(question.design, depth=1, grows=False)
    needed = method(design.algorithm).iterations_per_depth
    alone = question.recovery(design, question.elo_to_gain)
    free = 1
    for depth in _DEPTHS:
        if depth > question.shape.iterations / needed:
            break
        lost, error = alone.better_than(
            question.recovery(replace(design, depth=depth), question.elo_to_gain)
        )
        if lost > max(_FREE, min(2 * error, _INSIGNIFICANT)):
            break
        free = depth
    return free


def busy_depth(question: Question) -> int | None:
    """The fewest in flight that keep every slot busy; None if the time of a game is unknown.

    If the depth follows the fleet, it is that of the `Demand`, which starts builds late.
    """
    demand = question.demand
    if demand is None or question.shape.adapts:
        return None if demand is None else demand.depth
    return depth_without_idling(question.shape, question.fleet, demand.game_seconds)


def depth_warnings(question: Question, free: int, busy: int | None) -> Iterator[PlanWarning]:
    """The warnings about the configured depth."""
    depth = question.shape.depth
    if question.builds_are_slower:
        yield PlanWarning(
            name="games_per_iteration",
            found="its games are played before the next engines are built, at any depth",
            remedy="more games in an iteration, or a delivery without builds, keep slots busy",
        )
    if question.shape.adapts:
        yield from _fleet_warnings(question, busy)
    elif depth > free:
        yield PlanWarning(
            name="iterations_in_flight",
            found=f"{depth} moves theta by outdated results",
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


def _fleet_warnings(question: Question, busy: int | None) -> Iterator[PlanWarning]:
    """The warning about a fleet that is too large for the run."""
    shape, demand = question.shape, question.demand
    if busy is None or demand is None or busy <= shape.depth:
        return
    yield PlanWarning(
        name="games_per_iteration",
        found=f"{demand.slots} slots would need {busy} iterations in flight, and a run of "
        f"{shape.iterations} allows {shape.depth}: slots will wait",
        remedy=demand.remedy(shape.depth),
    )
