"""The parameter space. Pure: it reads no file and no clock, and draws no random number."""

from spsa.params.assignment import Elements, assignments, conflicts
from spsa.params.constraint import Constraint, circle, feasible
from spsa.params.location import MOST_ACCESSES, MOST_SCOPES, Access, Location
from spsa.params.parameter import Number, Parameter
from spsa.params.perturbation import Vector
from spsa.params.placement import (
    ArrayKnob,
    ArrayRole,
    Constant,
    Placement,
    TableKnob,
    TableRole,
    target,
)
from spsa.params.snapshot import differences
from spsa.params.space import Played, Space, Values

__all__ = [
    "MOST_ACCESSES",
    "MOST_SCOPES",
    "Access",
    "ArrayKnob",
    "ArrayRole",
    "Constant",
    "Constraint",
    "Elements",
    "Location",
    "Number",
    "Parameter",
    "Placement",
    "Played",
    "Space",
    "TableKnob",
    "TableRole",
    "Values",
    "Vector",
    "assignments",
    "circle",
    "conflicts",
    "differences",
    "feasible",
    "target",
]
