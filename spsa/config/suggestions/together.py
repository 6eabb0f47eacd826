"""What the files of an engine only say together: uses of names, and what its author declares."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from spsa.builds.sources.constant import Bounds, Element, Opaque, SourceConstant, SourceFile
from spsa.config.suggestions.ranges import makers_of

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_NAMED_INDEX = re.compile(r"\[[A-Za-z_]\w*\]")
_TRUTH = re.compile(rb"\b(?:true|false)\b")
_LONGEST_TABLE = 64
_MOST_UNUSED = 0.2
"""Of all names; where more occur only once, macros make other names of theirs."""


class Told(NamedTuple):
    """`lengths` are also indexes, `unused` are names that occur once, `makers` declare ranges.

    `left_out` are makers with the word, whether it is `true`, that fewer of their numbers have.
    """

    lengths: set[str]
    unused: set[str]
    makers: set[str]
    left_out: set[tuple[str, bool | None]]


def told_by(files: Collection[SourceFile]) -> Told:
    texts = (_COMMENT.sub("", file.text) for file in files)
    names = Counter(plain(name) for text in texts for name in re.findall(r"[^\W\d]\w*", text))
    constants = [(file, one) for file in files for one in file.constants]
    own = {plain(one.name) for _, one in constants}
    unused = {name for name in own if names[name] == 1}
    told = Counter(switch(file, e) for file, one in constants for e in one.numbers() if e.beside)
    return Told(
        lengths={name for file in files for name in file.lengths},
        unused=unused if len(unused) < _MOST_UNUSED * len(own) else set(),
        makers=makers_of(one for _, one in constants),
        left_out={
            key for key, n in told.items() if n < told[key[0], not key[1]] and key[1] is not None
        },
    )


def plain(name: str) -> str:
    """A name as a macro may write it anew: MARGIN_MAX as margin_max or MarginMax."""
    return name.replace("_", "").lower()


def switch(file: SourceFile, element: Element) -> tuple[str, bool | None]:
    """What declares a number, and whether the next word of that kind in its line is `true`."""
    end = file.content.find(b"\n", element.end)
    word = _TRUTH.search(file.content, element.end, len(file.content) if end < 0 else end)
    return element.maker, word and word[0] == b"true"


def with_bounds(files: Mapping[str, SourceFile]) -> dict[str, SourceFile]:
    """With the ranges that calls give, in any file; an index by name counts from 0."""
    told: dict[str, Bounds] = {}
    for bounds in (each for file in files.values() for each in file.bounds):
        places = (_NAMED_INDEX.sub(f"[{n}]", bounds.place) for n in range(_LONGEST_TABLE))
        told.setdefault(next((each for each in places if each not in told), bounds.place), bounds)

    def known(one: SourceConstant, item: Element | Opaque) -> Element | Opaque:
        place = str(item.location)
        found = told.get("::".join((*one.scope[-1:], place))) or told.get(place)
        if found is None or isinstance(item, Opaque) or item.beside:
            return item
        return replace(item, beside=found.numbers, maker=found.maker)

    def constants(file: SourceFile) -> Iterator[SourceConstant]:
        return (replace(c, items=tuple(known(c, item) for item in c.items)) for c in file.constants)

    return {name: replace(file, constants=tuple(constants(file))) for name, file in files.items()}
