"""Reads where a parameter's value goes: `constant`, `array` or `table`, and `knob`."""

from spsa.config.section import Section
from spsa.core.params import (
    ArrayKnob,
    ArrayRole,
    Constant,
    Location,
    Placement,
    TableKnob,
    TableRole,
)

_KINDS = ("constant", "array", "table")


def read_placement(section: Section) -> Placement:
    """`constant`, or `array` or `table` with `knob`; the default is the name in capitals."""
    given = [kind for kind in _KINDS if kind in section]
    if len(given) > 1:
        section.fault(given[1], f"{' and '.join(given)} are both given", "keep one of them")
    if "array" in given:
        return _array(section)
    if "table" in given:
        return _table(section)
    _only_with("knob", "array or table", section)
    _only_for_arrays(section)
    return Constant(_location(section, "constant"))


def _array(section: Section) -> ArrayKnob:
    role = ArrayRole(_knob(section, tuple(ArrayRole)))
    first = section.whole("first", 0)
    last = section.whole("last", first + 1) if "last" in section else None
    if last is not None and last <= first:
        section.fault(
            "last", f"last = {last} is not after first = {first}", "name two elements or more"
        )
    return ArrayKnob(_location(section, "array"), role, first, last)


def _table(section: Section) -> TableKnob:
    _only_for_arrays(section)
    role = TableRole(_knob(section, tuple(TableRole)))
    return TableKnob(_location(section, "table"), role)


def _knob(section: Section, roles: tuple[str, ...]) -> str:
    if "knob" not in section:
        section.get("knob")
        listed = " or ".join(f'"{role}"' for role in roles)
        section.fault(None, "knob is missing", f"write knob = {listed}")
        return roles[0]
    return section.choice("knob", roles, roles[0])


def _only_for_arrays(section: Section) -> None:
    _only_with("first", "array", section)
    _only_with("last", "array", section)


def _only_with(key: str, kind: str, section: Section) -> None:
    if key in section:
        section.get(key)
        section.fault(key, f"{key} is given without {kind}", f"remove it, or add {kind}")


def _location(section: Section, kind: str) -> Location:
    usual = section.name.upper()
    for other in _KINDS:
        section.get(other)
    try:
        return Location.parse(section.text(kind, usual))
    except ValueError as error:
        if kind in section:
            remedy = 'write "NAME", "NAME[2]", "NAME.1" or "path/to/file.rs::NAME"'
            section.fault(kind, str(error), remedy)
        return Location("UNKNOWN")
