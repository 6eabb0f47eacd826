"""EPD and FEN texts to openings, and every fault in them with its line."""

from dataclasses import dataclass

import chess

from spsa.errors import Fault, InvalidInput


@dataclass(frozen=True, slots=True)
class Opening:
    """A position, and the moves (UCI) played from it before the engines take over."""

    fen: str
    moves: tuple[str, ...] = ()


def read_positions(file: str, text: str) -> tuple[Opening, ...]:
    """The openings of an EPD or FEN text, one a line; blank lines and `#` lines say nothing."""
    openings, faults = [], []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            openings.append(_position(line.strip()))
        except ValueError as error:
            faults.append(fault(file, number, str(error), "a legal position in EPD or FEN"))
    return unless(faults, openings)


def _position(line: str) -> Opening:
    words = line.split()
    board = chess.Board()
    if len(words) >= 6 and words[4].isdigit() and words[5].rstrip(";").isdigit():
        board.set_fen(" ".join([*words[:5], words[5].rstrip(";")]))
    else:
        board.set_epd(line)
    check(board)
    return Opening(board.fen())


def check(board: chess.Board) -> None:
    status = board.status()
    if status != chess.STATUS_VALID:
        raise ValueError(f"not a position of chess: {status.name or status}")
    if board.is_game_over():
        raise ValueError("the game is over before it begins")


def fault(file: str, line: int, found: str, remedy: str) -> Fault:
    return Fault(file=file, line=line, name="opening", found=found, remedy=remedy)


def unless(faults: list[Fault], openings: list[Opening]) -> tuple[Opening, ...]:
    if faults:
        raise InvalidInput(faults)
    return tuple(openings)
