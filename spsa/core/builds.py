"""Which engines a master builds now, and how long a build of an iteration takes."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from spsa.core.stored_json import as_written

_MAX_SECONDS = 7 * 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Builds:
    """The builds of a run at one moment.

    `iterations` are the k that are being built, the first of them for `seconds`. `sides` are those
    of its engines that are not done. `usual` is what the last iterations took in seconds, the
    slowest of a few, None before the first.
    """

    iterations: tuple[int, ...] = ()
    sides: tuple[str, ...] = ()
    seconds: float = 0.0
    usual: float | None = None

    def to_json(self) -> dict[str, Any]:
        """For the column `builds` of a run."""
        return asdict(self) | {"seconds": round(self.seconds, 1)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> Self:
        """What the column says; nothing where it is empty.

        Raises UnusableState for what no master writes.
        """
        if data is None:
            return cls()
        with as_written("a column `builds`"):
            usual = data["usual"]
            return cls(
                iterations=tuple(int(k) for k in data["iterations"]),
                sides=tuple(str(side) for side in data["sides"]),
                seconds=_seconds(data["seconds"]),
                usual=None if usual is None else _seconds(usual),
            )


def _seconds(number: Any) -> float:
    seconds = float(number)
    if not 0.0 <= seconds <= _MAX_SECONDS:
        raise ValueError(f"{seconds} seconds")
    return seconds
