"""From the options of a UCI engine to the parameters that `init --engine` suggests. Pure."""

import re
from dataclasses import replace
from itertools import accumulate

from spsa.config.space import MAX_PARAMETERS
from spsa.config.suggestions.ranges import Suggested, around, bounds, opposed
from spsa.config.suggestions.ranking import Objection, is_standard, name_of, objection_to_name
from spsa.core.uci_options import Declarations, Declared

_STEPS = 20
"""Steps in a range, as in the lines that the tuning macro of Stockfish prints."""

_WIDE = 20
"""A range of more than so many times the default is a limit, and no place to search in."""

_OTHER_TYPES = Objection("no number: set it in [engine.options]")
_STANDARD = Objection("an option of the protocol, or of how the engine is run")
_TOO_MANY = Objection(f"there are {MAX_PARAMETERS:,} parameters already")
_ZERO = Objection("0 may stand for switched off: give it a range of its own", left_out=False)
_NO_RANGE = Objection("without a default between a minimum and a maximum")


def suggest_options(declarations: Declarations) -> tuple[Suggested, ...]:
    """A parameter for every option; what is not tunable is left out.

    A string whose default is a number is one: OpenBench sends fractions to such options.
    """
    taken: set[str] = set()
    found = [_named(one, taken) for one in declarations.by_name.values()]
    active = accumulate(not one.reason for one in found)
    return tuple(
        one if count <= MAX_PARAMETERS else opposed(one, _TOO_MANY)
        for one, count in zip(found, active, strict=True)
    )


def _named(option: Declared, taken: set[str]) -> Suggested:
    name = name_of(option.name) or "option_"
    numbered = (f"{name}_{n}" for n in range(2, len(taken) + 3))
    free = next(each for each in (name, *numbered) if each not in taken)
    taken.add(free)
    keys = {} if free == option.name else {"option": option.name}
    found = _string(option) if option.type == "string" else _spin(option)
    suggested = replace(found, name=free, keys=keys)
    objection = _objection(option)
    return suggested if objection is None else opposed(suggested, objection)


def _objection(option: Declared) -> Objection | None:
    if option.type not in ("spin", "string") or (option.type, option.default) == ("string", None):
        return _OTHER_TYPES
    if is_standard(option.name):
        return _STANDARD
    if option.type == "spin" and not _has_range(option):
        return _NO_RANGE
    if option.type == "string" and option.default == 0:
        return _ZERO
    found = objection_to_name(re.sub(r"\W+", "_", option.name))
    return None if found is None else replace(found, left_out=False)


def _has_range(option: Declared) -> bool:
    default, low, high = option.default, option.low, option.high
    if default is None or low is None or high is None:
        return False
    return low <= default <= high > low


def _string(option: Declared) -> Suggested:
    """A range around the default: the engine declares none."""
    value = option.default or 0
    return around(option.name, value, real=isinstance(value, float))


def _spin(option: Declared) -> Suggested:
    """The range that the engine declares, or around its default where that is too wide."""
    value = option.default or 0
    low, high = option.low or 0, option.high or 0
    if high - low > _WIDE * max(abs(value), 5):
        nearest, farthest = bounds(value, max(1, round(abs(value) / 10)), real=False)
        low, high = max(low, int(nearest)), min(high, int(farthest))
    step = max(1, round((high - low) / _STEPS))
    return Suggested(name=option.name, value=value, minimum=low, maximum=high, step=step)
