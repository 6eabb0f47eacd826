"""Books of openings: read once, checked line by line, identified by the hash of their bytes.

Also which opening a pair plays, and for how long its engines think.
"""

import re
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from hashlib import sha256
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Self
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

import chess

from spsa.core.game_settings import MAX_MOVES, Book, TimeControl
from spsa.errors import MAX_FAULTS, Fault, InvalidInput, TuningError
from spsa.files import MAX_BOOK, cache_folder, content, private_folder
from spsa.openings import BUILTIN_BOOKS, NAME_A_BOOK, builtin_bytes
from spsa.text import plural

MAX_OPENINGS = 5_000_000  # of one book

_MAX_LINE = 1_000
_FIFTY_MOVES = 100  # plies
_BROKEN = (BadZipFile, EOFError, OSError, RuntimeError, ValueError, zlib.error)
_LINE = re.compile(r"^(?!#).*\S", re.MULTILINE)  # neither blank nor a remark


@lru_cache(maxsize=4)
def permutation(seed: int, round_number: int, size: int) -> tuple[int, ...]:
    """The order of a book of `size` openings in one round.

    Index i comes before j when SHA-256 of "opening <seed> <round> <i>" is smaller.
    """
    order = sorted(range(size), key=lambda i: _digest(f"opening {seed} {round_number} {i}"))
    return tuple(order)


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


Line = tuple[chess.Board, tuple[str, ...], chess.Board]
"""A position, the moves (UCI) from it, and the position after them."""


class Openings:
    """The openings of a text, each `parse`d from where it starts to where the next one does.

    A book may have millions, of which a match plays hundreds. So the text is kept, and an opening
    is parsed when it is asked for. `remedy` says what would be right where one cannot be played.
    """

    def __init__(
        self, text: str, starts: Iterable[int], parse: Callable[[str], Line], remedy: str
    ) -> None:
        self._text, self._parse, self._remedy = text, parse, remedy
        self._starts = array("Q", (*starts, len(text)))

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, index: int) -> Opening:
        start, moves, _ = self._line(index)
        return Opening.of(start, moves)

    def __iter__(self) -> Iterator[Opening]:
        return (self[index] for index in range(len(self)))

    def faults(self, file: str, places: Iterable[int]) -> Iterator[Fault]:
        """Those of the openings at these places from which no game can begin."""
        for index in places:
            try:
                start, moves, end = self._line(index)
                _check_playable(start)
                if moves:
                    _check_playable(end)
            except (ValueError, IndexError) as error:  # python-chess raises both
                yield Fault(
                    file=file,
                    line=self._text.count("\n", 0, self._starts[index]) + 1,
                    name="opening",
                    found=str(error),
                    remedy=self._remedy,
                )

    def _line(self, index: int) -> Line:
        return self._parse(self._text[self._starts[index] : self._starts[index + 1]])


def _line_of_epd(text: str, *, chess960: bool) -> Line:
    """The position of the first line; what follows are remarks."""
    board = _board(text.partition("\n")[0].strip(), chess960=chess960)
    return board, (), board


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


