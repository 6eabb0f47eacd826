"""Which numbers to write where in the source, so that the engine has given values."""

from collections.abc import Callable, Iterator, Mapping
from math import floor
from statistics import fmean

from spsa.core.params.parameter import Number, Parameter
from spsa.core.params.placement import ROLES, Location, Place, Role
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
    seen: dict[tuple[str | None, str], list[Parameter]] = {}
    for later in space.parameters:
        where = later.place.location
        namesakes = seen.setdefault((where.file, where.name), [])
        earlier = next((one for one in namesakes if _overlap(one.place, later.place)), None)
        if earlier is not None:
            yield earlier, later
        namesakes.append(later)


def _overlap(one: Place, other: Place) -> bool:
    """Whether two places in constants of the same name have a number in common.

    An access leads into what the accesses before it reach, a scope lies in those before it.
    """
    first, second = one.location, other.location
    if first == second:
        return other.role is not one.partner
    accesses = zip(first.accesses, second.accesses, strict=False)
    scopes = zip(reversed(first.scope), reversed(second.scope), strict=False)
    return all(a == b for a, b in accesses) and all(a == b for a, b in scopes)
