"""What may be set of a rule: names, ranges and defaults, and what is wrong with given values."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from math import inf, isfinite

Found = tuple[str, str, str]
"""A setting's name, what was found there, and what would be right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One number that may be given: least <= number <= most, or above `least` where `open`.

    A default of None is derived from the problem. `instead_of` names another setting that this one
    decides, so that both cannot be given.
    """

    name: str
    meaning: str
    default: float | None
    least: float = 0.0
    most: float = inf
    open: bool = False
    instead_of: str | None = None

    @property
    def range(self) -> str:
        """The range in words."""
        low = f"above {self.least:g}" if self.open else f"at least {self.least:g}"
        return low if self.most == inf else f"{low} and at most {self.most:g}"

    def accepts(self, value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            return False
        return self.least <= value <= self.most and not (self.open and value == self.least)


def faults(known: Iterable[Setting], given: Mapping[str, object]) -> Iterator[Found]:
    """Everything that is wrong with the given settings, in the order they were given."""
    by_name = {setting.name: setting for setting in known}
    for name, value in given.items():
        if name not in by_name:
            yield name, "unknown setting", suggestion(name, by_name)
        elif not by_name[name].accepts(value):
            setting = by_name[name]
            yield name, f"found {value!r}", f"{setting.meaning}: a number {setting.range}"
        elif (other := by_name[name].instead_of) in given:
            yield name, f"given together with {other}", f"give {name} or {other}, not both"


def suggestion(name: str, known: Iterable[str]) -> str:
    """What may have been meant by a name nobody knows."""
    names = sorted(known)
    close = get_close_matches(name, names, n=1) or [n for n in names if n.lower() == name.lower()]
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(names)}"


def values(known: Iterable[Setting], given: Mapping[str, object]) -> dict[str, float | None]:
    """Every setting's value: the given one or the default. Nothing may be wrong with `given`."""
    chosen = {setting.name: given.get(setting.name, setting.default) for setting in known}
    return {name: value if value is None else float(str(value)) for name, value in chosen.items()}