def _check_playable(board: chess.Board) -> None:
    """Return if a game of its variant can begin here; ValueError says why not."""
    status = board.status()
    if status != chess.STATUS_VALID:
        raise ValueError(f"not a position of chess: {status.name}")
    if board.is_game_over() or board.halfmove_clock >= _FIFTY_MOVES:
        raise ValueError("the game is over before it begins")
    if board.fullmove_number > MAX_MOVES:
        raise ValueError(f"a move number above {MAX_MOVES:,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpeningBook:
    """`name` is that of its file, also inside a zip, `sha256` the hash of the whole file."""

    name: str
    openings: Openings
    sha256: str

    def opening(self, seed: int | None, pair: int) -> Opening:
        """The opening of pair number `pair` in the run with `seed`, the same on every machine."""
        return self.openings[self.place(seed, pair)]

    def place(self, seed: int | None, pair: int) -> int:
        """Where that is in the book; without a seed they come in the order of the file.

        None is repeated before all were played.
        """
        size = len(self.openings)
        round_number, place = divmod(pair, size)
        return place if seed is None else permutation(seed, round_number, size)[place]

    def check(self, places: Iterable[int]) -> None:
        """Return if games can begin from the openings at these places; else InvalidInput."""
        if found := [*islice(self.openings.faults(self.name, places), MAX_FAULTS)]:
            raise InvalidInput(found)


def load(book: Book, copy: Path | None = None, *, check: bool = True) -> OpeningBook:
    """Read a book; InvalidInput when it is missing, has faults or has another hash than `book`.

    An empty hash in `book` accepts every file. With `copy` the bytes are read from there. Without
    `check` its openings may be wrong: to look at all of them takes minutes in a large book.
    """
    data = _bytes(book.name, copy)
    digest = sha256(data).hexdigest()
    if book.sha256 not in ("", digest):
        remedy = f"use the file that the run was made with: {book.sha256}"
        raise InvalidInput.of(book.name, "book", f"its SHA-256 is {digest}", remedy)
    inside, data = _unpacked(book, data)
    openings = _openings(inside, _text(inside.name, data))
    if not 0 < len(openings) <= MAX_OPENINGS:
        found = f"it holds {len(openings):,} openings" if openings else "it holds no opening"
        remedy = f"it needs one position or game at least, and {MAX_OPENINGS:,} at most"
        raise InvalidInput.of(book.name, "book", found, remedy)
    made = OpeningBook(name=inside.name, openings=openings, sha256=digest)
    if check and book.name not in BUILTIN_BOOKS:  # a test checks the built-in ones
        _check_once(made, _digest(f"{digest} {_is_pgn(inside)} {book.plies} {book.chess960}").hex())
    return made


def _is_pgn(book: Book) -> bool:
    return book.name.lower().endswith(".pgn")


def _openings(book: Book, text: str) -> Openings:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if _is_pgn(book):
        # Imported late: few books are PGN, and chess.pgn brings asyncio and ssl with it.
        from spsa.openings import pgn_book

        parse = partial(pgn_book.line, plies=book.plies, chess960=book.chess960)
        return Openings(text, pgn_book.starts(text), parse, "write a game of legal moves")
    starts = (found.start() for found in _LINE.finditer(text))
    parse = partial(_line_of_epd, chess960=book.chess960)
    return Openings(text, starts, parse, "write a legal position in EPD or FEN")


def _check_once(book: OpeningBook, record: str) -> None:
    """Check every line once on this machine.

    An empty file, called `record` after what the book holds, records that it passed. A machine
    that cannot write it checks the book each time.
    """
    passed: Path | None = None
    with suppress(TuningError):
        # A new number when the checks change: then every book is checked again.
        passed = private_folder(cache_folder() / "books-3", "the cache of books") / record
    if passed is not None and passed.exists():
        return
    book.check(range(len(book.openings)))
    if passed is not None:
        with suppress(OSError):
            passed.touch(exist_ok=False)  # does not follow a link


def _bytes(name: str, copy: Path | None) -> bytes:
    if name in BUILTIN_BOOKS:
        return builtin_bytes(name)
    try:
        return content(copy or Path(name), MAX_BOOK)
    except OSError as error:
        found = f"cannot be read: {error.strerror}"
        raise InvalidInput.of(name, "book", found, NAME_A_BOOK) from None


def _unpacked(book: Book, data: bytes) -> tuple[Book, bytes]:
    """A book and its bytes: of a zip those of the one file in it, whose name says what it is."""
    if not book.name.lower().endswith(".zip"):
        return book, data
    try:
        with ZipFile(BytesIO(data)) as archive:
            files = [one for one in archive.infolist() if not one.is_dir()]
            kinds, size = {one.compress_type for one in files}, sum(one.file_size for one in files)
            if len(files) == 1 and kinds <= {ZIP_STORED, ZIP_DEFLATED} and size <= MAX_BOOK:
                with archive.open(files[0]) as file:
                    return replace(book, name=f"{book.name}/{file.name}"), file.read(MAX_BOOK)
            found = f"it holds {plural(len(files), 'file')} of {size:,} bytes"
    except _BROKEN as error:
        found = f"it cannot be unpacked: {error}"
    remedy = f"use a zip with one EPD, FEN or PGN file, deflated, of at most {MAX_BOOK:,} bytes"
    raise InvalidInput.of(book.name, "book", found, remedy)


def _text(name: str, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        found = f"byte {error.start} is not UTF-8"
        raise InvalidInput.of(name, "book", found, "use an EPD, FEN or PGN text") from None
