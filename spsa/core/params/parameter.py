"""One number to be tuned, and the grid of values that the engine can represent."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import ceil, floor, inf, nextafter
from typing import Any, Self

from spsa.core.json_values import from_json
from spsa.core.params.placement import Place

Number = int | float


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A named value with its bounds, its step and its place in the engine.

    `value`, `minimum`, `maximum` and `step` are in the unit of params.toml. `value` is the start of
    theta (or the fixed value of a frozen parameter) and need not be on the grid. `integral`
    parameters are whole numbers; with a `scale` the engine gets `value * scale` as a whole number;
    with neither the parameter is continuous. `option` is the UCI option that sends it if no binary
    is built. `line` is its line in params.toml, which comparisons ignore.
    """

    name: str
    value: float
    minimum: float
    maximum: float
    step: float
    place: Place
    option: str
    integral: bool = True
    scale: int | None = None
    group: str = ""
    active: bool = True
    note: str = ""
    line: int | None = field(default=None, compare=False)

    @property
    def unit(self) -> float:
        """The smallest change that the engine can see; 0 for a continuous parameter."""
        per_unit = self._units_per_one
        return 1.0 / per_unit if per_unit else 0.0

    @property
    def _units_per_one(self) -> int:
        """Division by this whole number is exact; multiplication by `unit` is not."""
        return 1 if self.integral else self.scale or 0

    def nearest(self, value: float) -> Number:
        """The value on the grid nearest to `value`; the greater of two equally near ones."""
        per_unit = self._units_per_one
        return self.on_grid(floor(value * per_unit + 0.5)) if per_unit else float(value)

    def on_grid(self, units: int) -> Number:
        """The value that is `units` units large."""
        return units if self.integral else units / self._units_per_one

    def below(self, bound: float, *, strictly: bool) -> Number:
        """The greatest value on the grid that is less than (or equal to) `bound`."""
        per_unit = self._units_per_one
        if not per_unit:
            return nextafter(bound, -inf) if strictly else float(bound)
        units = (
            ceil(bound * per_unit - _SLACK) - 1 if strictly else floor(bound * per_unit + _SLACK)
        )
        return self.on_grid(units)

    def above(self, bound: float, *, strictly: bool) -> Number:
        """The least value on the grid that is greater than (or equal to) `bound`."""
        per_unit = self._units_per_one
        if not per_unit:
            return nextafter(bound, inf) if strictly else float(bound)
        units = (
            floor(bound * per_unit + _SLACK) + 1 if strictly else ceil(bound * per_unit - _SLACK)
        )
        return self.on_grid(units)

    def to_engine(self, value: float) -> Number:
        """The number that is written to the source, or sent over UCI, for `value`."""
        if self.scale is not None:
            return floor(value * self.scale + 0.5)
        return self.nearest(value)

    def to_json(self) -> dict[str, Any]:
        data = asdict(self)
        del data["line"]
        return data | {"place": self.place.to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return from_json(cls, data)


# 0.29 * 100 is 28.999999999999996, and 0.29 has to count as on the grid.
_SLACK = 1e-6
