"""What of a run never changes besides its space: the JSON of `spsa_run.settings`, typed."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from spsa.terms import Terms


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """How a run cuts its games, and by which rule it moves.

    `planned_iterations` is what gains are derived from, also when the run is extended later.
    """

    rule: Mapping[str, Any]
    planned_iterations: int
    games_per_iteration: int
    batch_size: int
    iterations_in_flight: int
    max_attempts: int
    delivery: Mapping[str, Any]
    terms: Terms

    def to_json(self) -> dict[str, Any]:
        """Everything but the terms, which have a column of their own."""
        data = asdict(self)
        del data["terms"]
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any], terms: Terms) -> Self:
        return cls(terms=terms, **data)

    def differences(self, wanted: "RunSettings") -> list[str]:
        """A sentence for everything the files now say differently."""
        here, there = self.to_json(), wanted.to_json()
        here["terms"], there["terms"] = self.terms.to_json(), wanted.terms.to_json()
        return [
            f"{name}: the run has {here[name]!r}, the files now say {there[name]!r}"
            for name in here
            if here[name] != there[name]
        ]
