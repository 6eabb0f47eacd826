"""Which numbers to write where in the source, so that the engine has given values."""

from collections.abc import Callable, Iterator, Mapping
from math import floor

from spsa.core.params.parameter import Number, Parameter
from spsa.core.params.placement import Location, Place, Role
from spsa.core.params.space import Space

# The numbers inside a constant in the original source, each with its location.
Elements = Callable[[Location], Mapping[Location, Number]]


def assignments(
    space: Space, values: Mapping[str, float], elements: Elements
) -> dict[Location, Number]:
    """Every number to write, from one value for each parameter.

    Arrays need the numbers of the source, for their count and type. Errors of `elements` are not
    caught.
    """
    written: dict[Location, Number] = {}
    for location, knobs in by_location(space).items():
        settings = {p.place.role: p.to_engine(values[p.name]) for p in knobs}
        if Role.VALUE in settings:
            written[location] = settings[Role.VALUE]
            continue
        base, slope = settings[Role.BASE], settings[Role.PER_INDEX]
        for i, (element, number) in enumerate(elements(location).items()):
            written[element] = _as(number, base + i * slope)
    return written


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
