"""A match and what is told of it: its report for people and for programs, and its games as PGN.

A comment of a move has its score, depth, time and nodes.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

import click
from chess.syzygy import Tablebase

from spsa.core.game_settings import MATE, MAX_SCORE, GameSettings, TimeControl
from spsa.core.scoring import Sprt, Tally, elo, los, nelo, sprt
from spsa.openings.book import BookOrder, Opening, OpeningBook, drawn_time
from spsa.protocol import BatchResult
from spsa.text import NAME_LENGTH, printable
from spsa.uci.engine import EngineSpec, SearchReply
from worker.runner.game import Game, Pair, Pairing, nps
from worker.runner.pool import Job
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
class Match:
    """`first` is plus in all counts; the openings and times follow from `seed`.

    With `bounds` (elo0 and elo1 in normalised Elo) the match ends when a sequential test accepts
    one of them.
    """

    first: EngineSpec
    second: EngineSpec
    pairs: int
    seed: int
    book: OpeningBook
    settings: GameSettings
    tables: Tablebase | None
    order: BookOrder = BookOrder.RANDOM
    bounds: tuple[float, float] | None = None

    def test(self, tally: Tally) -> Sprt | None:
        """The state of the sequential test, if the match has one."""
        return None if self.bounds is None else sprt(tally, *self.bounds)

    def decided(self, tally: Tally) -> bool:
        test = self.test(tally)
        return test is not None and test.accepted is not None

    def job(self, number: int) -> Job:
        """The job of one pair."""
        in_turn, book = self.order is BookOrder.SEQUENTIAL, self.book
        pairing = Pairing(
            number=number,
            opening=book.in_turn(number) if in_turn else book.opening(self.seed, number),
            time=drawn_time(self.settings.time_control, self.seed, number),
        )
        return Job(
            key=str(number),
            plus=self.first,
            minus=self.second,
            pairings=(pairing,),
            settings=self.settings,
            tables=self.tables,
        )


def as_json(
    match: Match, count: BatchResult, seconds: float, failure: str | None
) -> dict[str, Any]:
    """A match as far as it was played; `failure` is why it ended early.

    Counts are from the first engine's side; Elo errors are 95 % half-widths.
    """
    tally = count.tally
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
        "seconds": round(seconds, 3),
        "games_per_second": round(tally.games / seconds if seconds else 0.0, 3),
        "nps": round(nps(count) or 0),
        "seed": match.seed,
        "book_sha256": match.book.sha256,
        "sprt": None if (test := match.test(tally)) is None else asdict(test),
        "complete": tally.pairs == match.pairs or match.decided(tally),
        "failure": failure,
    }


def report_lines(match: Match, tally: Tally, told: Mapping[str, Any]) -> Iterator[str]:
    """What `as_json` tells of a match with this tally, for people."""
    test = match.test(tally)
    voids = ", ".join(f"{n} x {reason}" for reason, n in sorted(told["voids"].items()))
    yield f"{told['first']} against {told['second']}: {told['games']} of {2 * match.pairs} games"
    yield "W-L-D        {wins}-{losses}-{draws}".format(**told)
    yield f"Ptnml(0-2)   {', '.join(str(n) for n in told['pentanomial'])}"
    if told["games"]:
        yield "Elo          {elo:+.1f} ± {elo_error:.1f} (95 %)".format(**told)
        yield "nElo         {nelo:+.1f} ± {nelo_error:.1f} (95 %)".format(**told)
        yield f"LOS          {100 * told['los']:.1f} %"
    if test is not None and match.bounds is not None:
        verdict = "undecided" if test.accepted is None else f"H{test.accepted} accepted"
        ratio = f"{test.llr:+.2f} in {test.lower:.2f}..{test.upper:.2f}"
        bounds = "nElo {:g} against {:g}".format(*match.bounds)
        yield f"SPRT         LLR {ratio}, {bounds}: {verdict}"
    yield f"void games   {voids or 'none'}"
    yield "time losses  {} / {}".format(*told["time_losses"])
    speed = "{games_per_second:.2f} games/s, {moves} moves in {seconds:.1f} s, {nps} nodes/s"
    yield f"speed        {speed.format(**told)}"
    if told["failure"] is not None:
        yield f"ended early  {told['failure']}"


def _estimates(tally: Tally) -> dict[str, Any]:
    if not tally.pairs:
        return dict.fromkeys(("elo", "elo_error", "nelo", "nelo_error", "los"))
    plain, normal = elo(tally), nelo(tally)
    errors = {"elo_error": plain.error, "nelo_error": normal.error}
    return {"elo": plain.value, "nelo": normal.value, **errors, "los": los(tally)}


@contextmanager
def pgn_writer(
    path: Path | None, plus: str, minus: str, control: TimeControl
) -> Iterator[Callable[[Pair], None]]:
    """Appends each pair to the file as soon as it is over; does nothing where no file is named.

    `plus` and `minus` are the names of the engines.
    """
    if path is None:
        yield lambda pair: None
        return
    try:
        file = path.open("a", encoding="utf-8")
    except OSError as error:
        raise click.BadParameter(
            f"'{printable(str(path), 80)}': {error.strerror}", param_hint="--pgn"
        ) from None
    with file:
        yield lambda pair: print(
            *pgn_of(pair, plus, minus, control), end="", sep="", file=file, flush=True
        )


def pgn_of(pair: Pair, plus: str, minus: str, control: TimeControl) -> Iterator[str]:
    """Both games of a pair, as rounds `pair.1` and `pair.2`, counted from 1."""
    for number, white, black, game in ((1, plus, minus, pair.first), (2, minus, plus, pair.second)):
        headers = {"Event": "match", "Site": "?", "Date": f"{date.today():%Y.%m.%d}"}
        headers |= {"Round": f"{pair.pairing.number + 1}.{number}", "TimeControl": str(control)}
        headers |= {"White": _quoted(white), "Black": _quoted(black)}
        yield _game(pair.pairing.opening, game, headers)


def _game(opening: Opening, game: Game, headers: Mapping[str, str]) -> str:
    import chess.pgn  # late: it brings asyncio, and few matches write PGN

    kind = game.ending.termination
    # A reply after the flag fell was not played, and may be no legal move.
    played = game.moves[: -1 if kind is Termination.TIME else None]
    moves = [(move, "book") for move in opening.moves]
    moves += [(reply.move, _comment(reply)) for reply in played]
    shown: Any = chess.pgn.Game(
        {
            **headers,
            "Result": _RESULTS[game.ending.white],
            "Termination": _KINDS.get(kind, "normal"),
            "PlyCount": str(len(moves)),
        }
    )
    shown.setup(opening.start_board())
    if "FEN" in shown.headers:
        shown.headers["FEN"] = opening.fen  # as it was sent to the engines
    node = shown
    for move, comment in moves:
        node = node.add_variation(chess.Move.from_uci(move), comment=comment)
    node.comment = f"{node.comment}, {kind}" if moves else str(kind)
    text: str = shown.accept(chess.pgn.StringExporter(columns=80))
    # No spaces inside the braces: programs that read other runners' files rely on it.
    return text.replace("{ ", "{").replace(" }", "}") + "\n\n"


def _comment(reply: SearchReply) -> str:
    return f"{_score(reply.score)}/{reply.depth} {reply.seconds:.3f}s n={reply.nodes}"


def _score(score: int | None) -> str:
    if score is None:
        return "?"
    if abs(score) > MAX_SCORE:
        return f"{'+' if score > 0 else '-'}M{MATE - abs(score)}"
    return f"{score / 100:+.2f}"


def _quoted(value: str) -> str:
    return printable(value, NAME_LENGTH).replace("\\", "\\\\").replace('"', '\\"')
