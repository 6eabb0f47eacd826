"""Several time controls in one run: which of them each batch of an iteration plays.

Games are divided in whole pairs, and what is played follows from a seed. The parts are exact where
whole pairs allow it. Elsewhere, as in a small round of a validation, each is right in the mean.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from math import gcd, lcm

from spsa.core import derived_seed

_FINEST = 10_000
"""A share is read as a fraction with at most this denominator: 0.3 is 3/10."""


def whole_parts(shares: Sequence[float]) -> tuple[int, ...]:
    """The smallest whole numbers with the ratios of these shares; at least 1 each."""
    fractions = [Fraction(share).limit_denominator(_FINEST) for share in shares]
    common = lcm(*(one.denominator for one in fractions))
    parts = [max(1, int(one * common)) for one in fractions]
    return tuple(part // gcd(*parts) for part in parts)


def games_by_share(games: int, shares: Sequence[float], seed: int) -> list[int]:
    """How many of these games each time control gets: even numbers that add up to `games`.

    They are exact if `games` is a multiple of twice the sum of the whole parts; otherwise the seed
    decides who gets the pairs that are left.
    """
    parts = whole_parts(shares)
    whole = sum(parts)
    chance = derived_seed(seed, "left") % whole
    ends = ((games // 2 * end + chance) // whole for end in accumulate(parts, initial=0))
    return [2 * (after - before) for before, after in pairwise(ends)]


def assigned(
    batches: Sequence[int], shares: Sequence[float], seed: int
) -> Iterator[tuple[int, int]]:
    """The games of each batch, and the number of its time control from 0.

    The time controls come in a random order that the seed decides. A batch is cut in two where its
    time control has fewer games left.
    """
    left = games_by_share(sum(batches), shares, seed)
    waiting, drawn = deque(batches), 0
    while waiting:
        games, chosen = waiting.popleft(), _drawn(left, derived_seed(seed, drawn))
        played = min(games, left[chosen])
        left[chosen], drawn = left[chosen] - played, drawn + 1
        if played < games:
            waiting.appendleft(games - played)
        yield played, chosen


def _drawn(left: Sequence[int], chance: int) -> int:
    """One of them, each with a probability in proportion to what it has left."""
    at = chance % sum(left)
    return next(number for number, end in enumerate(accumulate(left)) if at < end)
