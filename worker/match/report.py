"""What is told of a match: its report for people and for programs, and its games as PGN.

A comment of a move has its score, depth, time and nodes, and the clock where there is one.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any, TextIO

import chess
import click

from spsa.core.game_settings import MATE, MAX_SCORE, TimeControl, TimeKind
from spsa.core.scoring import Tally, elo, los, nelo
from spsa.text import NAME_LENGTH, printable
from spsa.uci.engine import SearchReply
from worker.match.games import Match, PlayedMatch
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


def as_json(match: Match, played: PlayedMatch) -> dict[str, Any]:
    """Counts are from the first engine's side; Elo errors are 95 % half-widths."""
    count, tally = played.count, played.count.tally
    return {
        "first": match.first.name,
        "second": match.second.name,
        "games": tally.games,
        "wins": tally.wins,
        "losses": tally.losses,
        "draws": tally.draws,
        "pentanomial": list(tally.pentanomial),
        **_estimates(tally),
        "voids": dict(count.voids),
        "time_losses": [count.plus_time_losses, count.minus_time_losses],
        "moves": count.moves,
        "nodes": [count.plus_nodes, count.minus_nodes],
        "seconds": round(played.seconds, 3),
        "games_per_second": round(_rate(played), 3),
        "nps_by_slot": [round(nps) for nps in played.nps_by_slot()],
        "seed": match.seed,
        "book_sha256": match.book.sha256,
        "sprt": None if (test := match.test(tally)) is None else asdict(test),
        "complete": tally.pairs == match.pairs or match.decided(tally),
        "failure": played.failure,
    }


def report_lines(match: Match, played: PlayedMatch) -> list[str]:
    """The same for people."""
    told = as_json(match, played)
    voids = ", ".join(f"{n} x {reason}" for reason, n in sorted(told["voids"].items()))
    lines = [
        f"{told['first']} against {told['second']}: {told['games']} of {2 * match.pairs} games",
        "W-L-D        {wins}-{losses}-{draws}".format(**told),
        f"Ptnml(0-2)   {', '.join(str(n) for n in told['pentanomial'])}",
    ]
    if told["games"]:
        lines += [
            "Elo          {elo:+.1f} ± {elo_error:.1f} (95 %)".format(**told),
            "nElo         {nelo:+.1f} ± {nelo_error:.1f} (95 %)".format(**told),
            f"LOS          {100 * told['los']:.1f} %",
        ]
    lines += [
        *_test_lines(match, played.count.tally),
        f"void games   {voids or 'none'}",
        "time losses  {} / {}".format(*told["time_losses"]),
        "speed        {games_per_second:.2f} games/s, {moves} moves in {seconds:.1f} s".format(
            **told
        ),
    ]
    if speeds := told["nps_by_slot"]:
        lines.append(f"nps by slot  {' '.join(map(str, speeds))}")
    if played.failure is not None:
        lines.append(f"ended early  {played.failure}")
    return lines


def _estimates(tally: Tally) -> dict[str, Any]:
    if not tally.pairs:
        return dict.fromkeys(("elo", "elo_error", "nelo", "nelo_error", "los"))
    plain, normalized = elo(tally), nelo(tally)
    return {
        "elo": plain.value,
        "elo_error": plain.error,
        "nelo": normalized.value,
        "nelo_error": normalized.error,
        "los": los(tally),
    }


def _test_lines(match: Match, tally: Tally) -> list[str]:
    test = match.test(tally)
    if test is None or match.bounds is None:
        return []
    verdict = "undecided" if test.accepted is None else f"H{test.accepted} accepted"
    bounds = "nElo {:g} against {:g}".format(*match.bounds)
    ratio = f"{test.llr:+.2f} in {test.lower:.2f}..{test.upper:.2f}"
    return [f"SPRT         LLR {ratio}, {bounds}: {verdict}"]


def _rate(played: PlayedMatch) -> float:
    return played.count.tally.games / played.seconds if played.seconds else 0.0


@contextmanager
def pgn_writer(
    path: Path | None, plus: str, minus: str, time_control: TimeControl
) -> Iterator[Callable[[Pair], None]]:
    """Appends each pair to the file as soon as it is over; does nothing where no file is named.

    `plus` and `minus` are the names of the engines.
    """
    if path is None:
        yield lambda pair: None
        return
    pgn = PgnFormat(
        plus=plus, minus=minus, time_control=time_control, date=f"{date.today():%Y.%m.%d}"
    )
    with _opened(path) as file:
        yield lambda pair: print(pgn.pair(pair), end="", file=file, flush=True)


def _opened(path: Path) -> TextIO:
    try:
        return path.open("a", encoding="utf-8")
    except OSError as error:
        raise click.BadParameter(
            f"'{printable(str(path), 80)}': {error.strerror}", param_hint="--pgn"
        ) from None


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
        import chess.pgn  # late: it brings asyncio, and few matches write PGN

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
