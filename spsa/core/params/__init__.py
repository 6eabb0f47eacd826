"""The parameter space: parameters, constraints, and the values that engines get."""

from spsa.core.params.assignment import Elements, assignments, by_location, conflicts
from spsa.core.params.parameter import Constraint, Number, Parameter, circle, feasible
from spsa.core.params.placement import (
    MAX_ACCESSES,
    MAX_SCOPES,
    SOURCE_SUFFIXES,
    Access,
    Location,
    Place,
    Role,
)
from spsa.core.params.space import PlayedValues, Space, Values, Vector, differences

__all__ = [
    "MAX_ACCESSES",
    "MAX_SCOPES",
    "SOURCE_SUFFIXES",
    "Access",
    "Constraint",
    "Elements",
    "Location",
    "Number",
    "Parameter",
    "Place",
    "PlayedValues",
    "Role",
    "Space",
    "Values",
    "Vector",
    "assignments",
    "by_location",
    "circle",
    "conflicts",
    "differences",
    "feasible",
]
