"""The options an engine declares, and whether it would take a value: pure text.

A value that an engine ignores or clamps in silence makes two equal engines play each other, so it
is refused before the game.
"""

import re
from dataclasses import dataclass, field

from spsa.errors import EngineFault

_WORDS = re.compile(
    r"option\s+name\s+(?P<name>.+?)\s+type\s+(?P<type>\w+)(?P<rest>.*)", re.IGNORECASE
)
_BOUND = re.compile(r"\b(min|max)\s+(-?\d+)")
_CHOICE = re.compile(r"\bvar\s+(.+?)(?=\s+var\s|\s*$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """One `option` line: `low` and `high` bound a spin, `choices` are a combo's."""

    name: str
    type: str
    low: int | None = None
    high: int | None = None
    choices: tuple[str, ...] = ()

    def objection(self, value: str) -> str | None:
        """Why the engine would not take `value`; None when it would."""
        if self.type == "spin":
            return self._objection_to_number(value)
        if self.type == "check" and value.lower() not in ("true", "false"):
            return f"{self.name} = {value!r} is neither true nor false"
        if self.type == "combo" and value.lower() not in {c.lower() for c in self.choices}:
            return f"{self.name} = {value!r} is none of {', '.join(self.choices)}"
        return None

    def _objection_to_number(self, value: str) -> str | None:
        try:
            number = int(value)
        except ValueError:
            return f"{self.name} = {value!r} is no whole number"
        below = self.low is not None and number < self.low
        above = self.high is not None and number > self.high
        if below or above:
            return f"{self.name} = {number} is outside {self.low} .. {self.high}"
        return None


@dataclass(slots=True)
class Declarations:
    """What one engine declared; names are compared as UCI does, without regard to case."""

    by_name: dict[str, Declared] = field(default_factory=dict)

    def hear(self, line: str) -> None:
        if found := _WORDS.match(line):
            option = _declared(found)
            self.by_name[option.name.lower()] = option

    def objection(self, name: str, value: str) -> str | None:
        """Why the engine would not obey `setoption` with these two; None when it would."""
        option = self.by_name.get(name.lower())
        return f"it declares no option {name!r}" if option is None else option.objection(value)

    def command(self, name: str, value: str) -> bytes:
        """The `setoption` line; EngineFault("refused option") when the engine would not obey it."""
        if objection := self.objection(name, value):
            raise EngineFault("refused option", objection)
        option = self.by_name[name.lower()]
        if option.type == "button":
            return f"setoption name {option.name}\n".encode()
        return f"setoption name {option.name} value {value}\n".encode()


def _declared(found: "re.Match[str]") -> Declared:
    bounds = {word: int(number) for word, number in _BOUND.findall(found["rest"])}
    return Declared(
        name=found["name"],
        type=found["type"].lower(),
        low=bounds.get("min"),
        high=bounds.get("max"),
        choices=tuple(choice.strip() for choice in _CHOICE.findall(found["rest"])),
    )
