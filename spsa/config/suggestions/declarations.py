"""Ranges that the author of an engine declares: a number, its minimum and maximum, a step. Pure.

They are recognised by their shape, whatever the macro or the class is called.
"""

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from math import ceil, floor

from spsa.builds.sources import Element, SourceConstant, SourceFile
from spsa.config.suggestions.ranges import Suggested, bounds, own_name
from spsa.config.suggestions.ranking import name_of
from spsa.core.params import Location, Number

_WIDE = 200
"""A range of more than so many times the value is a limit of its type."""

_STEPS = 20
"""Steps in a range without one, as the tuning macro of Stockfish has them."""


def makers_of(files: Iterable[SourceFile]) -> set[str]:
    """The macros, functions and tables by which the author declares ranges.

    Nearly all numbers they are given lie between the next two.
    """
    found: dict[str, list[bool]] = {}
    for one in chain.from_iterable(file.constants for file in files):
        for element in one.numbers():
            if len(element.beside) > 1 and not (one.test_only or one.computed):
                found.setdefault(maker(one, element), []).append(is_declaration(element))
    return {maker for maker, told in found.items() if sum(told) > 0.9 * len(told) - 0.1}


def maker(one: SourceConstant, element: Element) -> str:
    return element.maker or f"{one.path}[]"


def may_be_declaration(element: Element) -> bool:
    """Whether the two numbers behind this one could be a minimum and a maximum."""
    return 2 <= len(element.beside) <= 5 and element.beside[0] < element.beside[1]


def is_declaration(element: Element) -> bool:
    """Whether this number lies between the two numbers behind it."""
    low, high, *_ = (*element.beside, 0, 0)
    return may_be_declaration(element) and low <= element.number <= high


def of_declaration(name: str, place: Location, element: Element) -> Suggested:
    """The range that the author gave: a minimum, a maximum, a step if any, and what else."""
    low, high, *more = element.beside
    note = {} if low <= element.number <= high else {"note": f"its author has {low} to {high}"}
    low, high = min(low, element.number), max(high, element.number)
    if high - low > _WIDE * max(abs(element.number), 5):
        note = {"note": f"its author has {low} to {high}"}
        nearest, farthest = bounds(element.number, _tenth(element), real=element.real)
        low, high, more = max(low, nearest), min(high, farthest), []
    if not element.real:
        low, high = ceil(low), floor(high)
    least, most = element.limits or (low, high)
    usual = (high - low) / _STEPS if element.real else max(1, round((high - low) / _STEPS))
    own = more[0] if more and 0 < more[0] <= (high - low) / 2 else usual
    if not element.real:
        own = max(1, round(own))
    called = name_of(element.label) or own_name(name, _without_last(place))
    return Suggested(
        name=called,
        value=element.number,
        minimum=max(low, least),
        maximum=min(high, most),
        step=own,
        declared=True,
        keys={"constant": str(place), **note},
    )


def _tenth(element: Element) -> Number:
    tenth = abs(element.number) / 10
    return tenth if element.real else max(1, round(tenth))


def _without_last(place: Location) -> Location:
    """The call or the record that a number is the value of, and a number itself."""
    inner = place.accesses and place.accesses[-1].field
    return replace(place, accesses=place.accesses[:-1]) if inner else place
