"""The opening and the time of a pair, as pure functions of seeds and numbers.

They use SHA-256 and no library's random generator, so every version of every language computes the
same opening and time for the same pair.
"""

from functools import lru_cache
from hashlib import sha256

from spsa.core.game_settings import TimeControl


@lru_cache(maxsize=4)
def permutation(seed: int, round_number: int, size: int) -> tuple[int, ...]:
    """The order of a book of `size` openings in one round.

    Index i comes before j when SHA-256 of "opening <seed> <round> <i>" is smaller.
    """
    order = sorted(range(size), key=lambda i: _digest(f"opening {seed} {round_number} {i}"))
    return tuple(order)


def opening_number(seed: int, pair: int, size: int) -> int:
    """The number of the opening of pair `pair`; none is repeated before all were played."""
    round_number, place = divmod(pair, size)
    return permutation(seed, round_number, size)[place]


def drawn_time(time_control: TimeControl, batch_seed: int, index: int) -> float:
    """The time of pair `index` of a batch, uniform in [low, high]; units as in TimeControl.

    The first 53 bits of SHA-256 of "time <seed> <index>" over 2^53 are the uniform number.
    Nodes and depth are whole numbers, all equally likely.
    """
    uniform = (int.from_bytes(_digest(f"time {batch_seed} {index}")[:8]) >> 11) / 2**53
    low, high = time_control.low, time_control.high
    if time_control.reproducible:
        return float(int(low) + int(uniform * (int(high) - int(low) + 1)))
    return low + uniform * (high - low)


def _digest(text: str) -> bytes:
    return sha256(text.encode()).digest()
