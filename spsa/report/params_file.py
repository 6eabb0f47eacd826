"""A run's parameter space as the params.toml that it was read from, without its comments."""

from typing import Any

import tomli_w

from spsa.core.params import Parameter, Space


def params_file(space: Space) -> str:
    """TOML that `load_space` reads as the same space."""
    constraints = [str(constraint) for constraint in space.constraints]
    tables: dict[str, Any] = {p.name: _table(p) for p in space.parameters}
    return tomli_w.dumps(({"constraints": constraints} if constraints else {}) | tables)


def _table(p: Parameter) -> dict[str, Any]:
    data = p.to_json()
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
        **data["place"],
    }
    return {key: value for key, value in keys.items() if value is not None}
