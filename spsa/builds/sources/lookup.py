"""Finds the literal at a location, or refuses with a remedy."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from math import isfinite

from spsa.builds.sources.literal import (
    INTEGERS,
    LARGEST_F32,
    REALS,
    UNKNOWN,
    Literal,
    Named,
    ValueType,
    as_stored,
    holds,
    inside,
    resolve,
)
from spsa.builds.sources.shape import Group, Kind, Opaque, Shape, SourceConstant, SourceFile
from spsa.core.params import Access, Location, Number
from spsa.errors import TuningError

_MAX_COMPARED = 5000
"""Names that a misspelt name is compared with."""

_MAX_NAMED = 10
"""Constants of one name that a message lists."""


class ConstantRefused(TuningError):
    """A constant cannot be read or written as asked; `found` and `remedy` are as in a Fault."""

    exit_code = 2

    def __init__(self, found: str, remedy: str) -> None:
        self.found = found
        self.remedy = remedy
        super().__init__(f"{found}; {remedy}")


@dataclass(frozen=True, slots=True)
class Element:
    """One number of a constant. `type` is its type as far as the file tells, or None."""

    location: Location
    literal: Literal
    type: str | None

    @property
    def real(self) -> bool:
        """Whether it is of a floating point type."""
        if self.type in INTEGERS:
            return False
        return self.type in REALS or isinstance(self.literal.number, float)

    def check(self, number: Number) -> None:
        """Raise ConstantRefused when `number` cannot stand here."""
        place = f"{self.location} is of type {self.type or 'a whole number'}"
        if not isfinite(number):
            raise ConstantRefused(f"{place} and cannot hold {number}", "use a finite number")
        if self.real:
            self._check_real(number, place)
            return
        if number != int(number):
            raise ConstantRefused(
                f"{place} and cannot hold {number}", 'give the parameter type = "int" or a scale'
            )
        if self.type is not None and not holds(self.type, number):
            low, high = INTEGERS[self.type]
            raise ConstantRefused(
                f"{place} and cannot hold {number}", f"keep min and max within {low} to {high}"
            )

    def _check_real(self, number: Number, place: str) -> None:
        if self.type == "f32" and abs(number) > LARGEST_F32:
            raise ConstantRefused(
                f"{place} and cannot hold {number:g}", f"keep it within {LARGEST_F32:g}"
            )

    def check_step(self, value: Number, step: float) -> None:
        """Raise ConstantRefused when `value` and `value` + `step` are one number here."""
        if self.real and as_stored(self.type, value) == as_stored(self.type, value + step):
            raise ConstantRefused(
                f"step {step:g} is lost in an {self.type or 'f64'} beside {value:g}",
                "use a larger step",
            )


def constant(file: SourceFile, location: Location) -> SourceConstant:
    """The one constant that `location` names, whatever its value is.

    A `const` or `static` goes before a variable or a macro's entry of the same name. Raises
    ConstantRefused if it is absent, ambiguous, or only in tests.
    """
    if file.broken is not None:
        raise ConstantRefused(
            f"{file.name}:{file.broken} is not valid Rust", "correct the file; does it compile?"
        )
    found = [c for c in file.by_name.get(location.name, ()) if _matches(c, location.scope)]
    shipped = [c for c in found if not c.test_only]
    declared = [c for c in shipped if c.kind is Kind.CONSTANT]
    if len(shipped) == 1 or len(declared) == 1:
        return (declared or shipped)[0]
    raise _ambiguous(file, shipped) if shipped else _absent(file, location, found)


def element(file: SourceFile, location: Location) -> Element:
    """The number at `location`. Raises ConstantRefused when there is none to be rewritten."""
    shape, kind = _descend(file, location)
    if isinstance(shape, Literal):
        return Element(location, shape, _type_name(file, kind, shape))
    if isinstance(shape, Group):
        what, first = _what(shape), next(iter(shape.entries()))[0]
        raise ConstantRefused(
            f"{location} is a whole {what} of {len(shape.items)}",
            f'name one number, as in constant = "{location}{Access(first, shape.tuple_)}"'
            + ("" if shape.tuple_ else ", or use array or table knobs"),
        )
    raise _opaque(location, shape)


def elements(file: SourceFile, location: Location) -> dict[Location, Element]:
    """All the numbers inside `location`, in the order they are written.

    Raises ConstantRefused when one of them is not written out as a number.
    """
    found = written(file, location)
    for place, shape in found.items():
        if isinstance(shape, Opaque):
            raise _opaque(place, shape)
    return {place: one for place, one in found.items() if isinstance(one, Element)}


def written(file: SourceFile, location: Location) -> dict[Location, Element | Opaque]:
    """All that stands inside `location`, whether it is written out as a number or not.

    Raises ConstantRefused where there is no such place.
    """
    shape, kind = _descend(file, location)
    return dict(_written(file, location, shape, kind))


def _written(
    file: SourceFile, location: Location, shape: Shape, kind: ValueType
) -> Iterator[tuple[Location, Element | Opaque]]:
    match shape:
        case Literal():
            yield location, Element(location, shape, _type_name(file, kind, shape))
        case Group():
            for position, item in shape.entries():
                place = location.at(position, field=shape.tuple_)
                yield from _written(file, place, item, _inside(file, shape, kind, position))
        case Opaque():
            yield location, shape


def _matches(candidate: SourceConstant, scope: tuple[str, ...]) -> bool:
    wanted = scope[1:] if scope[:1] == ("crate",) else scope
    if wanted and wanted[-1] == candidate.condition:
        wanted, scope = wanted[:-1], scope[:-1]
    if scope == ("crate",):
        return not candidate.scope
    return not wanted or candidate.scope[-len(wanted) :] == wanted


def _descend(file: SourceFile, location: Location) -> tuple[Shape, ValueType]:
    """What stands at a location, and its type."""
    owner = constant(file, location)
    shape, kind = owner.value, owner.type
    for depth, access in enumerate(location.accesses):
        passed = Location(location.name, location.accesses[:depth], location.scope, location.file)
        group, position = _enter(shape, access, passed)
        kind = _inside(file, group, kind, access.position)
        shape = group.items[position]
    return shape, kind


def _enter(shape: Shape, access: Access, passed: Location) -> tuple[Group, int]:
    """The group that an access enters, and the position of the item that it names."""
    if isinstance(shape, Opaque):
        raise _opaque(passed, shape)
    if isinstance(shape, Literal):
        raise ConstantRefused(f"{passed} is a single number", f"remove {access}")
    keys = [position for position, _ in shape.entries()]
    proper = [Access(key, field=shape.tuple_) for key in keys]
    if access in proper:
        return shape, proper.index(access)
    if access.position in keys:
        what = f"a {_what(shape)}, entered by ." if shape.tuple_ else "an array, entered by []"
        raise ConstantRefused(
            f"{passed} is {what}",
            f"write {passed}{Access(access.position, field=shape.tuple_)}",
        )
    if shape.names:
        known = ", ".join(shape.names)
        raise ConstantRefused(f"{passed} has no field {access.position}", f"use one of {known}")
    raise ConstantRefused(
        f"{passed} has {len(keys)} elements and none at {access.position}",
        f"use 0 to {len(keys) - 1}",
    )


def _what(shape: Group) -> str:
    if shape.computed:
        return "list of the numbers in an expression"
    return "struct" if shape.names else "tuple" if shape.tuple_ else "array"


def _inside(file: SourceFile, shape: Group, kind: ValueType, position: int | str) -> ValueType:
    """The type of one item; a function's arguments are of types that the file does not tell."""
    told = isinstance(kind, Named) and shape.callee in (kind.name, "Self")
    if shape.computed or (shape.callee and not told):
        return UNKNOWN
    return inside(kind, position, file.aliases)


