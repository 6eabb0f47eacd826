"""Converts the states of rules to JSON and back, to the bit."""

from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from spsa.algorithms.rule import Vector
from spsa.errors import UnusableState

Shape = tuple[int, ...]


def packed(array: Vector) -> dict[str, Any]:
    """A large array as its shape and its bytes (little endian)."""
    raw = np.ascontiguousarray(array, dtype="<f8").tobytes()
    return {"shape": list(array.shape), "float64": b64encode(raw).decode("ascii")}


def unpacked(data: Mapping[str, Any]) -> Vector:
    """The array that `packed` wrote."""
    flat = np.frombuffer(b64decode(data["float64"]), dtype="<f8").astype(np.float64)
    return flat.reshape(data["shape"])


def restored(rule: str, data: Mapping[str, Any], needed: Mapping[str, Shape]) -> dict[str, Vector]:
    """The arrays of a saved state by name, plain or `packed`, each of the needed shape.

    Raises UnusableState with all that does not fit.
    """
    arrays = {name: _array(data[name]) for name in needed if name in data}
    if faults := [*_misfits(arrays, needed), *_unknown(data, needed)]:
        raise UnusableState(f"{rule} cannot use the saved state: {'; '.join(faults)}")
    return {name: array for name, array in arrays.items() if array is not None}


def shapes(state: Any) -> dict[str, Shape]:
    """The shapes of a state that has only arrays, by name."""
    return {name: getattr(state, name).shape for name in state.__slots__}


def alike(one: object, other: object, tolerance: float) -> bool:
    """Whether two saved states are equal, numbers within a relative `tolerance`."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        if one.keys() != other.keys():
            return False
        if one.keys() == {"shape", "float64"}:
            return _close(_array(one), _array(other), tolerance)
        return all(alike(one[name], other[name], tolerance) for name in one)
    if isinstance(one, list | float) and isinstance(other, list | float):
        return _close(_array(one), _array(other), tolerance)
    return one == other


def _close(one: Vector | None, other: Vector | None, tolerance: float) -> bool:
    """Numbers below 1 are compared like 1, because differences may have cancelled out."""
    if one is None or other is None or one.shape != other.shape:
        return False
    size = np.maximum(np.maximum(np.abs(one), np.abs(other)), 1.0)
    return bool((np.abs(one - other) <= tolerance * size).all())


def _array(saved: object) -> Vector | None:
    """The saved array; None if it is not an array of finite numbers."""
    try:
        array = unpacked(saved) if isinstance(saved, Mapping) else _plain(saved)
    except (KeyError, OverflowError, TypeError, ValueError):
        return None
    return array if np.isfinite(array).all() else None


def _plain(saved: object) -> Vector:
    return np.array(saved, dtype=np.float64)


def _misfits(arrays: Mapping[str, Vector | None], needed: Mapping[str, Shape]) -> Iterator[str]:
    for name, shape in needed.items():
        array = arrays.get(name)
        if name not in arrays:
            yield f"{name} is missing, it has to be {_words(shape)}"
        elif array is None:
            yield f"{name} has to be {_words(shape)}, and is not an array of finite numbers"
        elif array.shape != shape:
            yield f"{name} has to be {_words(shape)}, and is {_words(array.shape)}"


def _unknown(data: Mapping[str, Any], needed: Mapping[str, Shape]) -> Iterator[str]:
    if unknown := sorted(data.keys() - needed.keys()):
        yield f"unknown: {', '.join(unknown)}"


def _words(shape: Shape) -> str:
    if shape in ((), (1,)):
        return "one number"
    return f"{' x '.join(map(str, shape))} numbers"
