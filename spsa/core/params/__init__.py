"""The parameter space: parameters, constraints, and the values that engines get."""

from spsa.core.params.assignment import Elements, assignments, conflicts
from spsa.core.params.constraint import Constraint, circle, feasible
from spsa.core.params.parameter import Number, Parameter
from spsa.core.params.placement import (
    MAX_ACCESSES,
    MAX_SCOPES,
    SOURCE_SUFFIXES,
    Access,
    ArrayKnob,
    ArrayRole,
    Constant,
    Location,
    Placement,
    TableKnob,
    TableRole,
    target,
)
from spsa.core.params.space import PlayedValues, Space, Values, Vector, differences

__all__ = [
    "MAX_ACCESSES",
    "MAX_SCOPES",
    "SOURCE_SUFFIXES",
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
    "PlayedValues",
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
