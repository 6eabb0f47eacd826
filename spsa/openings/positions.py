"""Openings from EPD and FEN texts, with every fault by its line, and which one a pair plays."""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from itertools import islice
from typing import Self, overload

import chess

from spsa.core.game_settings import TimeControl
from spsa.core.game_settings.numbers import MAX_MOVES
from spsa.errors import Fault


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


MAX_OPENINGS = 5_000_000
"""Openings of one book."""

MAX_FAULTS = 100
"""Faults of one book that are reported at once."""

_MAX_LINE = 1_000
_FIFTY_MOVES = 100  # plies


@dataclass(frozen=True, slots=True)
class Opening:
    """A position, and the moves (UCI) played from it before the engines take over.

    In Chess960, castling is a move of the king to its rook, and the FEN names the rooks' files.
    """

    fen: str
    moves: tuple[str, ...] = ()
    chess960: bool = False

    @classmethod
    def of(cls, board: chess.Board, moves: tuple[str, ...] = ()) -> Self:
        """From the position and the variant of `board`."""
        return cls(board.fen(shredder=board.chess960), moves, board.chess960)

    def start_board(self) -> chess.Board:
        """The position before these moves."""
        return chess.Board(self.fen, chess960=self.chess960)

    def board(self) -> chess.Board:
        """The position after these moves."""
        board = self.start_board()
        for move in self.moves:
            board.push_uci(move)
        return board


class Positions(Sequence[Opening]):
    """The openings of an EPD or FEN text, one a line, without blank lines and `#` lines.

    A book may have millions of lines, of which a match plays hundreds. So the text is kept, and a
    line is parsed when its opening is asked for.
    """

    def __init__(self, text: str, *, chess960: bool = False) -> None:
        self._chess960 = chess960
        self._text = text.replace("\r\n", "\n").replace("\r", "\n")
        self._starts = array("Q", _starts(self._text))

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, index: int) -> Opening: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Opening, ...]: ...

    def __getitem__(self, index: int | slice) -> Opening | tuple[Opening, ...]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        return Opening.of(self._board(self._starts[index]))

    def faults(self, file: str) -> list[Fault]:
        """The faults of the first lines from which no game can begin."""
        return list(islice(self._faults(file), MAX_FAULTS))

    def _faults(self, file: str) -> Iterator[Fault]:
        for start in self._starts:
            try:
                check_playable(self._board(start))
            except (ValueError, IndexError) as error:  # python-chess raises both
                number = self._text.count("\n", 0, start) + 1
                yield fault(file, number, str(error), "write a legal position in EPD or FEN")

    def _board(self, start: int) -> chess.Board:
        return _board(self._line(start), chess960=self._chess960)

    def _line(self, start: int) -> str:
        end = self._text.find("\n", start)
        return self._text[start : end if end >= 0 else None].strip()


def _starts(text: str) -> Iterator[int]:
    """The offset of each line that is neither blank nor a remark, without a list of all lines."""
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        if text[start] != "#" and not text[start:end].isspace() and end > start:
            yield start
        start = end + 1


def _board(line: str, *, chess960: bool) -> chess.Board:
    """The position of a FEN or EPD line; ValueError (or IndexError) where it has none."""
    if len(line) > _MAX_LINE:
        raise ValueError(f"a line of more than {_MAX_LINE:,} characters")
    words = line.split()
    has_counters = len(words) >= 6 and words[4].isdigit() and words[5].rstrip(";").isdigit()
    if not all(word.isascii() for word in words[: 6 if has_counters else 4]):
        raise ValueError("it has letters or digits that are no part of a position")
    if has_counters:
        return chess.Board(" ".join([*words[:5], words[5].rstrip(";")]), chess960=chess960)
    return chess.Board.from_epd(line, chess960=chess960)[0]


def check_playable(board: chess.Board) -> None:
    """Return if a game of its variant can begin here; ValueError says why not."""
    status = board.status()
    if status != chess.STATUS_VALID:
        raise ValueError(f"not a position of chess: {status.name or status}")
    if board.is_game_over() or board.halfmove_clock >= _FIFTY_MOVES:
        raise ValueError("the game is over before it begins")
    if board.halfmove_clock < 0 or not 1 <= board.fullmove_number <= MAX_MOVES:
        raise ValueError(f"a move number outside 1 .. {MAX_MOVES}, or a clock below 0")


def fault(file: str, line: int, found: str, remedy: str) -> Fault:
    return Fault(file=file, line=line, name="opening", found=found, remedy=remedy)
