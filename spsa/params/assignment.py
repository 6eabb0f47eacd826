"""What has to be written where in the source so that the engine has given values."""

from collections.abc import Callable, Iterator, Mapping
from math import floor
from statistics import fmean

from spsa.params.location import Location
from spsa.params.parameter import Number, Parameter
from spsa.params.placement import ArrayKnob, ArrayRole, Constant, TableKnob, TableRole, target
from spsa.params.space import Space

# The numbers inside a constant as the untouched source has them, each with its own location.
Elements = Callable[[Location], Mapping[Location, Number]]


def assignments(
    space: Space, values: Mapping[str, float], elements: Elements
) -> dict[Location, Number]:
    """Every number to be written, from one value a parameter.

    Tables and arrays need the source's own numbers: their length, their kind, and for a table the
    shape that is kept. `elements` may raise; nothing is caught here.
    """
    written: dict[Location, Number] = {}
    for knobs in _by_target(space).values():
        settings = {_role(p): p.to_engine(values[p.name]) for p in knobs}
        match knobs[0].place:
            case Constant(location):
                written[location] = settings["value"]
            case ArrayKnob(array=array) as place:
                written |= _filled(place, settings, elements(array))
            case TableKnob(table=table):
                written |= _bent(settings, elements(table))
    return written


def _filled(
    place: ArrayKnob, settings: Mapping[str, Number], source: Mapping[Location, Number]
) -> dict[Location, Number]:
    base, slope = settings[ArrayRole.BASE], settings[ArrayRole.PER_INDEX]
    last = len(source) if place.last is None else place.last + 1
    chosen = list(source.items())[place.first : last]
    return {location: _as(number, base + i * slope) for i, (location, number) in enumerate(chosen)}


def _bent(
    settings: Mapping[str, Number], source: Mapping[Location, Number]
) -> dict[Location, Number]:
    amplitude = settings.get(TableRole.AMPLITUDE, 1.0)
    bias = settings.get(TableRole.BIAS, 0.0)
    mean = fmean(source.values())
    return {
        location: _as(number, mean + amplitude * (number - mean) + bias)
        for location, number in source.items()
    }


def _as(like: Number, number: float) -> Number:
    """`number` as the source writes its neighbours: a whole one where they are whole."""
    return floor(number + 0.5) if isinstance(like, int) else float(number)


def _role(parameter: Parameter) -> str:
    match parameter.place:
        case Constant():
            return "value"
        case ArrayKnob(role=role) | TableKnob(role=role):
            return role


def _by_target(space: Space) -> dict[Location, list[Parameter]]:
    grouped: dict[Location, list[Parameter]] = {}
    for parameter in space.parameters:
        grouped.setdefault(target(parameter.place), []).append(parameter)
    return grouped


def conflicts(space: Space) -> Iterator[tuple[Parameter, Parameter]]:
    """The pairs (earlier, later) of parameters that would write over each other."""
    for i, later in enumerate(space.parameters):
        for earlier in space.parameters[:i]:
            if target(earlier.place).overlaps(target(later.place)) and not _partners(
                earlier, later
            ):
                yield earlier, later


def _partners(first: Parameter, second: Parameter) -> bool:
    """Whether the two are the two knobs of one array or table."""
    return (
        type(first.place) is type(second.place)
        and target(first.place) == target(second.place)
        and not isinstance(first.place, Constant)
        and _role(first) != _role(second)
    )
