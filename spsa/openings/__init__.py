"""Openings: the positions from which game pairs start, the same on every machine.

The names of the built-in books are here, where reading a configuration does not import chess.
"""

from pathlib import Path
from pkgutil import get_data

BUILTIN = "builtin"
UNBALANCED = "builtin:unbalanced"
NAME_A_BOOK = f'name an EPD, FEN or PGN file, "{BUILTIN}" or "{UNBALANCED}"'
_BUILTIN_BOOKS = {BUILTIN: "balanced.epd", UNBALANCED: "unbalanced.epd"}


def builtin_book(name: str) -> Path | None:
    """The file of a built-in book; None for any other name, which is a path."""
    file = _BUILTIN_BOOKS.get(name)
    return None if file is None else Path(__file__).with_name(file)


def builtin_bytes(name: str) -> bytes | None:
    """The content of a built-in book, also where this package is in a zip file; None for others."""
    file = _BUILTIN_BOOKS.get(name)
    return None if file is None else get_data(__name__, file)
