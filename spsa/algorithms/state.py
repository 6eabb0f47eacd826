"""What happens to the states of all rules: saved as JSON to the bit, carried to another space.

A state is a frozen dataclass. Its fields are arrays or states, or None for a part that it lacks.
"""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from spsa.core.params import Vector
from spsa.errors import UnusableState


def saved(state: Any) -> dict[str, Any]:
    """Each array of a state as its shape and its bytes (little endian)."""
    return {name: _written(part) for name, part in _parts(state).items()}


def _written(part: Any) -> dict[str, Any]:
    if is_dataclass(part):
        return saved(part)
    array = np.asarray(part)
    text = b64encode(array.astype("<f8").tobytes()).decode("ascii")
    return {"shape": list(array.shape), "float64": text}


def restored(rule: str, data: object, like: Any) -> Any:
    """The state that `saved` wrote, or one with plain lists; `like` has its class and shapes.

    Raises UnusableState if a name or a shape differs, or a number is not finite.
    """
    parts, values = _parts(like), data if isinstance(data, Mapping) else {}
    states = {n: restored(rule, values.get(n), p) for n, p in parts.items() if is_dataclass(p)}
    arrays = {name: _array(value) for name, value in values.items() if name not in states}
    needed = {name: np.shape(part) for name, part in parts.items() if name not in states}
    found = {name: None if array is None else array.shape for name, array in arrays.items()}
    if found != needed:
        wrong = f"found {_words(found)}, needs {_words(needed)}"
        raise UnusableState(f"{rule} cannot use the saved state: {wrong}")
    return replace(like, **states, **arrays)


def _parts(state: Any) -> dict[str, Any]:
    """The fields of a state that it has."""
    parts = {one.name: getattr(state, one.name) for one in fields(state)}
    return {name: part for name, part in parts.items() if part is not None}


def _words(shapes: Mapping[str, tuple[int, ...] | None]) -> str:
    return ", ".join(
        f"{name} {'no finite numbers' if shape is None else list(shape)}"
        for name, shape in shapes.items()
    )


def alike(one: object, other: object, tolerance: float) -> bool:
    """Whether two saved states are equal, numbers within a relative `tolerance`.

    Numbers below 1 are compared like 1, because differences may have cancelled out.
    """
    if isinstance(one, Mapping) and isinstance(other, Mapping) and "float64" not in one:
        same = one.keys() == other.keys()
        return same and all(alike(one[name], other[name], tolerance) for name in one)
    first, second = _array(one), _array(other)
    if first is None or second is None:
        return one == other
    size = np.maximum(np.maximum(np.abs(first), np.abs(second)), 1.0)
    return first.shape == second.shape and bool((abs(first - second) <= tolerance * size).all())


def _array(data: Any) -> Vector | None:
    """The saved array; None if it is not an array of finite numbers."""
    try:
        if isinstance(data, Mapping):
            flat = np.frombuffer(b64decode(data["float64"]), dtype="<f8").astype(np.float64)
            array = flat.reshape(data["shape"])
        else:
            array = np.array(data, dtype=np.float64)
    except (KeyError, OverflowError, TypeError, ValueError):
        return None
    return array if np.isfinite(array).all() else None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Carry:
    """How the coordinates of a space follow from those of another one; shape (n,) each.

    `source` is the index in the old space, -1 for a coordinate that it did not have. `scale` is the
    old step over the new one. `value` is where a coordinate without a source starts, in new steps.
    """

    source: npt.NDArray[np.intp]
    scale: Vector
    value: Vector

    def positions(self, old: Vector) -> Vector:
        """Points of the old space, shape (..., m), in the new one, shape (..., n)."""
        found: Vector = np.where(self._is_known, old[..., self.source] * self.scale, self.value)
        return found

    def variances(self, old: Vector, prior: Vector) -> Vector:
        """Variances; `prior`, shape (..., n), is that of a new coordinate."""
        kept = old[..., self.source] * self.scale**2
        found: Vector = np.where(self._is_known, kept, prior)
        return found

    def covariance(self, old: Vector, prior: Vector) -> Vector:
        """A covariance matrix; `prior` is the diagonal of that of new coordinates."""
        kept = old[np.ix_(self.source, self.source)] * np.outer(self.scale, self.scale)
        known = np.outer(self._is_known, self._is_known)
        found: Vector = np.where(known, kept, np.diag(prior))
        return found

    @property
    def _is_known(self) -> npt.NDArray[np.bool_]:
        return self.source >= 0
