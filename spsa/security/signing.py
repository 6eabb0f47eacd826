"""What a box is told to execute, in canonical bytes, and the master's signature over them.

A hash in a row protects from damage and stale files, not from whoever can write the row. A worker
that holds the master's public key executes only what the master signed with its private key, which
never is in the database. Signatures are ed25519 (RFC 8032); `spsa.security.keys` makes and keeps
the keys.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from spsa.core.game_settings import Terms
from spsa.lifecycle import Purpose

FIRST_LINE = b"spsa-tuner order 1\n"
"""The first bytes of everything that is signed: no other use of a key makes such bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedSide:
    """One program: the hash of its bytes in hexadecimal, and the values that are sent to it."""

    sha256: str
    options: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {"sha256": self.sha256, "options": dict(self.options)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedOrder:
    """Everything of an iteration that decides what is executed, and under which terms.

    Where a program's bytes are to be found is not part of it: the hash decides, not the place.
    """

    run: str
    run_seed: int
    iteration: int
    purpose: Purpose
    plus: SignedSide
    minus: SignedSide
    terms: Terms

    def to_bytes(self) -> bytes:
        """`FIRST_LINE`, then JSON in ASCII with sorted keys and no spaces; floats by repr."""
        told = {
            "run": self.run,
            "run_seed": self.run_seed,
            "iteration": self.iteration,
            "purpose": self.purpose.value,
            "plus": self.plus.to_json(),
            "minus": self.minus.to_json(),
            "terms": self.terms.to_json(),
        }
        text = json.dumps(told, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return FIRST_LINE + text.encode("ascii")


Sign = Callable[[SignedOrder], str]
"""Gives the signature of an order, as it stands in `spsa_iteration.signature`: base64."""
