"""The master: opens iterations, waits for their games, moves theta, and says how it goes."""

from spsa.master.loop import Master
from spsa.master.validation import validate

__all__ = ["Master", "validate"]
