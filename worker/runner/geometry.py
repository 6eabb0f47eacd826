"""The empty board: which squares lie in a line, and where pieces may go if nothing is in the way.

Squares are numbered from 0 (a1) along the ranks to 63 (h8); `turn` is True for White.
"""

STEPS = ((0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1))
"""Directions as steps of file and rank: 0 to 3 are straight, 4 to 7 diagonal."""

JUMP, NO_LINE = 8, 9
"""What takes the place of a direction between squares a knight's move apart, and any others."""

_KNIGHT = ((1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2))

NAMES = tuple(file + rank for rank in "12345678" for file in "abcdefgh")
SQUARES = {name: square for square, name in enumerate(NAMES)}


def _ray(square: int, step: tuple[int, int]) -> tuple[int, ...]:
    """The squares passed from `square` on to the edge of the board."""
    file, rank = square % 8 + step[0], square // 8 + step[1]
    found = []
    while 0 <= file < 8 and 0 <= rank < 8:
        found.append(8 * rank + file)
        file, rank = file + step[0], rank + step[1]
    return tuple(found)


def _beside(square: int, steps: tuple[tuple[int, int], ...]) -> tuple[int, ...]:
    """The squares one step away."""
    return tuple(ray[0] for step in steps if (ray := _ray(square, step)))


RAYS = tuple(tuple(_ray(square, step) for step in STEPS) for square in range(64))
"""By square and direction: the squares passed, the nearest first."""

JUMPS = tuple(_beside(square, _KNIGHT) for square in range(64))
NEIGHBOURS = tuple(_beside(square, STEPS) for square in range(64))
HITS = tuple(
    tuple(_beside(square, ((-1, forward), (1, forward))) for square in range(64))
    for forward in (-1, 1)
)
"""By `turn` and square: what a pawn attacks."""


def _lines() -> bytes:
    lines = bytearray([NO_LINE]) * 4096
    for square in range(64):
        for direction, ray in enumerate(RAYS[square]):
            for other in ray:
                lines[square << 6 | other] = direction
        for other in JUMPS[square]:
            lines[square << 6 | other] = JUMP
    return bytes(lines)


LINES = _lines()
"""By `source << 6 | target`: the direction from one to the other, JUMP or NO_LINE."""
