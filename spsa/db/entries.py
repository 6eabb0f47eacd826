"""What a master writes that is more than a row, as frozen values; no SQL here."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from spsa.core.estimates import NOTHING_KNOWN, Estimates
from spsa.core.game_settings import GameSettings
from spsa.core.json_values import from_json
from spsa.core.stored_json import as_written
from spsa.db.engine_tables import EngineFile
from spsa.lifecycle import Purpose

Values = Mapping[str, float]
"""Parameter name -> value in the parameter's own unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What a validation compares.

    `theta` and `against` are "final", "averaged", "supported", "start", the number of a result, or
    the name of a file. `time_control` is None for that of the tuning. `sprt` has the two hypotheses
    of a sequential test in normalised Elo, None for a match of a fixed length. `background`: the
    master plays it while it tunes.
    """

    theta: str = "final"
    against: str = "start"
    time_control: str | None = None
    sprt: tuple[float, float] | None = None
    background: bool = False

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """What `to_json` gave; UnusableState if the JSON is anything else."""
        with as_written("a column `compared`"):
            return from_json(cls, data)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewIteration:
    """A perturbation with its games, already cut into batches.

    `batches` has the number of games of each: even numbers that add up to `target_games`. A worker
    has to provide the words of `requires`. `variants` are plus and minus for higher levels of
    x86-64, the highest first; `refused` says why there is none for a level.
    """

    purpose: Purpose
    k: int | None
    opened_on: int
    in_flight: int
    a_k: float | None
    c_k: float | None
    plus: EngineFile
    minus: EngineFile
    plus_options: Mapping[str, str]
    minus_options: Mapping[str, str]
    requires: tuple[str, ...] = ()
    variants: Mapping[str, tuple[EngineFile, EngineFile]] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    game_settings: GameSettings
    target_games: int
    batches: Sequence[int]
    max_attempts: int
    base_parameters: Values
    plus_parameters: Values
    minus_parameters: Values
    perturbation_signs: Mapping[str, int]
    opened_purges: int = 0  # of the run when the master decided
    match_number: int | None = None  # of a validation that goes on with a match
    compared: Compared | None = None  # of a validation


@dataclass(frozen=True, slots=True, kw_only=True)
class NewStep:
    """The step that one complete iteration causes, and the state of the rule after it.

    The estimates are those of the whole run after the step; `elo` and `gradient` are the
    iteration's own.
    """

    k: int
    theta_before: Values
    delta: Values
    theta_after: Values
    estimates: Estimates = NOTHING_KNOWN
    state: Mapping[str, Any]
    gradient: Values
    elo: float
    bounded: bool
    purges: int = 0  # of the run when the master decided
