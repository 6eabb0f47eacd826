"""The options an engine declares, and whether it would take a value: pure text.

A value that an engine ignores or clamps in silence makes two equal engines play each other, so it
is refused before the game.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from spsa.core.game_settings.numbers import MOST_OPTION, clamped
from spsa.errors import EngineFault
from spsa.text import printable

MOST_DECLARED = 2**24
"""Characters of all the options that one engine declares; more is a flood."""

_NUMBER = re.compile(r"[+-]?[0-9]+")
_BOUND = re.compile(r"-?[0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """One `option` line: `low` and `high` bound a spin, `choices` are a combo's.

    `default` is that of a spin, None where it has none or for the other types.
    """

    name: str
    type: str
    default: int | None = None
    low: int | None = None
    high: int | None = None
    choices: tuple[str, ...] = ()

    def objection(self, value: str) -> str | None:
        """Why the engine would not take `value`; None when it would."""
        if not value.isprintable():
            return f"{self.name} = {value!r} has a line break or another control character"
        if self.type == "spin":
            return self._objection_to_number(value)
        if self.type == "check" and value.lower() not in ("true", "false"):
            return f"{self.name} = {value!r} is neither true nor false"
        if self.type == "combo" and value.lower() not in {c.lower() for c in self.choices}:
            return f"{self.name} = {value!r} is none of {', '.join(self.choices)}"
        return None

    def _objection_to_number(self, value: str) -> str | None:
        if not _NUMBER.fullmatch(value):
            return f"{self.name} = {value!r} is no whole number"
        number = clamped(value.removeprefix("+"), MOST_OPTION + 1)
        below = self.low is not None and number < self.low
        above = self.high is not None and number > self.high
        if below or above:
            return f"{self.name} = {printable(value, 40)} is outside {self.low} .. {self.high}"
        return None


@dataclass(slots=True)
class Declarations:
    """What one engine declared; names are compared as UCI does, without regard to case."""

    by_name: dict[str, Declared] = field(default_factory=dict)
    heard: int = 0

    def hear(self, line: str) -> None:
        """Note it if it declares an option; EngineFault("flood") when there is no end of them."""
        option = _declared(line.split())
        if option is None:
            return
        self.heard += len(line)
        if self.heard > MOST_DECLARED:
            raise EngineFault("flood", f"options of more than {MOST_DECLARED} characters")
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


def _declared(words: Sequence[str]) -> Declared | None:
    """What the words of a line declare, split as UCI does; None where they declare nothing.

    A regular expression would try every way to split a line of many blanks.
    """
    marks = [word.lower() for word in words[:2]]
    kind = next((i for i, word in enumerate(words) if i > 2 and word.lower() == "type"), None)
    if marks != ["option", "name"] or kind is None or kind + 1 == len(words):
        return None
    rest = words[kind + 2 :]
    bounds = {
        word: clamped(number, MOST_OPTION)
        for word, number in pairwise(rest)
        if word in ("default", "min", "max") and _BOUND.fullmatch(number)
    }
    return Declared(
        name=" ".join(words[2:kind]),
        type=words[kind + 1].lower(),
        default=bounds.get("default"),
        low=bounds.get("min"),
        high=bounds.get("max"),
        choices=tuple(_choices(rest)),
    )


def _choices(words: Sequence[str]) -> Iterator[str]:
    """What follows each `var`."""
    places = [i for i, word in enumerate(words) if word == "var"]
    for place, end in pairwise([*places, len(words)]):
        if end > place + 1:
            yield " ".join(words[place + 1 : end])
