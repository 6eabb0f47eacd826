"""Which numbers to write where in the source, so that the engine has given values."""

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from math import floor
from statistics import fmean

from spsa.core.params.parameter import Number, Parameter
from spsa.core.params.placement import ROLES, Access, Location, Place, Role
from spsa.core.params.space import Space

# The numbers inside a constant in the original source, each with its location.
Elements = Callable[[Location], Mapping[Location, Number]]


def assignments(
    space: Space, values: Mapping[str, float], elements: Elements
) -> dict[Location, Number]:
    """Every number to write, from one value for each parameter.

    Tables and arrays need the numbers of the source: their count, their type, and for a table its
    shape. Errors of `elements` are not caught.
    """
    written: dict[Location, Number] = {}
    for location, knobs in by_location(space).items():
        settings = {p.place.role: p.to_engine(values[p.name]) for p in knobs}
        place = knobs[0].place
        if place.role is Role.VALUE:
            written[location] = settings[Role.VALUE]
        elif place.role in ROLES["array"]:
            written |= _filled_array(place, settings, elements(location))
        else:
            written |= _scaled_table(settings, elements(location))
    return written


def _filled_array(
    place: Place, settings: Mapping[Role, Number], source: Mapping[Location, Number]
) -> dict[Location, Number]:
    base, slope = settings[Role.BASE], settings[Role.PER_INDEX]
    last = len(source) if place.last is None else place.last + 1
    chosen = list(source.items())[place.first : last]
    return {location: _as(number, base + i * slope) for i, (location, number) in enumerate(chosen)}


def _scaled_table(
    settings: Mapping[Role, Number], source: Mapping[Location, Number]
) -> dict[Location, Number]:
    amplitude = settings.get(Role.AMPLITUDE, 1.0)
    bias = settings.get(Role.BIAS, 0.0)
    mean = fmean(source.values())
    return {
        location: _as(number, mean + amplitude * (number - mean) + bias)
        for location, number in source.items()
    }


def _as(like: Number, number: float) -> Number:
    """`number` as a whole number if `like` is one."""
    return floor(number + 0.5) if isinstance(like, int) else float(number)


def by_location(space: Space) -> dict[Location, list[Parameter]]:
    """The parameters that go to each location."""
    grouped: dict[Location, list[Parameter]] = {}
    for parameter in space.parameters:
        grouped.setdefault(parameter.place.location, []).append(parameter)
    return grouped


def conflicts(space: Space) -> Iterator[tuple[Parameter, Parameter]]:
    """Pairs (earlier, later) of parameters that overwrite each other, one for each later."""
    taken: dict[_Place, Parameter] = {}
    for later in space.parameters:
        earlier = next((taken[place] for place in _reached(later) if place in taken), None)
        if earlier is not None:
            yield earlier, later
        for place in _covered(later):
            taken.setdefault(place, later)


_Place = tuple[str | None, str, tuple[Access, ...], tuple[str, ...], bool, bool, str]
"""A key in the table of the places that parameters write to.

File, name, the first accesses, the last scopes, whether those are all accesses and all scopes, and
the role. Two locations overlap if the accesses of one begin with those of the other and the scopes
of one end with those of the other. Then one of them covers a key that the other reaches. One
look-up for each key keeps the search linear in the number of parameters.
"""


def _covered(parameter: Parameter) -> Iterator[_Place]:
    where, role = parameter.place.location, parameter.place.role
    for accesses, scope in product(_beginnings(where.accesses), _endings(where.scope)):
        whole = accesses == where.accesses, scope == where.scope
        yield where.file, where.name, accesses, scope, *whole, role


def _reached(parameter: Parameter) -> Iterator[_Place]:
    """Every key at which an earlier parameter would overwrite this one, except its partner's."""
    where, partner = parameter.place.location, parameter.place.partner
    for accesses, scope in product(_beginnings(where.accesses), _endings(where.scope)):
        all_accesses = (True, False) if accesses == where.accesses else (True,)
        all_scopes = (True, False) if scope == where.scope else (True,)
        here = (accesses, scope) == (where.accesses, where.scope)
        for *whole, role in product(all_accesses, all_scopes, Role):
            if not (here and all(whole) and role == partner):
                yield where.file, where.name, accesses, scope, whole[0], whole[1], role


def _beginnings(accesses: tuple[Access, ...]) -> list[tuple[Access, ...]]:
    return [accesses[:size] for size in range(len(accesses) + 1)]


def _endings(scope: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [scope[size:] for size in range(len(scope) + 1)]
