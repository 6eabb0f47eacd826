"""Checks params.toml against the engine: its source, or the options that it declares."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

from spsa.builds.sources.constant import ConstantRefused, Element, Kind, SourceFile
from spsa.builds.sources.rewriting import constant, elements, parsed, sources_of
from spsa.builds.sources.rewriting import element as element_at
from spsa.config.document import Found, Key, read_document
from spsa.config.settings import Config
from spsa.core.game_settings import GameSettings
from spsa.core.parameter import Knob, Number, Parameter, assignments, by_location
from spsa.core.params import Space
from spsa.core.uci_options import CHESS960, Declarations
from spsa.errors import MAX_FAULTS, Fault, InvalidInput
from spsa.files import content, encoding_of

MAX_SOURCE = 2**22
"""Bytes of one source file: parsing takes a microsecond and a kilobyte of memory a byte."""


def read_sources(
    space: Space, source_path: Path, constants_file: str, file: Path | str = "params.toml"
) -> dict[str, str]:
    """The texts of the files that hold parameters, the constants file first, line ends kept.

    Raises InvalidInput with every one that is missing or is no text: those that the constant of
    a parameter names at its line of `file`.
    """
    texts: dict[str, str] = {}
    faults: list[Fault] = []
    for name in sources_of(space, constants_file):
        path = source_path / name
        try:
            source = content(path, MAX_SOURCE)
            texts[name] = source.decode(encoding_of(source))
        except (OSError, UnicodeDecodeError) as error:
            why = f"cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}"
            p = next((p for p in space.parameters if p.location.file == name), None)
            if p is None:
                remedy = "correct [build] source_path and constants_file"
                faults += InvalidInput.of(path, path.name, why, remedy).faults
            else:
                remedy = f'correct "{p.location}", whose file is in [build] source_path'
                faults += InvalidInput.of(file, p.name, f"{path} {why}", remedy, p.line).faults
    if faults:
        raise InvalidInput(faults)
    return texts


def check_against_source(
    space: Space, texts: Mapping[str, str], file: str = "params.toml"
) -> tuple[Fault, ...]:
    """The reasons why parameters cannot be written into these sources.

    `texts` are what `read_sources` gives; faults are reported in `file`. Finds constants that are
    missing, ambiguous or computed, indexes out of range, and values within a parameter's range that
    the type of the number cannot hold.
    """
    files, usual = parsed(texts)
    faults: list[Fault] = []
    for knobs in by_location(space.parameters).values():
        p = knobs[0]
        try:
            _check_bounds(knobs, files[p.location.file or usual])
        except ConstantRefused as error:
            found, remedy = error.found, error.remedy
            faults.append(Fault(file=file, line=p.line, name=p.name, found=found, remedy=remedy))
    return tuple(faults[:MAX_FAULTS])


def source_lines(space: Space, texts: Mapping[str, str]) -> dict[str, tuple[int, str]]:
    """The line of each parameter's constant in its source, by name: its number from 1 and its text.

    A constant of several numbers has the line of the first one that is meant.
    """
    return {p.name: line_of(file, one) for p, file, one in _places(space, texts)}


def other_values(space: Space, texts: Mapping[str, str]) -> dict[str, tuple[Number, Number]]:
    """The number in the source, and the one that stands for `value`, where these differ."""
    places = ((p, one) for p, _, one in _places(space, texts) if p.role is Knob.VALUE)
    both = {p.name: (one.number, p.to_engine(p.value)) for p, one in places}
    return {name: (there, own) for name, (there, own) in both.items() if there != own}


def _places(
    space: Space, texts: Mapping[str, str]
) -> Iterator[tuple[Parameter, SourceFile, Element]]:
    """Each parameter with its file and the first of its numbers there."""
    files, usual = parsed(texts)
    for p in space.parameters:
        file = files[p.location.file or usual]
        yield p, file, next(iter(elements(file, p.location).values()))


def line_of(file: SourceFile, element: Element) -> tuple[int, str]:
    """The line in which a number stands: its number from 1 and its text."""
    before = file.content[: element.start]
    line = file.content[before.rfind(b"\n") + 1 :].partition(b"\n")[0]
    return before.count(b"\n") + 1, line.decode().strip()


def _check_bounds(knobs: Sequence[Parameter], file: SourceFile) -> None:
    """Try the bounds of a parameter, or of the two of an array: no value lies beyond them."""
    at, is_value = knobs[0].location, knobs[0].role is Knob.VALUE
    found = {at: element_at(file, at)} if is_value else elements(file, at)
    current = {location: one.number for location, one in found.items()}
    for corner in product(*map(extremes, knobs)):
        values = {knob.name: value for knob, value in zip(knobs, corner, strict=True)}
        for location, number in assignments(knobs, values, lambda _: current).items():
            found[location].check(number)
    if is_value and constant(file, at).kind in (Kind.FUNCTION, Kind.LOCAL):
        _check_value(knobs[0], *found.values())


def _check_value(knob: Parameter, element: Element) -> None:
    """Whether the number of the source is one that the parameter may have.

    A number in a function is only known by its place, which may be that of another one.
    """
    low, high = sorted(bound * (knob.scale or 1) for bound in (knob.minimum, knob.maximum))
    if knob.active and not low - 0.5 <= element.number <= high + 0.5:  # bounds are rounded
        raise ConstantRefused(
            f"{knob.location} is {element.number:g} in the source, and value = "
            f"{knob.value:g} with min = {knob.minimum:g} and max = {knob.maximum:g} here",
            "name the constant that is meant, or let min and max include the source's number",
        )


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
    return (
        *read_document(config.path).faults(_of_options(config.game_settings, declarations)),
        *read_document(config.run.params).faults(_of_parameters(space, declarations)),
    )


def _of_options(settings: GameSettings, declarations: Declarations) -> Iterator[Found]:
    for name, value in settings.common_options.items():
        if objection := declarations.objection(name, value):
            key: Key = ("engine", "files" if name in settings.engine_files else "options", name)
            remedy = "write the option as the engine declares it in its reply to `uci`"
            if name == CHESS960:
                key = ("games", "chess960")
                remedy = "remove it, or let the engine declare the option"
            yield key, _NOT_ACCEPTED + objection, remedy


def option_places(config: Config) -> dict[str, str]:
    """Where options are written, as `config.toml:5: [engine.options]`."""
    lines, table = read_document(config.path).lines, ("engine", "options")
    own = {key[2]: line for key, line in lines.items() if len(key) > 2 and key[:2] == table}
    return {name: f"{config.path}:{line}: [engine.options]" for name, line in own.items()}


def _of_parameters(space: Space, declarations: Declarations) -> Iterator[Found]:
    for p in space.parameters:
        told = (declarations.objection(p.option, str(p.to_engine(v))) for v in extremes(p))
        if objection := next((one for one in told if one is not None), None):
            remedy = "correct `option`, or keep min and max inside the option's range"
            yield (p.name,), _NOT_ACCEPTED + objection, remedy
