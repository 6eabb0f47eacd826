"""What a worker executes, in canonical bytes that the master signs.

A hash in a row protects from damage and stale files, but not from a login that can write the row. A
worker that has the master's public key executes only what the master signed. The private key is
never in the database. Signatures are ed25519 (RFC 8032); `spsa.security.keys` has the keys.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from spsa.core.game_settings import GameSettings
from spsa.lifecycle import Purpose

FIRST_LINE = b"spsa-tuner order 1\n"
"""The first bytes of every signed text, so that no other use of the key can be mistaken for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedSide:
    """One binary: its SHA-256 in hexadecimal, and the UCI options that are sent to it."""

    sha256: str
    options: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {"sha256": self.sha256, "options": dict(self.options)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedOrder:
    """Everything in an iteration that decides what is executed, and with which game settings.

    The path of a binary is not part of it: the hash decides. `variants` has the hashes of plus and
    minus for other levels of x86-64, which get the same options.
    """

    run: str
    run_seed: int
    iteration: int
    purpose: Purpose
    plus: SignedSide
    minus: SignedSide
    variants: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    game_settings: GameSettings

    def to_bytes(self) -> bytes:
        """`FIRST_LINE`, then JSON in ASCII with sorted keys and no spaces; floats by repr."""
        order = {
            "run": self.run,
            "run_seed": self.run_seed,
            "iteration": self.iteration,
            "purpose": self.purpose.value,
            "plus": self.plus.to_json(),
            "minus": self.minus.to_json(),
            "variants": {level: list(sides) for level, sides in self.variants.items()},
            "terms": self.game_settings.to_json(),
        }
        text = json.dumps(order, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return FIRST_LINE + text.encode("ascii")


Sign = Callable[[SignedOrder], str]
"""Signs an order; the signature is base64, as in `spsa_iteration.signature`."""
