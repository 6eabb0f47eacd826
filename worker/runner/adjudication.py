"""Ends games early, by the scores of both engines or by their length."""

from chess import Color

from spsa.core.game_settings import Adjudication, DrawRule, ResignRule
from worker.runner.position import Ending, Position, Termination, drawn, won_by


class Adjudicator:
    """Decides after every move of one game; a move without a score breaks every series."""

    def __init__(self, settings: Adjudication) -> None:
        self._draw = None if settings.draw is None else _Draw(settings.draw)
        self._resign = None if settings.resign is None else _Resign(settings.resign)
        self._max_plies = None if settings.max_moves is None else 2 * settings.max_moves

    def ending(self, position: Position, score: int | None) -> Ending | None:
        """The ending after the last move; `score` is its mover's, in centipawns."""
        mover = not position.turn
        made_at = position.board.fullmove_number - (not mover)
        if self._resign is not None and (winner := self._resign.agreed(mover, score)) is not None:
            return won_by(winner, Termination.RESIGN)
        if self._draw is not None and self._draw.agreed(made_at, score):
            return drawn(Termination.DRAW)
        if self._max_plies is not None and position.plies >= self._max_plies:
            return drawn(Termination.MAX_MOVES)
        return None


class _Draw:
    """Counts consecutive moves within the draw score, from the rule's move number on."""

    def __init__(self, rule: DrawRule) -> None:
        self._rule = rule
        self._streak = 0

    def agreed(self, move_number: int, score: int | None) -> bool:
        rule = self._rule
        quiet = score is not None and abs(score) <= rule.score and move_number >= rule.move_number
        self._streak = self._streak + 1 if quiet else 0
        return self._streak >= 2 * rule.count


class _Resign:
    """Counts consecutive moves, of both engines, that see the same winner."""

    def __init__(self, rule: ResignRule) -> None:
        self._rule = rule
        self._winner: Color | None = None
        self._streak = 0

    def agreed(self, mover: Color, score: int | None) -> Color | None:
        winner = self._seen_by(mover, score)
        self._streak = self._streak + 1 if winner == self._winner else 1
        self._winner = winner
        return winner if self._streak >= 2 * self._rule.count else None

    def _seen_by(self, mover: Color, score: int | None) -> Color | None:
        if score is None or abs(score) < self._rule.score:
            return None
        return mover if score > 0 else not mover
