"""What rules remember, and how it survives a database: arrays to JSON and back, to the bit."""

from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from spsa.algorithms.rule import Vector
from spsa.errors import UnusableState

Shape = tuple[int, ...]


def packed(array: Vector) -> dict[str, Any]:
    """An array too large to be read by people, as its shape and its bytes (little endian)."""
    raw = np.ascontiguousarray(array, dtype="<f8").tobytes()
    return {"shape": list(array.shape), "float64": b64encode(raw).decode("ascii")}


def unpacked(data: Mapping[str, Any]) -> Vector:
    """What `packed` wrote."""
    flat = np.frombuffer(b64decode(data["float64"]), dtype="<f8").astype(np.float64)
    return flat.reshape(data["shape"])


def restored(rule: str, data: Mapping[str, Any], needed: Mapping[str, Shape]) -> dict[str, Vector]:
    """The arrays of a saved state by name, plain or `packed`, each of the shape that is needed.

    Raises UnusableState with everything that does not fit.
    """
    arrays = {name: _array(data[name]) for name in needed if name in data}
    if wrong := [*_misfits(arrays, needed), *_strangers(data, needed)]:
        raise UnusableState(f"{rule} cannot go on from the saved state: {'; '.join(wrong)}")
    return {name: array for name, array in arrays.items() if array is not None}


def shapes(state: Any) -> dict[str, Shape]:
    """What a state made of nothing but arrays needs, by the names of its slots."""
    return {name: getattr(state, name).shape for name in state.__slots__}


def alike(one: object, other: object, hair: float) -> bool:
    """Whether two saved states say the same, numbers within `hair` of their size."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        if one.keys() != other.keys():
            return False
        if one.keys() == {"shape", "float64"}:
            return _close(_array(one), _array(other), hair)
        return all(alike(one[name], other[name], hair) for name in one)
    if isinstance(one, list | float) and isinstance(other, list | float):
        return _close(_array(one), _array(other), hair)
    return one == other


def _close(one: Vector | None, other: Vector | None, hair: float) -> bool:
    """A number counts as at least 1 large: what cancelled out has no size of its own."""
    if one is None or other is None or one.shape != other.shape:
        return False
    size = np.maximum(np.maximum(np.abs(one), np.abs(other)), 1.0)
    return bool((np.abs(one - other) <= hair * size).all())


def _array(saved: object) -> Vector | None:
    """None for what is no array of finite numbers."""
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
            yield f"{name} has to be {_words(shape)}, and is no array of finite numbers"
        elif array.shape != shape:
            yield f"{name} has to be {_words(shape)}, and is {_words(array.shape)}"


def _strangers(data: Mapping[str, Any], needed: Mapping[str, Shape]) -> Iterator[str]:
    if unknown := sorted(data.keys() - needed.keys()):
        yield f"it knows no {', '.join(unknown)}"


def _words(shape: Shape) -> str:
    if shape in ((), (1,)):
        return "one number"
    return f"{' x '.join(map(str, shape))} numbers"
