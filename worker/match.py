"""A plain match: from its command line to its report for people and for programs, and its PGN.

A comment of a move has its score, depth, time and nodes.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import click

from spsa.core.game_settings import (
    MATE,
    MAX_SCORE,
    MIN_NELO_APART,
    Adjudication,
    Book,
    DrawRule,
    GameSettings,
    ResignRule,
    TablebaseRule,
    TimeControl,
    TimeKind,
)
from spsa.core.scoring import Sprt, Tally, elo, los, nelo, sprt
from spsa.core.uci_options import CHESS960
from spsa.errors import InvalidInput
from spsa.openings import BUILTIN_BOOKS
from spsa.openings.book import Opening, OpeningBook, drawn_time, load
from spsa.output import echo, echo_json
from spsa.protocol import BatchResult
from spsa.text import NAME_LENGTH, printable
from spsa.uci.spawning import EngineLimits, EngineSpec
from worker.runner.adjudication import open_tables
from worker.runner.game import Game, GameVoid, Pair, Pairing, counts, nps
from worker.runner.loop import INTERRUPTED, Interrupts, JobList
from worker.runner.pool import Job, PairVoid, Pool, tune_interpreter
from worker.runner.position import Termination
from worker.settings import Settings

_PAIRS_A_LINE = 10
_RESULTS = ("0-1", "1/2-1/2", "1-0")
_KINDS = {
    Termination.TIME: "time forfeit",
    Termination.DRAW: "adjudication",
    Termination.RESIGN: "adjudication",
    Termination.TABLES: "adjudication",
    Termination.MAX_MOVES: "adjudication",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainMatch:
    """All its jobs are like `template`; openings and times of their pairs follow from the seed."""

    settings: Settings
    template: Job
    pairs: int
    book: OpeningBook

    def test(self, tally: Tally) -> Sprt | None:
        """The state of the sequential test, if the match has one."""
        return None if self.settings.sprt is None else sprt(tally, *self.settings.sprt)

    def decided(self, tally: Tally) -> bool:
        test = self.test(tally)
        return test is not None and test.accepted is not None

    @property
    def order(self) -> int | None:
        """The seed of the order of the openings; None for that of the file."""
        return None if self.settings.order == "sequential" else self.settings.seed

    def job(self, number: int) -> Job:
        """The job of one pair."""
        pairing = Pairing(
            number=number,
            opening=self.book.opening(self.order, number),
            time=drawn_time(self.template.settings.time_control, self.settings.seed, number),
        )
        return replace(self.template, key=str(number), pairings=(pairing,))


def run_match(first: Path, second: Path, settings: Settings, limits: EngineLimits) -> int:
    """Play a match and report it; the exit code."""
    match, began = match_of(first, second, settings), time.monotonic()
    every = match.template
    control = every.settings.time_control
    received = Interrupts().of_this_process()
    with (
        pgn_writer(settings.pgn, every.plus.name, every.minus.name, control) as write,
        Pool(settings.concurrency, limits) as pool,
    ):
        tune_interpreter()
        pool.check_room(every)
        jobs = map(match.job, range(match.pairs))
        loop = JobList(jobs, pool, received, partial(_is_decided, match, write))
        loop.play()
    told = as_json(match, loop.played, time.monotonic() - began, loop.failure)
    if settings.json:
        echo_json(told)
    else:
        echo(*report_lines(match, loop.played.tally, told))
    if received.count:
        return INTERRUPTED
    return 0 if loop.failure is None else 1


def _is_decided(
    match: PlainMatch, write: Callable[[Pair], None], event: Pair | PairVoid, played: BatchResult
) -> bool:
    """Write down a pair; whether the sequential test ends the match with it.

    Raises InvalidInput: the first game did not begin, because an engine does not speak UCI or
    refuses an option.
    """
    tally = played.tally
    if isinstance(event, PairVoid):
        if not tally.pairs and not event.fault.position:
            raise _unusable(event.fault)
        echo(f"pair {event.pairing.number + 1} void: {event.fault}", err=True)
        return False
    write(event)
    if tally.pairs % _PAIRS_A_LINE == 0:
        echo(f"{tally.games} of {2 * match.pairs} games: {counts(tally)}", err=True)
    return match.decided(tally)


def _unusable(fault: GameVoid) -> InvalidInput:
    remedy = "name two programs that speak UCI"
    if fault.reason == "refused option":
        remedy = "correct it, or name an engine that has it"
    return InvalidInput.of("compete", "engine", str(fault), remedy)


def match_of(first: Path, second: Path, settings: Settings) -> PlainMatch:
    """The match that the command line describes."""
    games, bounds, chess960 = settings.games, settings.sprt, settings.chess960
    if games is None:
        raise click.UsageError("a match needs --games")
    if games % 2:
        raise click.BadParameter(
            f"{games} is odd, and games are played in pairs", param_hint="--games"
        )
    if chess960 and settings.book in BUILTIN_BOOKS:
        raise click.UsageError(
            "--chess960 needs a --book of its positions; the built-in ones have none"
        )
    if bounds is not None and not bounds[1] - bounds[0] >= MIN_NELO_APART:
        raise click.BadParameter(
            f"ELO0 has to be less than ELO1, by {MIN_NELO_APART:g} at least", param_hint="--sprt"
        )
    rules = _adjudication(settings)
    both = dict(settings.option) | ({CHESS960: "true"} if chess960 else {})
    names = [printable(path.name, NAME_LENGTH) for path in (first, second)]
    if names[0] == names[1]:
        names = [f"{name} ({number})" for number, name in enumerate(names, start=1)]
    match = PlainMatch(
        settings=settings,
        template=Job(
            key="",
            plus=_spec(names[0], first, both | dict(settings.option1)),
            minus=_spec(names[1], second, both | dict(settings.option2)),
            pairings=(),
            settings=GameSettings(time_control=_time_control(settings), adjudication=rules),
            tables=open_tables(rules.syzygy, settings.syzygy),
        ),
        pairs=games // 2,
        book=load(Book(name=settings.book, plies=settings.plies, chess960=chess960), check=False),
    )
    used = range(min(match.pairs, len(match.book.openings)))  # no others of the book are read
    match.book.check(match.book.place(match.order, number) for number in used)
    return match


def _spec(name: str, path: Path, options: Mapping[str, str]) -> EngineSpec:
    return EngineSpec(name=name, path=str(path.resolve()), options=options)


def _time_control(settings: Settings) -> TimeControl:
    """The one that is given; 0.1 s a move when none is."""
    limits = {
        TimeKind.MOVETIME: settings.movetime,
        TimeKind.NODES: settings.nodes,
        TimeKind.DEPTH: settings.depth,
    }
    found = {kind: value for kind, value in limits.items() if value is not None}
    margin = settings.margin
    if len(found) + (settings.tc is not None) > 1:
        raise click.UsageError("give one of --movetime, --tc, --nodes and --depth")
    if settings.tc is not None:
        return settings.tc if margin is None else replace(settings.tc, margin=margin)
    if margin is not None:
        raise click.UsageError("--margin goes with a clock: give --tc")
    kind, value = next(iter(found.items()), (TimeKind.MOVETIME, 0.1))
    return TimeControl(kind=kind, low=value, high=value)


def _adjudication(settings: Settings) -> Adjudication:
    """The rules that the options name; with --no-adjudication only --max-moves, if given."""
    max_moves, pieces = settings.max_moves, settings.tb_pieces
    if settings.no_adjudication:
        return Adjudication(draw=None, resign=None, max_moves=max_moves)
    move_number, draw_count, draw_score = settings.draw
    resign_count, resign_score = settings.resign
    return Adjudication(
        draw=DrawRule(move_number=move_number, count=draw_count, score=draw_score),
        resign=ResignRule(count=resign_count, score=resign_score),
        max_moves=Adjudication().max_moves if max_moves is None else max_moves,
        syzygy=None if pieces is None else TablebaseRule(pieces=pieces),
    )


def as_json(
    match: PlainMatch, count: BatchResult, seconds: float, failure: str | None
) -> dict[str, Any]:
    """A match as far as it was played; `failure` is why it ended early.

    Counts are from the first engine's side; Elo errors are 95 % half-widths.
    """
    tally = count.tally
    return {
        "first": match.template.plus.name,
        "second": match.template.minus.name,
        "games": tally.games,
        **asdict(tally),
        **_estimates(tally),
        "voids": dict(count.voids),
        "time_losses": [count.plus_time_losses, count.minus_time_losses],
        "moves": count.moves,
        "nodes": [count.plus_nodes, count.minus_nodes],
        "seconds": seconds,
        "games_per_second": tally.games / seconds,
        "nps": round(nps(count) or 0),
        "seed": match.settings.seed,
        "book_sha256": match.book.sha256,
        "sprt": None if (test := match.test(tally)) is None else asdict(test),
        "complete": tally.pairs == match.pairs or match.decided(tally),
        "failure": failure,
    }


def report_lines(match: PlainMatch, tally: Tally, told: Mapping[str, Any]) -> Iterator[str]:
    """What `as_json` tells of a match with this tally, for people."""
    voids = ", ".join(f"{n} x {reason}" for reason, n in sorted(told["voids"].items()))
    yield f"{told['first']} against {told['second']}: {told['games']} of {2 * match.pairs} games"
    yield "W-L-D        {wins}-{losses}-{draws}".format(**told)
    yield f"Ptnml(0-2)   {', '.join(str(n) for n in told['pentanomial'])}"
    if told["games"]:
        yield "Elo          {elo:+.1f} ± {elo_error:.1f} (95 %)".format(**told)
        yield "nElo         {nelo:+.1f} ± {nelo_error:.1f} (95 %)".format(**told)
        yield f"LOS          {100 * told['los']:.1f} %"
    if (bounds := match.settings.sprt) is not None:
        test = sprt(tally, *bounds)
        verdict = "undecided" if test.accepted is None else f"H{test.accepted} accepted"
        ratio = f"{test.llr:+.2f} in {test.lower:.2f}..{test.upper:.2f}"
        tested = "nElo {:g} against {:g}".format(*bounds)
        yield f"SPRT         LLR {ratio}, {tested}: {verdict}"
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
    for reply in played:
        comment = f"{_score(reply.score)}/{reply.depth} {reply.seconds:.3f}s n={reply.nodes}"
        moves.append((reply.move, comment))
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
    text: str = shown.accept(chess.pgn.StringExporter())
    # No spaces inside the braces: programs that read other runners' files rely on it.
    return text.replace("{ ", "{").replace(" }", "}") + "\n\n"


def _score(score: int | None) -> str:
    if score is None:
        return "?"
    if abs(score) > MAX_SCORE:
        return f"{'+' if score > 0 else '-'}M{MATE - abs(score)}"
    return f"{score / 100:+.2f}"


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')
