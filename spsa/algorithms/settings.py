"""The settings of rules: names, ranges and defaults, the faults of given values, and gains."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, fields, replace
from typing import Annotated, Any, get_type_hints

from spsa.text import closest, suggestion

Found = tuple[str, str, str]
"""A setting's name, what was found, and what would be right."""

SMALL, LARGE = 1e-6, 1e6
"""The range of settings in steps, or parts of them; beyond it rounding errors dominate."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A number with least <= number <= most, or greater than `least` if `open`.

    With `choices` it is one of these words instead. `instead_of` names settings that this one
    replaces, so that only one of them can be given. It annotates a field of a rule, which has its
    `name` and its `default`; the rule computes a default of None.
    """

    meaning: str
    _: KW_ONLY
    name: str = ""
    default: float | str | None = None
    least: float = 0.0
    most: float = LARGE
    open: bool = False
    whole: bool = False
    choices: tuple[str, ...] = ()
    instead_of: tuple[str, ...] = ()

    @property
    def range(self) -> str:
        """The allowed values, in words."""
        if self.choices:
            return " or ".join(f'"{choice}"' for choice in self.choices)
        low = f"above {self.least:g}" if self.open else f"at least {self.least:g}"
        kind = "a whole number" if self.whole else "a number"
        return f"{kind} {low} and at most {self.most:g}"

    def accepts(self, value: object) -> bool:
        if self.choices:
            return isinstance(value, str) and value in self.choices
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        if self.whole and value % 1:
            return False
        return self.least <= value <= self.most and not (self.open and value == self.least)

    def remedy(self, value: object) -> str:
        """What would be right instead of a value that is not accepted."""
        close = self.choices and isinstance(value, str) and closest(value, self.choices)
        return f"{self.meaning}: {self.range}" + (f'; did you mean "{close}"?' if close else "")


def settings_of(rule: type[Any]) -> tuple[Setting, ...]:
    """The settings of a rule, in the order of its fields."""
    defaults = {one.name: one.default for one in fields(rule)}
    return tuple(
        replace(setting, name=name, default=defaults[name])
        for name, hint in get_type_hints(rule, include_extras=True).items()
        for setting in getattr(hint, "__metadata__", ())
    )


def faults(known: Iterable[Setting], given: Mapping[str, object]) -> Iterator[Found]:
    """The faults of the given settings, in their order."""
    by_name = {setting.name: setting for setting in known}
    for name, value in given.items():
        if name not in by_name:
            remedy = suggestion(name, by_name) if by_name else "remove it: the rule has none"
            yield name, "unknown setting", remedy
        elif not by_name[name].accepts(value):
            shown = str(value).lower() if isinstance(value, bool) else repr(value)
            yield name, f"found {shown}", by_name[name].remedy(value)
        else:
            for other in filter(given.__contains__, by_name[name].instead_of):
                yield name, f"given together with {other}", f"give {name} or {other}, not both"


Delay = Annotated[
    float | None,
    Setting(
        "iterations by which the decay of a_k is delayed; a tenth of all unless given", most=1e12
    ),
]
Alpha = Annotated[float, Setting("exponent of the decay of a_k", most=1.0)]
Gamma = Annotated[float, Setting("exponent of the decay of c_k", most=0.5)]
LastWidth = Annotated[
    float, Setting("perturbation of the last planned iteration, in steps", least=SMALL)
]
PartMoved = Annotated[
    float, Setting("part of the perturbation that one win moves theta by", least=SMALL)
]

DELAY = 0.1
"""The default of A: a part of the planned iterations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gains:
    """Gains that decay: (17) of Ivec & Vojnovic 2022, as Spall 1998 recommends them.

        a_k = a / (A + k)^alpha,   c_k = c / k^gamma

    k counts from 1, c_k is in steps. Spall, "Implementation of the Simultaneous Perturbation
    Algorithm for Stochastic Optimization", III.B, recommends alpha = 0.602, gamma = 0.101, and for
    A a tenth of the planned iterations.
    """

    a: float
    c: float
    A: float
    alpha: float
    gamma: float

    def a_k(self, k: float) -> float:
        return float(self.a / (self.A + k) ** self.alpha)

    def c_k(self, k: float) -> float:
        return float(self.c / k**self.gamma)


def decayed(end: float, gamma: float, iterations: int, k: int) -> float:
    """c_k of the sequence that ends with `end` at the last planned iteration."""
    return float(end * (iterations / k) ** gamma)
