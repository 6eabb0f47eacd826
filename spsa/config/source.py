"""Checks params.toml against the engine: its source, or the options that it declares."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from math import ceil
from pathlib import Path
from statistics import fmean

from spsa.builds.sources.constant import ConstantRefused, Element, Kind, SourceFile
from spsa.builds.sources.reading import parse
from spsa.builds.sources.rewriting import constant, elements, sources_of
from spsa.builds.sources.rewriting import element as element_at
from spsa.config.document import read_document
from spsa.config.settings import Config
from spsa.core.params import (
    Number,
    Parameter,
    Role,
    Space,
    assignments,
    by_location,
)
from spsa.core.uci_options import CHESS960, Declarations
from spsa.errors import MAX_FAULTS, Fault, InvalidInput
from spsa.files import content

_ROUNDED = 0.5
"""What a bound that is no whole number may leave out."""

MAX_SOURCE = 2**22
"""Bytes of one source file: parsing takes a microsecond and a kilobyte of memory a byte."""


def read_sources(space: Space, source_path: Path, constants_file: str) -> dict[str, str]:
    """The texts of the files that hold parameters, the constants file first, line ends kept.

    Raises InvalidInput with every file that is missing or is not UTF-8.
    """
    texts: dict[str, str] = {}
    faults: list[Fault] = []
    for name in sources_of(space, constants_file):
        try:
            texts[name] = content(source_path / name, MAX_SOURCE).decode("utf-8")
        except OSError as error:
            faults.append(_unreadable(source_path / name, error.strerror or str(error)))
        except UnicodeDecodeError:
            faults.append(_unreadable(source_path / name, "it is not UTF-8"))
    if faults:
        raise InvalidInput(faults)
    return texts


def check_against_source(
    space: Space, texts: Mapping[str, str], constants_file: str, file: str = "params.toml"
) -> tuple[Fault, ...]:
    """The reasons why parameters cannot be written into these sources.

    `texts` are the sources by path inside the tree; faults are reported in `file`. Finds constants
    that are missing, ambiguous or computed, indexes out of range, and values within a parameter's
    range that the Rust type cannot hold.
    """
    files = {name: parse(text, name) for name, text in texts.items()}
    faults = (
        Fault(file=file, line=knobs[0].line, name=knobs[0].name, found=found, remedy=remedy)
        for knobs in by_location(space).values()
        for found, remedy in _refusals(knobs, files, constants_file)
    )
    return tuple(islice(faults, MAX_FAULTS))


def source_lines(
    space: Space, texts: Mapping[str, str], constants_file: str
) -> dict[str, tuple[int, str]]:
    """The line of each parameter's constant in its source, by name: its number from 1 and its text.

    A constant of several numbers has the line of the first one that is meant.
    """
    files = {name: parse(text, name) for name, text in texts.items()}
    found = {}
    for parameter in space.parameters:
        location = parameter.place.location
        file = files[location.file or constants_file]
        found[parameter.name] = line_of(file, next(iter(elements(file, location).values())))
    return found


def source_values(space: Space, texts: Mapping[str, str], constants_file: str) -> dict[str, Number]:
    """The numbers in the source of the parameters that are single numbers, by name."""
    files = {name: parse(text, name) for name, text in texts.items()}
    places = {p.name: p.place.location for p in space.parameters if p.place.role is Role.VALUE}
    return {
        name: element_at(files[location.file or constants_file], location).number
        for name, location in places.items()
    }


def other_values(
    space: Space, texts: Mapping[str, str], constants_file: str
) -> dict[str, tuple[Number, Number]]:
    """The number in the source, and the one that stands for `value`, where these differ."""
    there = source_values(space, texts, constants_file)
    own = {p.name: p.to_engine(p.value) for p in space.parameters if p.name in there}
    return {name: (there[name], own[name]) for name in own if there[name] != own[name]}


def line_of(file: SourceFile, element: Element) -> tuple[int, str]:
    """The line in which a number stands: its number from 1 and its text."""
    row = file.text.encode("utf-8", "surrogatepass")[: element.start].count(b"\n")
    return row + 1, file.text.split("\n")[row].strip()


def _unreadable(path: Path, reason: str) -> Fault:
    remedy = "correct [build] source_path and constants_file, or the parameter's constant"
    return Fault(
        file=str(path), line=None, name=path.name, found=f"cannot be read: {reason}", remedy=remedy
    )


def _refusals(
    knobs: Sequence[Parameter], files: Mapping[str, SourceFile], constants_file: str
) -> Iterator[tuple[str, str]]:
    """At most one refusal for each place: further ones would repeat it."""
    name = knobs[0].place.location.file or constants_file
    if name not in files:
        yield f"{name} is not among the sources", "name a file inside the source tree"
        return
    try:
        _try_corners(knobs, files[name])
    except ConstantRefused as refused:
        yield refused.found, refused.remedy
    except ArithmeticError:
        yield f"{knobs[0].place.location} overflows floating point", "keep min and max smaller"


def _try_corners(knobs: Sequence[Parameter], file: SourceFile) -> None:
    """Try the extremes of every knob; formulas are linear, so no value lies beyond them."""
    place = knobs[0].place
    if place.role is Role.VALUE:
        found = {place.location: element_at(file, place.location)}
    else:
        found = elements(file, place.location)
    _check_range(knobs, len(found))
    current = {location: one.number for location, one in found.items()}
    for corner in _corners(knobs):
        for location, number in assignments(Space(tuple(knobs)), corner, lambda _: current).items():
            found[location].check(number)
    if place.role is Role.VALUE:
        if constant(file, place.location).kind in (Kind.FUNCTION, Kind.LOCAL):
            _check_value(knobs[0], *found.values())
    elif all(isinstance(number, int) for number in current.values()):
        for knob in knobs:
            _check_knob(knob, list(current.values()))


def _check_value(knob: Parameter, element: Element) -> None:
    """Whether the number of the source is one that the parameter may have.

    A number in a function is only known by its place, which may be that of another one.
    """
    low, high = sorted(bound * (knob.scale or 1) for bound in (knob.minimum, knob.maximum))
    if knob.active and not low - _ROUNDED <= element.number <= high + _ROUNDED:
        raise ConstantRefused(
            f"{knob.place.location} is {element.number:g} in the source, and value = "
            f"{knob.value:g} with min = {knob.minimum:g} and max = {knob.maximum:g} here",
            "name the constant that is meant, or let min and max include the source's number",
        )


def _check_knob(knob: Parameter, numbers: list[Number]) -> None:
    """Whether plus and minus of a knob, two steps apart, differ in an entry wherever theta is."""
    if not knob.active:
        return
    most = _change_of_one(knob, numbers) * (knob.scale or 1)
    if most == 0:
        raise ConstantRefused(
            f"all entries of {knob.place.location} are equal, so this knob changes none of them",
            'use knob = "bias", or set active = false',
        )
    if 2 * knob.step * most < 1 - 1e-9:
        raise ConstantRefused(
            f"a step of {knob.step:g} changes no entry of {knob.place.location}",
            f"use at least {ceil(500 / most) / 1000:g}: then plus and minus differ in one",
        )


def _change_of_one(knob: Parameter, numbers: list[Number]) -> float:
    """How far the entry that follows a knob the most moves with a change of 1."""
    first, last = knob.place.first, knob.place.last
    if knob.place.role is Role.AMPLITUDE:
        mean = fmean(numbers)
        return max(abs(number - mean) for number in numbers)
    if knob.place.role is Role.PER_INDEX:
        return (len(numbers) - 1 if last is None else last) - first
    return 1.0


def _check_range(knobs: Sequence[Parameter], size: int) -> None:
    place = knobs[0].place
    if place.kind != "array":
        return
    last = place.first + 1 if place.last is None else place.last
    if last >= size:
        raise ConstantRefused(
            f"{place.location} has {size} elements and none at {last}",
            f"use first and last within 0 to {size - 1}",
        )


def _corners(knobs: Sequence[Parameter]) -> Iterator[dict[str, float]]:
    for corner in product(*(extremes(knob) for knob in knobs)):
        yield {knob.name: value for knob, value in zip(knobs, corner, strict=True)}


def extremes(knob: Parameter) -> tuple[float, ...]:
    """The bounds of a parameter; only its value if it is frozen."""
    return (knob.minimum, knob.maximum) if knob.active else (knob.nearest(knob.value),)


_NOT_ACCEPTED = "the engine would not accept it: "


def check_against_engine(
    space: Space, declarations: Declarations, config: Config
) -> tuple[Fault, ...]:
    """The faults of the delivery over UCI: an unknown option, or a value outside its range.

    Checks every parameter at both ends of its range.
    """
    return (*_of_options(config, declarations), *_of_parameters(space, declarations, config))


def _of_options(config: Config, declarations: Declarations) -> Iterator[Fault]:
    lines, settings = read_document(config.path).lines, config.game_settings
    files = {name: file.path for name, file in settings.engine_files.items()}
    for table, values in {"options": settings.engine_options, "files": files}.items():
        for name, value in values.items():
            if objection := declarations.objection(name, value):
                of_game = name == CHESS960 and settings.book.chess960
                yield Fault(
                    file=str(config.path),
                    line=lines.get(("engine", table, name)),
                    name=f"engine.{table}",
                    found=_NOT_ACCEPTED + objection,
                    remedy="remove chess960 from [games], or let the engine declare the option"
                    if of_game
                    else "write the option as the engine declares it in its reply to `uci`",
                )


def _of_parameters(space: Space, declarations: Declarations, config: Config) -> Iterator[Fault]:
    for p in space.parameters:
        told = (declarations.objection(p.option, str(p.to_engine(v))) for v in extremes(p))
        if objection := next((one for one in told if one is not None), None):
            yield Fault(
                file=str(config.run.params),
                line=p.line,
                name=p.name,
                found=_NOT_ACCEPTED + objection,
                remedy="correct `option`, or keep min and max inside the option's range",
            )
