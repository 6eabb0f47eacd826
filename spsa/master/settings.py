"""What of a run never changes besides its space: the JSON of `spsa_run.settings`, typed."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, Self

from spsa.core.game_settings import Terms
from spsa.core.stored_json import as_written, built

Auto = Literal["auto"]
AUTO: Final[Auto] = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """How a run cuts its games, and by which rule it moves.

    `planned_iterations` is what gains are derived from, also when the run is extended later.
    `iterations_in_flight` is "auto" where they follow the fleet.
    """

    rule: Mapping[str, Any]
    planned_iterations: int
    games_per_iteration: int
    batch_size: int
    iterations_in_flight: int | Auto
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
        """What `to_json` gave; UnusableState where it is anything else."""
        with as_written("a column `settings`"):
            return built(cls, data, terms=terms)

    def differences(self, wanted: "RunSettings") -> list[str]:
        """A sentence for every single thing that the files now say differently."""
        here, there = (dict(_leaves({**s.to_json(), **s.terms.to_json()})) for s in (self, wanted))
        return [
            f"{name}: the run has {_shown(here.get(name))}, the files say {_shown(there.get(name))}"
            for name in sorted(here.keys() | there.keys())
            if here.get(name) != there.get(name)
        ]


def _leaves(data: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """`time_control.high` and its value, and so on; an empty table is no leaf."""
    for name, value in data.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield prefix + name, list(value) if isinstance(value, tuple) else value


def _shown(value: Any) -> str:
    return "none" if value is None else str(value)
