"""The UCI options that an engine declares, and whether it accepts a value.

An engine that ignores or clamps a value in silence makes two equal engines play each other. So a
value that it does not accept is refused before the game.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from spsa.core.game_settings import MAX_OPTION, clamped
from spsa.errors import EngineFault
from spsa.text import closest, printable

CHESS960 = "UCI_Chess960"
"""The option that makes an engine play Chess960, with castling written as king takes rook."""

MAX_DECLARED = 2**24  # characters of all options that one engine may declare

_NUMBER = re.compile(r"[+-]?[0-9]+")
_SWITCH = {"0": "false", "1": "true", "false": "false", "true": "true"}
"""What a check option is sent for; a tuned one is the number 0 or 1."""

_WHOLE = re.compile(r"[0-9]{1,9}")
_BOUND = re.compile(r"-?[0-9]+")
_FRACTION = re.compile(r"[+-]?[0-9]{1,15}\.[0-9]{1,15}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """One `option` line: `low` and `high` are the bounds of a spin, `choices` those of a combo.

    `default` is that of a spin, or the number that a string begins with; else None.
    """

    name: str
    type: str
    default: int | float | None = None
    low: int | None = None
    high: int | None = None
    choices: tuple[str, ...] = ()

    def objection(self, value: str) -> str | None:
        """Why the engine does not accept `value`; None if it does."""
        if not value.isprintable():
            return f"{self.name} = {value!r} has a line break or another control character"
        if self.type == "spin":
            return self._objection_to_number(value)
        if self.type == "check" and value.lower() not in _SWITCH:
            return f"{self.name} = {value!r} is neither true nor false, nor 0 or 1"
        if self.type == "combo" and value.lower() not in {c.lower() for c in self.choices}:
            return f"{self.name} = {value!r} is none of {', '.join(self.choices)}"
        return None

    def _objection_to_number(self, value: str) -> str | None:
        if not _NUMBER.fullmatch(value):
            return f"{self.name} = {value!r} is not a whole number"
        number = clamped(value.removeprefix("+"), MAX_OPTION + 1)
        below = self.low is not None and number < self.low
        above = self.high is not None and number > self.high
        if below or above:
            return f"{self.name} = {printable(value, 40)} is outside {self.low} .. {self.high}"
        return None


@dataclass(slots=True)
class Declarations:
    """The options that one engine declares; like in UCI, case does not matter in names."""

    by_name: dict[str, Declared] = field(default_factory=dict)
    length: int = 0  # characters of all of them

    def read_line(self, line: str) -> None:
        """Add the option that a line declares, if any; EngineFault("flood") for too many."""
        option = _declared(line.split())
        if option is None:
            return
        self.length += len(line)
        if self.length > MAX_DECLARED:
            raise EngineFault("flood", f"options of more than {MAX_DECLARED} characters")
        self.by_name[option.name.lower()] = option

    def objection(self, name: str, value: str) -> str | None:
        """Why the engine does not accept `setoption` with this name and value; None if it does."""
        if (option := self.by_name.get(name.lower())) is not None:
            return option.objection(value)
        near = closest(name, (option.name for option in self.by_name.values()))
        more = f" (did you mean {near!r}?)" if near else ""
        if name.lower() == CHESS960.lower():
            more = ", so it does not play Chess960"
        return f"it declares no option {name!r}{more}"

    def command(self, name: str, value: str) -> bytes:
        """The `setoption` line; EngineFault("refused option") if the engine does not accept it."""
        if objection := self.objection(name, value):
            raise EngineFault("refused option", objection)
        option = self.by_name[name.lower()]
        if option.type == "button":
            return f"setoption name {option.name}\n".encode()
        sent = _SWITCH[value.lower()] if option.type == "check" else value
        return f"setoption name {option.name} value {sent}\n".encode()


def whole_option(options: Mapping[str, str], name: str) -> int:
    """The whole number that an option is set to; 0 where it is not set to one."""
    found = [value for key, value in options.items() if key.lower() == name.lower()]
    return int(found[-1]) if found and _WHOLE.fullmatch(found[-1]) else 0


def _declared(words: Sequence[str]) -> Declared | None:
    """The option that the words of a line declare; None if they declare none.

    A regular expression would be slow on a line with many blanks.
    """
    marks = [word.lower() for word in words[:2]]
    kind = next((i for i, word in enumerate(words) if i > 2 and word.lower() == "type"), None)
    if marks != ["option", "name"] or kind is None or kind + 1 == len(words):
        return None
    rest = words[kind + 2 :]
    bounds = {
        word: clamped(number, MAX_OPTION)
        for word, number in pairwise(rest)
        if word in ("default", "min", "max") and _BOUND.fullmatch(number)
    }
    return Declared(
        name=" ".join(words[2:kind]),
        type=words[kind + 1].lower(),
        default=bounds.get("default", _fraction(rest) if words[kind + 1] == "string" else None),
        low=bounds.get("min"),
        high=bounds.get("max"),
        choices=tuple(_choices(rest)),
    )


def _fraction(words: Sequence[str]) -> float | None:
    """The default of a string option that is sent fractions, as engines on OpenBench have them."""
    word = dict(pairwise(words)).get("default", "")
    return float(word) if _FRACTION.fullmatch(word) else None


def _choices(words: Sequence[str]) -> Iterator[str]:
    """The words after each `var`."""
    places = [i for i, word in enumerate(words) if word == "var"]
    for place, end in pairwise([*places, len(words)]):
        if end > place + 1:
            yield " ".join(words[place + 1 : end])
