"""Finished games as PGN text, with scores, depths and times in the comments."""

from dataclasses import dataclass

import chess
import chess.pgn

from worker.game import Game, Pair
from worker.openings import Opening
from worker.rules import Termination
from worker.uci import MATE, Answer

_RESULTS = ("0-1", "1/2-1/2", "1-0")
_KINDS = {
    Termination.TIME: "time forfeit",
    Termination.DRAW: "adjudication",
    Termination.RESIGN: "adjudication",
    Termination.MAX_MOVES: "adjudication",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoresheet:
    """What the games of one match have in common."""

    plus: str
    minus: str
    time_control: str
    date: str

    def pair(self, pair: Pair) -> str:
        """Both games of a pair, as rounds `pair.1` and `pair.2`, counted from 1."""
        number, opening = pair.pairing.number + 1, pair.pairing.opening
        return "".join(
            (
                self._game(pair.first, opening, f"{number}.1", self.plus, self.minus),
                self._game(pair.second, opening, f"{number}.2", self.minus, self.plus),
            )
        )

    def _game(self, game: Game, opening: Opening, number: str, white: str, black: str) -> str:
        tree = chess.pgn.Game()
        tree.setup(chess.Board(opening.fen))
        tree.headers.update(
            {
                "Event": "match",
                "Site": "?",
                "Date": self.date,
                "Round": number,
                "White": white,
                "Black": black,
                "Result": _RESULTS[game.ending.white],
                "TimeControl": self.time_control,
                "Termination": _KINDS.get(game.ending.termination, "normal"),
                "PlyCount": str(len(opening.moves) + len(game.moves)),
            }
        )
        _write_moves(tree, opening, game)
        return tree.accept(chess.pgn.StringExporter(columns=80)) + "\n\n"


def _write_moves(tree: chess.pgn.Game, opening: Opening, game: Game) -> None:
    node: chess.pgn.GameNode = tree
    for move in opening.moves:
        node = node.add_variation(chess.Move.from_uci(move), comment="book")
    # The answer that came after the flag had fallen was not played, and may be no legal move.
    late = game.ending.termination is Termination.TIME
    for answer in game.moves[: -1 if late else None]:
        node = node.add_variation(chess.Move.from_uci(answer.move), comment=_comment(answer))
    node.comment = ", ".join(filter(None, (node.comment, str(game.ending.termination))))


def _comment(answer: Answer) -> str:
    return f"{_score(answer.score)}/{answer.depth} {answer.seconds:.3f}s"


def _score(score: int | None) -> str:
    if score is None:
        return "?"
    if abs(score) > MATE - 1000:
        return f"{'+' if score > 0 else '-'}M{MATE - abs(score)}"
    return f"{score / 100:+.2f}"
