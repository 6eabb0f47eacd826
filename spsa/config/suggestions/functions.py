"""The numbers inside functions, which `init` lists as comments, each with its line of source. Pure.

A search keeps many of its margins there. They are not suggested: most numbers in a function are
code, and only a person who reads the line can tell.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import groupby, islice

from spsa.builds.sources.constant import ConstantRefused, Kind, SourceConstant, SourceFile
from spsa.builds.sources.rewriting import constant
from spsa.config.source import line_of
from spsa.config.suggestions.objections import rank_of_file, to_number

_MAX_LISTED = 500
"""Numbers that are listed, of all files together."""
_LONGEST = 80
"""Characters of a line of source that are shown."""


def inside_functions(files: Mapping[str, SourceFile], main: str) -> dict[str, tuple[str, ...]]:
    """The lines that list them, by file, in the order of the text.

    A location names its file unless that is `main`.
    """
    found = (
        (path, line)
        for path, file in files.items()
        if rank_of_file(path) > 0
        for line in _listed(file, None if path == main else path)
    )
    by_file = groupby(islice(found, _MAX_LISTED), lambda item: item[0])
    return {path: tuple(line for _, line in each) for path, each in by_file}


def _listed(file: SourceFile, prefix: str | None) -> Iterator[str]:
    """Those that may be strengths; not what a unit, a position or a bit pattern is made of."""
    numbers = [
        replace(number, location=replace(file.location_of(one), accesses=number.location.accesses))
        for one in file.constants
        if one.kind in (Kind.FUNCTION, Kind.LOCAL) and not one.test_only and is_found(file, one)
        for number in one.numbers()
        if not to_number(number, computed=True)
    ]
    for number in sorted(numbers, key=lambda number: number.start):
        row, source = line_of(file, number)
        shown = source if len(source) <= _LONGEST else f"{source[: _LONGEST - 3]}..."
        yield f"{replace(number.location, file=prefix)} = {number.text} in line {row}: {shown}"


def is_found(file: SourceFile, one: SourceConstant) -> bool:
    """Whether a location can name it among others of its name, in a file that can be read."""
    try:
        return constant(file, file.location_of(one)) is one
    except ConstantRefused:
        return False
