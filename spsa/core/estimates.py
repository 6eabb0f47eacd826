"""What is known of the optimum besides theta itself."""

from collections.abc import Mapping
from dataclasses import dataclass, fields

Values = Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """Other answers than theta itself to "which values?", each None as long as there is none.

    `averaged` is the average of theta over the iterations, late ones weighing more, and its
    deviation is how far theta wanders. `supported` is where all games together put the optimum, and
    its deviation is how uncertain that is. By the parameter's name, in its own unit: values of all
    parameters, deviations of the active ones.
    """

    averaged: Values | None = None
    averaged_sd: Values | None = None
    supported: Values | None = None
    supported_sd: Values | None = None

    def by_name(self) -> dict[str, Values | None]:
        """All of them, by the names of the fields."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


NOTHING_KNOWN = Estimates()
