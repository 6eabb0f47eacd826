"""Which engines a master builds now, and how long a build of an iteration takes."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Self

from spsa.core.json_values import from_json
from spsa.core.limits import Range
from spsa.core.stored_json import as_written

Seconds = Annotated[float, Range(0, 7 * 86_400)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Builds:
    """The builds of a run at one moment, as the column `builds` of a run has them.

    `iterations` are the k that are being built, the first of them for `seconds`. `sides` are those
    of its engines that are not done. `usual` is what the last iterations took in seconds, the
    slowest of a few, None before the first.
    """

    iterations: tuple[int, ...] = ()
    sides: tuple[str, ...] = ()
    seconds: Seconds = 0.0
    usual: Seconds | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"seconds": round(self.seconds, 1)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> Self:
        """What the column says; nothing where it is empty.

        Raises UnusableState for what no master writes.
        """
        if data is None:
            return cls()
        with as_written("a column `builds`"):
            return from_json(cls, data)
