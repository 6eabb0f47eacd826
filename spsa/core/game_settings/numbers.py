"""The limits of game settings, and the whole numbers that engines print, read within bounds.

An engine may print 18446744073709551615 (an unsigned -1), a negative count or 5,000 digits, which
`int` refuses. A count outside its range is ignored, because a clamped one would enter speeds and
sums as if it were real. A score outside its range is clamped, because it still shows which side is
winning. Times and speeds of engines are never read; both are measured.
"""

MAX_NODES = 2**48
"""Of one move. At 10^9 nodes a second that takes 78 hours."""

MAX_NPS = 10**12
"""Nodes a second."""

MIN_SCALE, MAX_SCALE = 0.001, 1_000
"""The least and the greatest factor of a machine's times."""

MIN_PIECES, MAX_PIECES = 3, 7
"""Pieces of a Syzygy table."""

MAX_NODES_OF_BATCH = 2**53 - 1
"""Of one side in a batch or match; larger sums stay at this value. Plus and minus together, and
sums over a thousand such batches, fit a 64-bit column, and JSON readers represent the number
exactly."""

MAX_DEPTH = 1_000
"""Plies of one search; engines stop at 128 to 255."""

MATE = 100_000
"""Centipawns of a mate; a mate in n moves is worth n less."""

MAX_MATE = 999
"""Moves to a mate; more count as this many."""

MAX_SCORE = MATE - MAX_MATE - 1
"""Centipawns of a score that is not a mate."""

MAX_OPTION = 2**63
"""The least and the greatest value of a spin option lie within this."""

_DIGITS = 19  # of 2**63; a number with more digits is larger

MAX_SECONDS = 86_400.0
"""Of a move, a clock, an increment or a margin."""

MAX_NODES_TO_SEARCH = 10**12
MAX_DEPTH_TO_SEARCH = MAX_DEPTH

MAX_MOVES = 10_000
"""Full moves of a game; the longest possible one has fewer than 6,000."""

MAX_IN_A_ROW = 1_000
"""Consecutive moves of an adjudication rule."""

MAX_CENTIPAWNS = MAX_SCORE

MAX_PLIES = 1_000
"""Plies of an opening."""

MAX_OPTION_LENGTH = 10_000
"""Characters of the name or value of an engine's option."""

MAX_NELO = 200.0
"""Normalised Elo of a hypothesis; from about 230 on no distribution of results has so much."""

MIN_NELO_APART = 0.01
"""Normalised Elo between two hypotheses; a test with less would never end."""


def clamped(text: str | bytes, most: int) -> int:
    """The number of an optional `-` and ASCII digits, clamped to -most .. most."""
    word = text.decode("ascii") if isinstance(text, bytes) else text
    sign, digits = (-1, word[1:]) if word.startswith("-") else (1, word)
    digits = digits.lstrip("0") or "0"
    return sign * (most if len(digits) > _DIGITS else min(int(digits), most))


def counted(text: str | bytes, most: int) -> int | None:
    """The number of ASCII digits; None if it is greater than `most`."""
    number = clamped(text, most + 1)
    return number if number <= most else None
