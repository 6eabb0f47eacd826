"""Books of openings: read once, every line checked, known by the hash of their bytes."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from pathlib import Path

from spsa.core.game_settings import Book
from spsa.errors import Fault, InvalidInput, TuningError
from spsa.security.private_folder import private_folder
from spsa.security.regular_file import MOST_BOOK, content
from worker.runner.cache_folder import cache_folder
from worker.runner.openings.positions import MOST_OPENINGS, Opening, Positions
from worker.runner.openings.seeding import opening_number

BUILTIN = "builtin"
_BUILTIN_FILE = "balanced.epd"


class BookOrder(StrEnum):
    """How a match goes through its book; either way nothing comes again before all have come."""

    RANDOM = "random"
    SEQUENTIAL = "sequential"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpeningBook:
    """`sha256` is that of the file the openings were read from."""

    openings: Sequence[Opening]
    sha256: str

    def opening(self, seed: int, pair: int) -> Opening:
        """The opening of pair number `pair` in the run with `seed`, on any box."""
        return self.openings[opening_number(seed, pair, len(self.openings))]

    def in_turn(self, pair: int) -> Opening:
        """The opening of pair number `pair` when a book is gone through as it is written."""
        return self.openings[pair % len(self.openings)]


def load(terms: Book) -> OpeningBook:
    """The book that the terms of a run name; InvalidInput when it is missing, wrong or another.

    An empty hash in the terms pins nothing.
    """
    data = _bytes(terms.name)
    digest = sha256(data).hexdigest()
    if terms.sha256 not in ("", digest):
        raise _fault(
            terms.name, f"its SHA-256 is {digest}", f"the run was made with {terms.sha256}"
        )
    return OpeningBook(openings=_openings(terms, _text(terms.name, data), digest), sha256=digest)


def _openings(terms: Book, text: str, digest: str) -> Sequence[Opening]:
    if terms.name.lower().endswith(".pgn"):
        # Imported late: most books are no PGN, and chess.pgn brings asyncio and ssl with it.
        from worker.runner.openings.pgn_book import read_pgn

        found: Sequence[Opening] = read_pgn(terms.name, text, terms.plies)
    else:
        found = positions = Positions(text)
        if len(positions) > MOST_OPENINGS:
            found_lines = f"it holds {len(positions):,} lines"
            raise _fault(terms.name, found_lines, f"use a part of it: {MOST_OPENINGS:,} at most")
        # the book that ships is checked by a test
        if terms.name != BUILTIN:
            _check_once(terms.name, positions, digest)
    if not found:
        raise _fault(terms.name, "it holds no opening", "one position or game at least")
    return found


def _check_once(name: str, positions: Positions, digest: str) -> None:
    """Look at every line, which takes a large book half a minute; this box remembers its hash."""
    mark: Path | None = None
    # the number is that of the rules: a book that passed older ones is looked at again; a machine
    # that cannot remember looks again too
    with suppress(TuningError):
        mark = private_folder(cache_folder() / "books-2", "the cache of books") / digest
    if mark is not None and mark.exists():
        return
    if faults := positions.faults(name):
        raise InvalidInput(faults)
    if mark is not None:
        with suppress(OSError):
            mark.touch(exist_ok=False)  # not through a link


def _bytes(name: str) -> bytes:
    if name == BUILTIN:
        return Path(__file__).with_name(_BUILTIN_FILE).read_bytes()
    try:
        return content(Path(name), MOST_BOOK)
    except OSError as error:
        raise _fault(name, f"cannot be read: {error.strerror}", 'a file, or "builtin"') from None


def _text(name: str, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _fault(name, f"byte {error.start} is not UTF-8", "an EPD, FEN or PGN text") from None


def _fault(name: str, found: str, remedy: str) -> InvalidInput:
    return InvalidInput([Fault(file=name, line=None, name="book", found=found, remedy=remedy)])
