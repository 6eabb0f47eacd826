"""Games of PGN texts, in a module of their own because chess.pgn is slow to import.

python-chess skips words that it does not understand. Here such a word is a fault, as is an illegal
move in the main line or a game of another variant than the run's.
"""

import re
from collections.abc import Callable, Iterator
from io import StringIO
from itertools import islice

import chess.pgn

from spsa.core.game_settings import MAX_PLIES
from spsa.text import printable

Line = tuple[chess.Board, tuple[str, ...]]
"""A position, and the moves (UCI) from it."""

_HEADERS = re.compile(r"(?:(?:[\[%;][^\n]*|[^\S\n]*)\n)*")
_COMMENT = re.compile(r"\{[^}]*\}?|;[^\n]*|^%[^\n]*", re.MULTILINE)
_SAN = r"[NBKRQ]?[a-h]?[1-8]?[-x]?[a-h][1-8](?:=?[nbrqkNBRQK])?|O-O(?:-O)?|0-0(?:-0)?|--|Z0"
_WORD = re.compile(
    rf"(?:\d+\.*|\.+)?(?:(?:{_SAN})[+#]*[!?]*)?"
    r"|\$\d+|\*|1-0|0-1|1/2-1/2|e\.?p\.?|[^\w\[\]{}()]+",
    re.ASCII,
)


def lines(
    text: str, plies: int | None, check: Callable[[chess.Board], None], *, chess960: bool = False
) -> Iterator[tuple[int, Line | ValueError]]:
    """The first `plies` plies of every game of a PGN text, or all of its moves, or its fault.

    Each with the number of the line in which the game begins. `check` raises ValueError where a
    game could not begin.
    """
    for number, own_text, game in _games(text):
        try:
            if isinstance(game, ValueError):
                raise game
            _refuse_unread(own_text)
            yield number, _line(game, plies, check, chess960=chess960)
        except ValueError as error:
            yield number, error


class _MainLine(chess.pgn.GameBuilder[chess.pgn.Game]):
    """Skips variations, logs nothing, and limits the length of a game."""

    def begin_game(self) -> None:
        super().begin_game()
        self._plies = 0

    def begin_variation(self) -> chess.pgn.SkipType:  # type: ignore[override]
        return chess.pgn.SKIP

    def end_variation(self) -> None:
        pass  # the base class would close a variation that was not opened

    def visit_move(self, board: chess.Board, move: chess.Move) -> None:
        self._plies += 1
        if self._plies > MAX_PLIES:
            raise ValueError(f"a game of more than {MAX_PLIES:,} plies")
        if not move:
            self.handle_error(ValueError("a null move"))
        super().visit_move(board, move)

    def handle_error(self, error: Exception) -> None:
        self.game.errors.append(error)


def _line(
    game: chess.pgn.Game,
    plies: int | None,
    check: Callable[[chess.Board], None],
    *,
    chess960: bool,
) -> Line:
    if game.errors:
        raise ValueError(str(game.errors[0]))
    board = game.board()
    if type(board) is not chess.Board or board.chess960 != chess960:
        usual = "Chess960" if board.chess960 else "standard chess"
        raise ValueError(f"a game of {game.headers.get('Variant', usual)}")
    check(board)
    start, moves = board.copy(), []
    for move in islice(game.mainline_moves(), plies):
        moves.append(move.uci())
        board.push(move)
    if not moves and "FEN" not in game.headers:
        raise ValueError("neither a move nor a FEN header")
    check(board)
    return start, tuple(moves)


def _refuse_unread(text: str) -> None:
    """ValueError for the first word or header of a game that is not PGN."""
    text += "\n"  # the file may end without one
    headers = _HEADERS.match(text)
    assert headers is not None  # the pattern matches the empty text
    for line in headers[0].split("\n"):
        if line.startswith("[") and not chess.pgn.TAG_REGEX.match(line):
            raise ValueError(f"'{printable(line, 40)}' is no header")
    moves = _COMMENT.sub(_blank, text[headers.end() :])
    for word in re.split(r"[\s()]+", moves):
        if not _WORD.fullmatch(word):
            raise ValueError(f"'{printable(word, 40)}' is no move")


def _blank(comment: "re.Match[str]") -> str:
    if comment[0].startswith("{") and not comment[0].endswith("}"):
        raise ValueError(f"the comment '{printable(comment[0], 40)}' does not end")
    return " "


def _games(text: str) -> Iterator[tuple[int, str, chess.pgn.Game | ValueError]]:
    """Every game with the number of the line it begins in, and its text.

    After a ValueError the rest of the file cannot be told apart from that game.
    """
    lines = StringIO(text)
    line, counted = 1, 0
    while True:
        _skip_blank_lines(lines)
        line += text.count("\n", counted, lines.tell())
        counted = lines.tell()
        try:
            game = chess.pgn.read_game(lines, Visitor=_MainLine)
        except ValueError as error:
            yield line, "", error
            return
        if game is None:
            return
        yield line, text[counted : lines.tell()], game


def _skip_blank_lines(lines: StringIO) -> None:
    place = lines.tell()
    while (line := lines.readline()) and not line.strip():
        place = lines.tell()
    lines.seek(place)
