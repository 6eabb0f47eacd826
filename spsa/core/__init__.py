"""Pure values of a tuning: parameters, results of games, game settings, seeds."""

import hashlib


def derived_seed(*parts: object) -> int:
    """A 63-bit seed from the text of its parts, as a run's seed and a place in the run.

    Different parts give unrelated seeds.
    """
    text = "/".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) >> 1
