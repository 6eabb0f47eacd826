"""What rules remember, and how it survives a database: arrays to JSON and back, to the bit."""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from spsa.algorithms.rule import Vector


@dataclass(frozen=True, slots=True, eq=False)
class Position:
    """The state of a rule that remembers theta alone, shape (n,)."""

    theta: Vector

    def dump(self) -> dict[str, Any]:
        return {"theta": self.theta.tolist()}

    @classmethod
    def load(cls, data: Mapping[str, Any]) -> "Position":
        return cls(np.array(data["theta"], dtype=np.float64))


def packed(array: Vector) -> dict[str, Any]:
    """An array too large to be read by people, as its shape and its bytes (little endian)."""
    raw = np.ascontiguousarray(array, dtype="<f8").tobytes()
    return {"shape": list(array.shape), "float64": b64encode(raw).decode("ascii")}


def unpacked(data: Mapping[str, Any]) -> Vector:
    """What `packed` wrote."""
    flat = np.frombuffer(b64decode(data["float64"]), dtype="<f8").astype(np.float64)
    return flat.reshape(data["shape"])