def _type_name(file: SourceFile, kind: ValueType, literal: Literal) -> str | None:
    found = resolve(kind, file.aliases)
    known = isinstance(found, Named) and (found.name in INTEGERS or found.name in REALS)
    return literal.type or (found.name if known and isinstance(found, Named) else None)


def _absent(
    file: SourceFile, location: Location, found: Sequence[SourceConstant]
) -> ConstantRefused:
    if found:
        return ConstantRefused(
            f"{location} is only in tests, {file.name}:{found[0].line}",
            "name a constant that the engine itself uses",
        )
    names = {name.upper(): name for name in [*file.by_name][:_MAX_COMPARED]}
    close = get_close_matches(location.name.upper(), names, n=1)
    if elsewhere := file.by_name.get(location.name):
        remedy = f'write constant = "{path_of(elsewhere[0])}"'
    elif close:
        remedy = f"did you mean {names[close[0]]}?"
    else:
        remedy = 'name the constant it stands for: constant = "NAME" or "path/to/file.rs::NAME"'
    return ConstantRefused(f"there is no constant {location} in {file.name}", remedy)


def _ambiguous(file: SourceFile, found: Sequence[SourceConstant]) -> ConstantRefused:
    lines = " and ".join(str(c.line) for c in found[:_MAX_NAMED])
    paths = [path_of(c) for c in found[:_MAX_NAMED]]
    distinct = len(set(paths)) == len(paths)
    remedy = f"write {' or '.join(paths)}" if distinct else "give them different names"
    count = "twice" if len(found) == 2 else f"{len(found)} times"
    lines += " and others" if len(found) > _MAX_NAMED else ""
    return ConstantRefused(f"{found[0].name} is {count} in {file.name}, on lines {lines}", remedy)


def path_of(candidate: SourceConstant) -> str:
    """A constant as a location names it among others of its name."""
    condition = (candidate.condition,) if candidate.condition else ()
    return "::".join((*(candidate.scope or ("crate",)), *condition, candidate.name))


def _opaque(location: Location, shape: Opaque) -> ConstantRefused:
    value = shape.text if len(shape.text) <= 60 else f"{shape.text[:57]}..."
    if shape.what == "one number repeated":
        remedy = "write its elements out in the source"
    elif shape.names:
        remedy = f"it follows by itself: tune {', '.join(shape.names)}"
    else:
        remedy = "only numbers that are written out can be tuned"
    return ConstantRefused(f"{location} is {shape.what}: {value}", remedy)
