"""EPD and FEN texts to openings, and every fault in them with its line."""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import overload

from spsa.errors import Fault
from worker.runner import fen

MOST_OPENINGS = 5_000_000
"""Of one book."""

MOST_FAULTS = 100
"""Wrong lines or games of one book that are told at once."""

_MOST_LINE = 1_000


@dataclass(frozen=True, slots=True)
class Opening:
    """A position, and the moves (UCI) played from it before the engines take over."""

    fen: str
    moves: tuple[str, ...] = ()


class Positions(Sequence[Opening]):
    """The openings of an EPD or FEN text, one a line; blank lines and `#` lines say nothing.

    A book may have a quarter of a million of them, of which a match plays hundreds: the text is
    kept, and a line is read when its opening is asked for.
    """

    def __init__(self, text: str) -> None:
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
        return Opening(_fen(self._line(self._starts[index])))

    def faults(self, file: str) -> list[Fault]:
        """What is wrong in the first lines that hold no position that can be played from."""
        return list(islice(self._faults(file), MOST_FAULTS))

    def _faults(self, file: str) -> Iterator[Fault]:
        # Imported late: python-chess takes longer to load than a match that needs no check.
        from worker.runner.openings.positions import check, position

        for start in self._starts:
            try:
                check(position(_of_bounded_length(self._line(start))))
            except (ValueError, IndexError) as error:  # python-chess raises both
                number = self._text.count("\n", 0, start) + 1
                yield fault(file, number, str(error), "a legal position in EPD or FEN")

    def _line(self, start: int) -> str:
        end = self._text.find("\n", start)
        return self._text[start : end if end >= 0 else None].strip()


def _starts(text: str) -> Iterator[int]:
    """Where each line begins that says something; no list of all lines is made for it."""
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        if text[start] != "#" and not text[start:end].isspace() and end > start:
            yield start
        start = end + 1


def _of_bounded_length(line: str) -> str:
    if len(line) > _MOST_LINE:
        raise ValueError(f"a line of more than {_MOST_LINE:,} characters")
    return line


def _fen(line: str) -> str:
    """The position of a line in the one way FEN is written here; ValueError where it has none."""
    if (board := fen.read(line)) is not None:
        return fen.written(board)
    # Imported late: few books have lines that are not plain, and python-chess loads slowly.
    from worker.runner.openings.positions import position

    return position(line).fen()


def fault(file: str, line: int, found: str, remedy: str) -> Fault:
    return Fault(file=file, line=line, name="opening", found=found, remedy=remedy)
