"""What is known of a source file's numbers, whatever language it is written in."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from spsa.builds.sources.shape import Comment, Shape
from spsa.builds.sources.types import ValueType


class Kind(StrEnum):
    """What a number belongs to.

    A constant is a `const`, `static`, `constexpr`, `#define` or enumerator; a variable is a global
    one of C that may change. An unchanged `let` of a `const fn` is a part of that.
    """

    CONSTANT = "constant"
    VARIABLE = "variable"
    MACRO = "macro"
    CONST_FUNCTION = "const fn"
    FUNCTION = "fn"
    LOCAL = "let"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceConstant:
    """A constant, an entry of a macro, a function, or a local variable; line from 1.

    The value of a function or a variable is what it is made of: a value written out, or the numbers
    of its expressions. `scope` names what it stands in, the nearest last, and of very many only
    the nearest. `condition` is its `#[cfg]` or `#if` as a name, such as `not_feature_big`, or "".
    """

    kind: Kind
    name: str
    scope: tuple[str, ...]
    line: int
    test_only: bool
    type: ValueType
    value: Shape
    text: str
    condition: str = ""


@dataclass(frozen=True, kw_only=True)  # no slots: the look-up by name is computed once
class SourceFile:
    """All that is known of one file's text.

    `broken` is the first line that is not Rust; no file of C or C++ has one, because a macro may
    stand for any text. `lengths` are the names of array lengths.
    """

    name: str
    text: str
    constants: tuple[SourceConstant, ...]
    aliases: Mapping[str, ValueType]
    comments: tuple[str, ...]
    headings: tuple[Comment, ...]
    broken: int | None
    lengths: frozenset[str] = frozenset()

    @cached_property
    def by_name(self) -> Mapping[str, tuple[SourceConstant, ...]]:
        """The constants of each name, in the order of the text."""
        found: dict[str, list[SourceConstant]] = {}
        for constant in self.constants:
            found.setdefault(constant.name, []).append(constant)
        return {name: tuple(constants) for name, constants in found.items()}
