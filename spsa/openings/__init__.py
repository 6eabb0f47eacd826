"""Openings: the positions from which game pairs start, the same on every machine.

The names of the built-in books are here, where reading a configuration does not import chess.
"""

from pkgutil import get_data

BUILTIN = "builtin"
UNBALANCED = "builtin:unbalanced"
BUILTIN_BOOKS = {BUILTIN: "balanced.epd", UNBALANCED: "unbalanced.epd"}
NAME_A_BOOK = f'name an EPD, FEN or PGN file, "{BUILTIN}" or "{UNBALANCED}"'


def builtin_bytes(name: str) -> bytes:
    """The content of a built-in book, also where this package is in a zip file."""
    return get_data(__name__, BUILTIN_BOOKS[name]) or b""
