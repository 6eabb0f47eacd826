"""The whole numbers that engines print, read with bounds; here is what each bound is and why.

An engine may print 18446744073709551615 (an unsigned -1), a negative count or 5,000 digits, which
`int` refuses. A count outside its range was not counted by anything: it is ignored, as if the
engine had not said it, because a clamped count would enter speeds and sums as if it were real.
A score outside its range still says who is winning: it is clamped. What engines say of their time
and speed is never read; both are measured.
"""

MOST_NODES = 2**48
"""Of one move. At 10^9 nodes a second that takes 78 hours."""

MOST_NODES_OF_BATCH = 2**53 - 1
"""Of one side in a batch or match; a sum stays there. Plus and minus together, and sums over a
thousand such batches, fit a 64-bit column, and every JSON reader knows the number exactly."""

MOST_DEPTH = 1_000
"""Plies of one search; engines stop at 128 to 255."""

MATE = 100_000
"""Centipawns of a mate at hand; a mate in n moves is worth n less."""

MOST_MATE = 999
"""Moves to a mate; more are taken for so many."""

MOST_SCORE = MATE - MOST_MATE - 1
"""Centipawns of a score that is no mate."""

MOST_OPTION = 2**63
"""The least and the greatest value of a spin option lie within this."""

_DIGITS = 19  # of 2**63; the length of a number with more digits need not be looked at


def clamped(text: str | bytes, most: int) -> int:
    """The number of an optional `-` and ASCII digits, or the nearest one of -most .. most."""
    word = text.decode("ascii") if isinstance(text, bytes) else text
    sign, digits = (-1, word[1:]) if word.startswith("-") else (1, word)
    digits = digits.lstrip("0") or "0"
    return sign * (most if len(digits) > _DIGITS else min(int(digits), most))


def counted(text: str | bytes, most: int) -> int | None:
    """The number of ASCII digits, None where it is greater than `most`."""
    number = clamped(text, most + 1)
    return number if number <= most else None
