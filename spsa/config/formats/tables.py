"""A space as the tables of params.toml, which CSV and JSON hold too, or as a peer's parameters."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import tomli_w

from spsa.config.formats.objects import write_csv
from spsa.config.formats.peer import PeerParameter
from spsa.core.params import Constant, Number, Parameter, Space
from spsa.core.params.placement import to_json


def params_file(space: Space) -> str:
    """TOML that `load_space` reads as the same space."""
    return tomli_w.dumps(_document(space))


def params_json(space: Space) -> str:
    """The same document as JSON."""
    return json.dumps(_document(space), indent=2) + "\n"


def params_csv(space: Space) -> str:
    """The same tables, one a row; constraints are left out."""
    return write_csv(_tables(space))


def _document(space: Space) -> dict[str, Any]:
    constraints = [str(constraint) for constraint in space.constraints]
    return ({"constraints": constraints} if constraints else {}) | _tables(space)


def _tables(space: Space) -> dict[str, dict[str, object]]:
    return {p.name: _table(p) for p in space.parameters}


def _table(p: Parameter) -> dict[str, object]:
    keys = {
        "value": p.value,
        "min": p.minimum,
        "max": p.maximum,
        "step": p.step,
        "type": "int" if p.integral else "float",
        "scale": p.scale,
        "option": p.option if p.option != p.name else None,
        "group": p.group or None,
        "note": p.note or None,
        "active": None if p.active else False,
        **_place(p),
    }
    return {key: value for key, value in keys.items() if value is not None}


def _place(p: Parameter) -> dict[str, object]:
    usual = isinstance(p.place, Constant) and str(p.place.location) == p.name.upper()
    return {} if usual else to_json(p.place)


def peer_parameters(
    space: Space, values: Mapping[str, float], *, c_end: float, r_end: float
) -> Iterator[PeerParameter]:
    """The active parameters as UCI options, in the engine's units.

    `values` are theta, and `c_end` is the last perturbation in steps.
    """
    for p in space.active:
        unit = p.scale or 1
        yield PeerParameter(
            name=p.option,
            value=_times(values[p.name], unit),
            minimum=_bound(p, p.minimum, unit),
            maximum=_bound(p, p.maximum, unit),
            c_end=_times(p.step * c_end, unit),
            r_end=r_end,
            integral=p.integral or p.scale is not None,
            line=p.line or 0,
        )


def _bound(p: Parameter, bound: float, unit: int) -> Number:
    whole = p.integral or p.scale is not None
    return round(bound * unit) if whole else bound


def _times(value: float, scale: int) -> Number:
    """The product as a person would write it: 0.29 * 100 is 29."""
    product = value if scale == 1 else round(value * scale, 9)
    return int(product) if product == int(product) else product
