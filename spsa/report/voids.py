"""The void games of a run: which engine failed, with which values, in which position.

What a worker has sent of them is text to show and never to trust: a game that is not legal chess is
shown as far as it is.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import chess
import chess.pgn

from spsa.db.read_queries import VoidGame
from spsa.db.tables import Run
from spsa.report.table import Column, FittedTable
from spsa.text import printable

_MAX_COMMENT = 500  # characters


def place(game: VoidGame) -> str:
    """Iteration and batch, as `compete --replay` takes them."""
    return f"{game.iteration_number}.{game.seq}"


def voids_table(games: Sequence[VoidGame]) -> FittedTable:
    """A line a game, the oldest first."""
    table = FittedTable(
        "void games",
        (
            Column("batch", is_number=False),
            Column("pair", 1),
            Column("plies", 1),
            Column("machine", 3, is_number=False),
            Column("binary", 2, is_number=False),
            Column("fault", is_number=False),
        ),
    )
    for game in games:
        plies = len(_moves(game))
        kept = game.kept
        pair, machine = str(kept.pair + 1), game.machine or "-"
        table.add(place(game), pair, str(plies), machine, game.sha256[:12], kept.detail)
    return table


def void_lines(game: VoidGame, run: Run) -> Iterator[str]:
    """All there is to know about one game, to find the fault with."""
    kept = game.kept
    where = f" on machine {game.machine}" if game.machine else ""
    yield f"batch {place(game)}, pair {kept.pair + 1} of the run{where}: {kept.detail}"
    if kept.position:
        yield f"White: {kept.white}; {len(_moves(game))} plies; the position:"
        yield f"  {kept.position}"
    yield f"what {kept.culprit} wrote last:"
    yield from (f"  | {line}" for line in kept.output.splitlines() or ["(nothing)"])
    yield f"values of {kept.culprit}, binary {game.sha256}:"
    yield from (f"  {name} = {value:.12g}" for name, value in game.values.items())
    common = {**run.game_settings.engine_options, **game.options}
    if common:
        yield "options:"
        yield from (f"  setoption name {name} value {value}" for name, value in common.items())


def void_pgn(game: VoidGame, run: Run) -> str:
    """The game so far as PGN; empty if it had not begun."""
    board = _start(game, chess960=run.game_settings.book.chess960)
    if board is None:
        return ""
    kept, found = game.kept, chess.pgn.Game()
    found.setup(board)
    found.headers["Event"] = printable(run.name, _MAX_COMMENT).replace('"', "'")
    found.headers["Round"] = f"{place(game)}.{kept.pair + 1}"
    players = ("minus", "plus") if kept.white == "minus" else ("plus", "minus")
    found.headers["White"], found.headers["Black"] = players
    found.headers["Termination"] = "abandoned"
    node: chess.pgn.GameNode = found
    for move in _legal(board, _moves(game)):
        node = node.add_variation(move)
    node.comment = printable(kept.detail, _MAX_COMMENT).translate({ord("{"): "(", ord("}"): ")"})
    return f"{found}\n\n"


def voids_json(games: Sequence[VoidGame]) -> list[dict[str, Any]]:
    """For programs."""
    return [asdict(game) for game in games]


def _moves(game: VoidGame) -> Sequence[str]:
    return game.kept.position.partition(" moves ")[2].split()


def _start(game: VoidGame, *, chess960: bool) -> chess.Board | None:
    """The position that the game began in; None if there is none."""
    words = game.kept.position.partition(" moves ")[0].removeprefix("position ")
    if not words:
        return None
    fen = chess.STARTING_FEN if words == "startpos" else words.removeprefix("fen ")
    try:
        return chess.Board(fen, chess960=chess960)
    except ValueError:
        return None


def _legal(start: chess.Board, moves: Sequence[str]) -> Iterator[chess.Move]:
    board = start.copy()
    for text in moves:
        try:
            move = board.parse_uci(text)
        except ValueError:
            return
        board.push(move)
        yield move
