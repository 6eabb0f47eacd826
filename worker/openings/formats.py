"""EPD and FEN texts to openings, and every fault in them with its line."""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

from spsa.errors import Fault
from worker import fen


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
        self._text = "\n".join(text.splitlines())
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
        """What is wrong in each line that holds no position that can be played from."""
        # Imported late: python-chess takes longer to load than a match that needs no check.
        from worker.openings.positions import check, position

        found = []
        for start in self._starts:
            try:
                check(position(self._line(start)))
            except ValueError as error:
                number = self._text.count("\n", 0, start) + 1
                found.append(fault(file, number, str(error), "a legal position in EPD or FEN"))
        return found

    def _line(self, start: int) -> str:
        end = self._text.find("\n", start)
        return self._text[start : end if end >= 0 else None].strip()


def _starts(text: str) -> Iterator[int]:
    start = 0
    for line in text.split("\n"):
        if line.strip() and not line.startswith("#"):
            yield start
        start += len(line) + 1


def _fen(line: str) -> str:
    """The position of a line in the one way FEN is written here; ValueError where it has none."""
    if (board := fen.read(line)) is not None:
        return fen.written(board)
    # Imported late: few books have lines that are not plain, and python-chess loads slowly.
    from worker.openings.positions import position

    return position(line).fen()


def fault(file: str, line: int, found: str, remedy: str) -> Fault:
    return Fault(file=file, line=line, name="opening", found=found, remedy=remedy)
