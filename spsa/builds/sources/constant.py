"""A constant in a source: its numbers, how its language writes them, and what their types hold."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from math import isfinite
from typing import NamedTuple

from spsa.core.parameter import Access, Location, Number
from spsa.errors import TuningError

_LONGEST = 40
"""Characters of a literal: the longest whole number of any type."""

_BASES = {"0x": 16, "0o": 8, "0b": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Notation:
    """How a language writes numbers, and which types they have.

    `pattern` has the groups `digits` and `suffix`. `separator` may stand between digits, and
    `suffixes` maps a suffix in lower case to its type. With `octal`, 017 is 15. `integers` has the
    least and the greatest number of a type, `reals` are the floating point types. `words` finds the
    names in what a type is made of, `aliases` are other names of types of numbers.
    """

    pattern: re.Pattern[str]
    separator: str
    suffixes: Mapping[str, str]
    integers: Mapping[str, tuple[int, int]]
    reals: tuple[str, ...]
    aliases: Mapping[str, str]
    words: re.Pattern[str] = re.compile(r"\w+")
    octal: bool = False

    def split(self, text: str) -> tuple[str, str]:
        """The digits and the suffix of a literal, whatever its sign; ("", "") if it is none.

        A text that is too long for any type is none.
        """
        unsigned = text[1:].strip() if text.startswith(("-", "+")) else text
        found = self.pattern.fullmatch(unsigned) if len(unsigned) <= _LONGEST else None
        return (found["digits"], found["suffix"] or "") if found else ("", "")

    def number_in(self, made_of: str, types: Mapping[str, str]) -> str | None:
        """The one type of numbers that a type is made of; `types` are what others are made of."""
        found, seen, waiting = set[str](), set[str](), [made_of]
        while waiting:
            for word in self.words.findall(waiting.pop()):
                name = self.aliases.get(word, word)
                if name in self.integers or name in self.reals:
                    found.add(name)
                elif name in types and name not in seen:
                    seen.add(name)
                    waiting.append(types[name])
        return found.pop() if len(found) == 1 else None

    def read(self, text: str) -> Number | None:
        """The number a literal (with or without a sign before it) stands for.

        None for what is no literal, and for one that is too large for any type.
        """
        digits, suffix = self.split(text)
        if not digits:
            return None
        magnitude = self._magnitude(digits.replace(self.separator, ""), suffix)
        if not isfinite(magnitude):
            return None
        return -magnitude if text.startswith("-") else magnitude

    def write(self, number: Number, like: str, *, real: bool) -> str:
        """`number` in the style of the literal `like`: its suffix, and marks between thousands.

        `real` asks for a literal of a floating point type. Hexadecimal and the like become decimal.
        """
        digits, suffix = self.split(like)
        mark = self.separator
        grouped = mark if re.search(rf"\d{mark}\d{{3}}(?!\d)", digits) else ""
        gap = mark if suffix and like.removesuffix(suffix).endswith(mark) else ""
        text = f"{float(number) if real else int(number):,}"
        return text.replace(",", grouped) + gap + suffix

    def _magnitude(self, digits: str, suffix: str) -> Number:
        base = _BASES.get(digits[:2].lower())
        if base is not None:
            return int(digits, base)
        if suffix.lower().startswith("f") or any(mark in digits for mark in ".eE"):
            return float(digits)
        return int(digits, 8 if self.octal and digits.startswith("0") else 10)


def ranges(signed: Mapping[str, int], unsigned: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """What integers of so many bits can hold."""
    low = {name: (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for name, bits in signed.items()}
    return low | {name: (0, 2**bits - 1) for name, bits in unsigned.items()}


class ConstantRefused(TuningError):
    """A constant cannot be read or written as asked; `found` and `remedy` are as in a Fault."""

    exit_code = 2

    def __init__(self, found: str, remedy: str) -> None:
        self.found = found
        self.remedy = remedy
        super().__init__(f"{found}; {remedy}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """One number of a constant as it stands in the source, in the bytes [start, end).

    `type` is its type as far as the file tells, or None. `beside` are the further numbers of what
    it is the first of, as in `TUNE(margin, 80, 40, 120)` or `{"Margin", 80, 40, 120}`, or the ones
    that are called min, max and step. `label` is a name in quotes before it, and `maker` the macro
    or the function that is given these numbers.
    """

    location: Location
    number: Number
    text: str
    start: int
    end: int
    type: str | None
    label: str = ""
    maker: str = ""
    beside: tuple[Number, ...] = ()
    notation: Notation = field(compare=False, repr=False)

    @property
    def real(self) -> bool:
        """Whether it is of a floating point type."""
        known = self.type in self.notation.reals or isinstance(self.number, float)
        return known and self.limits is None

    @property
    def limits(self) -> tuple[int, int] | None:
        """What its type can hold; None for a type that is real or not known."""
        return self.notation.integers.get(self.type or "")

    def check(self, number: Number) -> None:
        """Raise ConstantRefused when `number` cannot stand here."""
        low, high = self.limits or (number, number)
        if not isfinite(number):
            remedy = "use a finite number"
        elif self.real:
            return
        elif number != int(number):
            remedy = 'give the parameter type = "int" or a scale'
        elif not low <= number <= high:
            remedy = f"keep min and max within {low} to {high}"
        else:
            return
        kind = self.type or "a whole number"
        raise ConstantRefused(f"{self.location} is of type {kind} and cannot hold {number}", remedy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opaque:
    """What stands in the place of a number and is none."""

    location: Location
    text: str


class Kind(StrEnum):
    """What a number belongs to.

    A constant is a `const`, `static`, `constexpr`, `#define` or enumerator; a variable is a global
    one of C that may change. An unchanged local variable of a `const fn` is a part of that.
    """

    CONSTANT = "constant"
    VARIABLE = "variable"
    MACRO = "macro"
    CONST_FUNCTION = "const fn"
    FUNCTION = "fn"
    LOCAL = "let"


@dataclass(frozen=True, kw_only=True)  # no slots: its items are looked up by their accesses
class SourceConstant:
    """A constant, an entry of a macro, a function, or a local variable; line from 1.

    `items` are its numbers, and what stands in the place of one, in the order of the text. With
    `computed` they are the numbers in the expressions that a function or a variable is made of.
    `scope` names what it stands in, the nearest last, and of very many only the nearest.
    """

    kind: Kind
    name: str
    scope: tuple[str, ...]
    line: int
    test_only: bool
    items: tuple[Element | Opaque, ...]
    computed: bool = False

    @cached_property
    def by_accesses(self) -> dict[tuple[Access, ...], Element | Opaque]:
        return {item.location.accesses: item for item in self.items}

    @property
    def single(self) -> Element | Opaque | None:
        """Its one item; None for an array, a tuple, a struct and the numbers of an expression."""
        return self.by_accesses.get(()) if len(self.items) == 1 else None

    @property
    def path(self) -> str:
        """How a location names it among others of its name."""
        return "::".join((*(self.scope or ("crate",)), self.name))

    def numbers(self) -> Iterator[Element]:
        return (item for item in self.items if isinstance(item, Element))


class Bounds(NamedTuple):
    """The numbers that a call has behind a name: `tuneable(margin[2], 40, 120)`."""

    maker: str
    place: str
    numbers: tuple[Number, ...]


@dataclass(frozen=True, kw_only=True)  # no slots: the look-up by name is computed once
class SourceFile:
    """All that is known of one file's text.

    `broken` is the first line that is not Rust; no file of C or C++ has one, because a macro may
    stand for any text. `lengths` are the names of array lengths, indexes and shifts. `definitions`
    are the names and the texts of functions, and of macros and values outside of these; a function
    has its name in its text.
    """

    name: str
    text: str
    constants: tuple[SourceConstant, ...]
    broken: int | None
    lengths: frozenset[str]
    definitions: tuple[tuple[str, str], ...]
    bounds: tuple[Bounds, ...] = ()

    @cached_property
    def content(self) -> bytes:
        """The bytes in which the places of numbers are counted."""
        return self.text.encode("utf-8", "surrogatepass")

    @cached_property
    def by_name(self) -> Mapping[str, list[SourceConstant]]:
        """The constants of each name, in the order of the text."""
        found: dict[str, list[SourceConstant]] = {}
        for constant in self.constants:
            found.setdefault(constant.name, []).append(constant)
        return found

    def location_of(self, one: SourceConstant) -> Location:
        """How a location names a constant of this file."""
        alone = len(self.by_name[one.name]) == 1
        return Location(one.name, scope=one.scope or (() if alone else ("crate",)))
