"""The parameter space. Pure: it reads no file and no clock, and draws no random number."""

from spsa.params.assignment import Elements, assignments, conflicts
from spsa.params.constraint import Constraint, feasible, in_circles
from spsa.params.location import Access, Location
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
    "conflicts",
    "differences",
    "feasible",
    "in_circles",
    "target",
]
