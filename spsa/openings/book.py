"""Books of openings: read once, checked line by line, identified by the hash of their bytes."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from pathlib import Path

from spsa.core.game_settings import Book
from spsa.errors import Fault, InvalidInput, TuningError
from spsa.files import MAX_BOOK, cache_folder, content, private_folder
from spsa.openings import NAME_A_BOOK, builtin_book, builtin_bytes
from spsa.openings.positions import MAX_OPENINGS, Opening, Positions, opening_number


class BookOrder(StrEnum):
    """The order of a book's openings; no opening is repeated before all were played."""

    RANDOM = "random"
    SEQUENTIAL = "sequential"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpeningBook:
    """`sha256` is the hash of the file."""

    openings: Sequence[Opening]
    sha256: str

    def opening(self, seed: int, pair: int) -> Opening:
        """The opening of pair number `pair` in the run with `seed`, the same on every machine."""
        return self.openings[opening_number(seed, pair, len(self.openings))]

    def in_turn(self, pair: int) -> Opening:
        """The opening of pair number `pair` in the order of the file."""
        return self.openings[pair % len(self.openings)]


def load(book: Book, copy: Path | None = None) -> OpeningBook:
    """Read a book; InvalidInput when it is missing, has faults or has another hash than `book`.

    An empty hash in `book` accepts every file. With `copy` the bytes are read from there.
    """
    data = _bytes(book.name, copy)
    digest = sha256(data).hexdigest()
    if book.sha256 not in ("", digest):
        raise _fault(
            book.name,
            f"its SHA-256 is {digest}",
            f"use the file that the run was made with: {book.sha256}",
        )
    return OpeningBook(openings=_openings(book, _text(book.name, data), digest), sha256=digest)


def _openings(book: Book, text: str, digest: str) -> Sequence[Opening]:
    if book.name.lower().endswith(".pgn"):
        # Imported late: few books are PGN, and chess.pgn brings asyncio and ssl with it.
        from spsa.openings.pgn_book import read_pgn

        found: Sequence[Opening] = read_pgn(book.name, text, book.plies, chess960=book.chess960)
    else:
        found = positions = Positions(text, chess960=book.chess960)
        if len(positions) > MAX_OPENINGS:
            lines = f"it holds {len(positions):,} lines"
            raise _fault(book.name, lines, f"use a part of it: {MAX_OPENINGS:,} at most")
        # A test checks the built-in books.
        if builtin_book(book.name) is None:
            _check_once(book.name, positions, f"{digest}{'-960' if book.chess960 else ''}")
    if not found:
        raise _fault(book.name, "it holds no opening", "it needs one position or game at least")
    return found


def _check_once(name: str, positions: Positions, record: str) -> None:
    """Check every line once on this machine; a large book takes half a minute.

    An empty file, called `record` after the hash of the book, records that it passed. A machine
    that cannot write it checks the book each time.
    """
    passed: Path | None = None
    with suppress(TuningError):
        # A new number when the checks change: then every book is checked again.
        passed = private_folder(cache_folder() / "books-2", "the cache of books") / record
    if passed is not None and passed.exists():
        return
    if faults := positions.faults(name):
        raise InvalidInput(faults)
    if passed is not None:
        with suppress(OSError):
            passed.touch(exist_ok=False)  # does not follow a link


def _bytes(name: str, copy: Path | None) -> bytes:
    try:
        builtin = None if copy is not None else builtin_bytes(name)
        return content(copy or Path(name), MAX_BOOK) if builtin is None else builtin
    except OSError as error:
        raise _fault(name, f"cannot be read: {error.strerror}", NAME_A_BOOK) from None


def _text(name: str, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _fault(
            name, f"byte {error.start} is not UTF-8", "use an EPD, FEN or PGN text"
        ) from None


def _fault(name: str, found: str, remedy: str) -> InvalidInput:
    return InvalidInput([Fault(file=name, line=None, name="book", found=found, remedy=remedy)])
