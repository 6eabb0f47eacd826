"""The settings of a run, which never change: the JSON of `spsa_run.settings`, typed."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, Self

from spsa.core.game_settings import GameSettings
from spsa.core.stored_json import as_written, built

Auto = Literal["auto"]
AUTO: Final[Auto] = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """How a run plays and moves.

    Gains are derived from `planned_iterations`, also if the run is extended later.
    `iterations_in_flight` is "auto" if it follows the fleet. The run ends when its games, doubled,
    are expected to bring less than `stop_when` Elo, if that is given.
    """

    rule: Mapping[str, Any]
    planned_iterations: int
    games_per_iteration: int
    batch_size: int
    iterations_in_flight: int | Auto
    max_attempts: int
    delivery: Mapping[str, Any]
    terms: GameSettings
    stop_when: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Everything but the game settings, which have the column `terms`."""
        data = asdict(self)
        del data["terms"]
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any], terms: GameSettings) -> Self:
        """The settings that `to_json` gave; UnusableState if the JSON is anything else."""
        with as_written("a column `settings`"):
            return built(cls, data, terms=terms)

    def differences(self, wanted: "RunSettings") -> list[str]:
        """One sentence for every setting that is different in the files now."""
        here, there = (dict(_leaves({**s.to_json(), **s.terms.to_json()})) for s in (self, wanted))
        return [
            f"{name}: the run has {_shown(here.get(name))}, the files say {_shown(there.get(name))}"
            for name in sorted(here.keys() | there.keys())
            if here.get(name) != there.get(name)
        ]


def _leaves(data: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted names such as `time_control.high`, with their values; an empty table has none."""
    for name, value in data.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield prefix + name, list(value) if isinstance(value, tuple) else value


def _shown(value: Any) -> str:
    return "none" if value is None else str(value)
