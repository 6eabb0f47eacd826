"""The numbers inside functions, which `init` lists as comments, each with its line of source. Pure.

A search keeps many of its margins there. They are not suggested: most numbers in a function are
code, and only a person who reads the line can tell.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import accumulate, groupby, islice

from spsa.builds.sources import (
    ConstantRefused,
    Element,
    Kind,
    SourceConstant,
    SourceFile,
    constant,
)
from spsa.config.suggestions.ranking import objection_to_factor, objection_to_number, rank_of_file

_MOST = 500
"""Numbers that are listed, of all files together."""
_LONGEST = 80
"""Characters of a line of source that are shown."""


def inside_functions(files: Mapping[str, SourceFile], main: str) -> dict[str, tuple[str, ...]]:
    """The lines that list them, by file: function by function, in the order of the text.

    A location names its file unless that is `main`.
    """
    found = (
        (path, line)
        for path, file in files.items()
        if rank_of_file(path) > 0
        for line in _listed(file, None if path == main else path)
    )
    by_file = groupby(islice(found, _MOST), lambda item: item[0])
    return {path: tuple(line for _, line in each) for path, each in by_file}


def _listed(file: SourceFile, prefix: str | None) -> Iterator[str]:
    lines = file.text.split("\n")
    starts = [0, *accumulate(len(line.encode("utf-8", "surrogatepass")) + 1 for line in lines)]
    numbers = sorted(_numbers(file), key=lambda number: number.start)
    for number in numbers:
        row = bisect_right(starts, number.start)
        source = lines[row - 1].strip()
        shown = source if len(source) <= _LONGEST else f"{source[: _LONGEST - 3]}..."
        yield f"{replace(number.location, file=prefix)} = {number.text} in line {row}: {shown}"


def _numbers(file: SourceFile) -> Iterator[Element]:
    """Those that may be strengths; not what a unit, a position or a bit pattern is made of."""
    for one in file.constants:
        if one.kind in (Kind.FUNCTION, Kind.LOCAL) and not one.test_only and _is_found(file, one):
            for number in one.numbers():
                if not (objection_to_number(number) or objection_to_factor(number.number)):
                    place = replace(file.location_of(one), accesses=number.location.accesses)
                    yield replace(number, location=place)


def _is_found(file: SourceFile, one: SourceConstant) -> bool:
    """Whether a location can name it among others of its name."""
    try:
        return constant(file, file.location_of(one)) is one
    except ConstantRefused:
        return False
