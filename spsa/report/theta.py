"""Which theta: where the rule ended, its average, or what all games together support."""

from enum import StrEnum
from typing import TYPE_CHECKING

from spsa.errors import NothingToDo
from spsa.text import plural

if TYPE_CHECKING:  # a command line that only lists the words needs no database
    from spsa.db.tables import Run, Values


class ThetaChoice(StrEnum):
    """The thetas that can be asked for; all of a run that goes on are those so far."""

    FINAL = "final"
    AVERAGED = "averaged"
    SUPPORTED = "supported"


def chosen_theta(run: "Run", which: ThetaChoice) -> "Values":
    """One of the thetas of a run, every parameter in its own unit.

    Raises:
        NothingToDo: the run has too few results for it yet.
    """
    known = {
        ThetaChoice.FINAL: run.theta,
        ThetaChoice.AVERAGED: run.estimates.averaged,
        ThetaChoice.SUPPORTED: run.estimates.supported,
    }
    values = known[which]
    if values is None:
        raise NothingToDo(
            f"run {run.name} has no {which} theta yet, after {plural(run.applied, 'result')}: "
            f"use --theta {ThetaChoice.FINAL}"
        )
    return values
