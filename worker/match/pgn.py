"""Finished games as PGN text, with scores, depths, times and clocks in the comments."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

import chess.pgn

from spsa.core.game_settings import TimeControl, TimeKind
from spsa.core.game_settings.numbers import MATE, MAX_SCORE
from spsa.text import NAME_LENGTH, printable
from spsa.uci.engine import SearchReply
from worker.runner.clock import ChessClock
from worker.runner.game import Game, Pair, Pairing
from worker.runner.position import Termination

_RESULTS = ("0-1", "1/2-1/2", "1-0")
_KINDS = {
    Termination.TIME: "time forfeit",
    Termination.DRAW: "adjudication",
    Termination.RESIGN: "adjudication",
    Termination.TABLES: "adjudication",
    Termination.MAX_MOVES: "adjudication",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PgnFormat:
    """Writes the games of one match."""

    plus: str
    minus: str
    time_control: TimeControl
    date: str

    def pair(self, pair: Pair) -> str:
        """Both games of a pair, as rounds `pair.1` and `pair.2`, counted from 1."""
        return self._game(pair.pairing, pair.first, 1) + self._game(pair.pairing, pair.second, 2)

    def _game(self, pairing: Pairing, game: Game, number: int) -> str:
        writer = chess.pgn.StringExporter(columns=80)
        writer.begin_headers()
        for name, value in self._headers(pairing, game, number).items():
            writer.visit_header(name, _quoted(value))
        writer.end_headers()
        board = pairing.opening.start_board()
        for move, comment in self._moves(pairing, game):
            place = f"{board.fullmove_number}{'.' if board.turn else '...'}"
            san = board.san_and_push(chess.Move.from_uci(move))
            # No spaces inside the braces: programs that read other runners' files rely on it.
            writer.write_token(f"{place} {san} {{{comment}}} ")
        writer.write_token(f"{{{game.ending.termination}}} ")
        writer.visit_result(_RESULTS[game.ending.white])
        return f"{writer.result()}\n\n"

    def _headers(self, pairing: Pairing, game: Game, number: int) -> dict[str, str]:
        white, black = (self.plus, self.minus) if number == 1 else (self.minus, self.plus)
        headers = {
            "Event": "match",
            "Site": "?",
            "Date": self.date,
            "Round": f"{pairing.number + 1}.{number}",
            "White": white,
            "Black": black,
            "Result": _RESULTS[game.ending.white],
            "TimeControl": _time_control(self.time_control),
            "Termination": _KINDS.get(game.ending.termination, "normal"),
            "PlyCount": str(len(pairing.opening.moves) + len(game.moves)),
        }
        if pairing.opening.chess960:
            headers["Variant"] = "Chess960"
        if pairing.opening.fen != chess.STARTING_FEN:
            headers |= {"FEN": pairing.opening.fen, "SetUp": "1"}
        return headers

    def _moves(self, pairing: Pairing, game: Game) -> Iterator[tuple[str, str]]:
        """Every move (UCI) with its comment."""
        for move in pairing.opening.moves:
            yield move, "book"
        # A reply after the flag fell was not played, and may be no legal move.
        late = game.ending.termination is Termination.TIME
        played = game.moves[: -1 if late else None]
        clocks = _clocks(self.time_control, pairing.time, played)
        for reply, clock in zip(played, clocks, strict=True):
            yield reply.move, f"{clock}{_comment(reply)}"


def _clocks(control: TimeControl, base: float, played: tuple[SearchReply, ...]) -> Iterator[str]:
    """The time that each move left on its side's clock, as PGN's clk command; else empty texts."""
    if control.kind is not TimeKind.CLOCK:
        yield from ("" for _ in played)
        return
    clock = ChessClock(base, control)
    for ply, reply in enumerate(played):
        side = ply % 2 == 0  # the first to move, whatever its colour
        clock.flag_falls(side, reply.seconds)
        yield f"[%clk {_hours(clock.left(side))}] "


def _hours(seconds: float) -> str:
    """h:mm:ss.mmm"""
    whole, milliseconds = divmod(round(seconds * 1000), 1000)
    return f"{timedelta(seconds=whole)}.{milliseconds:03}"


def _comment(reply: SearchReply) -> str:
    return f"{_score(reply.score)}/{reply.depth} {reply.seconds:.3f}s n={reply.nodes}"


def _score(score: int | None) -> str:
    if score is None:
        return "?"
    if abs(score) > MAX_SCORE:
        return f"{'+' if score > 0 else '-'}M{MATE - abs(score)}"
    return f"{score / 100:+.2f}"


def _time_control(control: TimeControl) -> str:
    match control.kind:
        case TimeKind.CLOCK:
            moves = f"{control.moves}/" if control.moves else ""
            return f"{moves}{control.low:g}+{control.increment:g}"
        case TimeKind.MOVETIME:
            return f"{control.low:g}/move"
        case _:
            return f"{int(control.low)} {control.kind}/move"


def _quoted(value: str) -> str:
    return printable(value, NAME_LENGTH).replace("\\", "\\\\").replace('"', '\\"')
