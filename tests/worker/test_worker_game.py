"""Openings, clocks, positions, games and pairs, with players in this process; engines' lines."""

import json
import random
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from io import StringIO
from itertools import chain, repeat
from pathlib import Path
from unittest.mock import Mock

import chess
import pytest
from chess.pgn import read_game
from console import compete, games_of
from engines.faulty import LOSER, WINNER, engine, start_book
from fuzzing import fuzz, made
from golden import compare_cases
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spsa.core import game_settings
from spsa.core.json_values import from_json
from spsa.core.scoring import Tally
from spsa.core.uci_options import Declarations
from spsa.errors import EngineFault, InvalidInput, TuningError
from spsa.openings import BUILTIN, UNBALANCED, builtin_bytes
from spsa.openings import book as book_module
from spsa.openings.book import Opening, OpeningBook, Openings, drawn_time, load, permutation
from spsa.protocol import MAX_KEPT_VOIDS, KeptVoid
from spsa.text import FAILURE_LENGTH, OTHER_REASONS, VOID_REASON_LENGTH, VOID_REASONS
from spsa.uci.engine import Limit, SearchReply, last_info
from spsa.uci.spawning import EngineLimits
from worker.match import pgn_of
from worker.runner.adjudication import Adjudicator, open_tables
from worker.runner.game import (
    NOTHING_PLAYED,
    Game,
    GameVoid,
    Pair,
    Pairing,
    counts,
    nps,
    play_game,
    play_pair,
    with_pair,
)
from worker.runner.loop import ActiveJob
from worker.runner.pool import PairVoid
from worker.runner.position import Ending, Position, Termination, drawn

USUAL = EngineLimits()
NONE = game_settings.Adjudication(draw=None, resign=None, max_moves=None)
START = Opening(chess.STARTING_FEN)
CLOCK = game_settings.TimeControl(
    kind=game_settings.TimeKind.CLOCK, low=1.0, high=1.0, increment=0.1, margin=0.05
)
NODES = game_settings.TimeControl(kind=game_settings.TimeKind.NODES, low=100, high=100)
FOOLS_MATE = ("f2f3", "e7e5", "g2g4", "d8h4")
KNIGHTS = ("g1f3", "g8f6", "f3g1", "f6g8")


@dataclass
class Scripted:
    """Plays from a list by the ply of the game, and remembers what it was asked."""

    name: str
    moves: tuple[str, ...] = FOOLS_MATE
    score: int | None = None
    seconds: tuple[float, ...] = ()
    fault_at: int | None = None
    nodes: int = 10
    limits: EngineLimits = USUAL
    asked: list[Limit] = field(default_factory=list)
    games: int = 0

    def prepare(self):
        self.games += 1

    def settle(self):
        pass

    def await_ready(self):
        pass

    def search(self, position, limit):
        self.asked.append(limit)
        ply = len(position.partition(b"moves")[2].split())
        if ply == self.fault_at:
            raise EngineFault("hang", "it was told to")
        seconds = self.seconds[ply // 2] if self.seconds else 0.01
        info = f"info depth 5 nodes {self.nodes + ply}".encode()
        return SearchReply(self.moves[ply], self.score, seconds, info)


def under(time_control=NODES, adjudication=NONE):
    return game_settings.GameSettings(time_control=time_control, adjudication=adjudication)


def pairing(opening=START, time=1.0):
    return Pairing(number=0, opening=opening, time=time)


def paired(first, second):
    return Pair("", pairing(), first, second, 0)


def test_a_pair_swaps_colours_and_is_counted_from_plus():
    plus, minus = Scripted("plus"), Scripted("minus", nodes=100)
    halves: list[int] = []
    at_half = lambda: halves.append(plus.games)  # noqa: E731
    pair = paired(*play_pair(plus, minus, pairing(), under(), at_half=at_half))
    assert halves == [1]
    assert pair.first.ending == pair.second.ending == Ending(0, Termination.CHECKMATE)
    assert pair.tally == Tally.of_pair(0, 2)
    total = with_pair(with_pair(NOTHING_PLAYED, pair), pair)
    assert (total.tally, total.moves) == (pair.tally + pair.tally, 16)
    assert counts(total.tally) == "+2 -2 =0 [0 0 2 0 0]"
    assert total.plus_nodes == 2 * ((10 + 12) + (11 + 13))
    assert total.minus_nodes == 2 * ((101 + 103) + (100 + 102))
    assert total.think_seconds == pytest.approx(16 * 0.01)
    assert nps(total) == pytest.approx((92 + 812) / 0.16)
    assert nps(NOTHING_PLAYED) is None
    assert (plus.games, minus.games) == (2, 2)
    black = Opening("rnbqkbnr/pppppppp/8/8/8/5P2/PPPPP1PP/RNBQKBNR b KQkq - 0 1")
    plus, minus = (replace(one, moves=FOOLS_MATE[1:], asked=[]) for one in (plus, minus))
    total = with_pair(NOTHING_PLAYED, paired(*play_pair(plus, minus, pairing(black), under())))
    assert (total.plus_nodes, total.minus_nodes) == (11 + (10 + 12), (100 + 102) + 101)


def test_what_a_clock_tells_the_engines_of_a_pair():
    """In each game both make four moves, for which they take the seconds that are `spent`."""

    def shown(files):
        control = game_settings.TimeControl.parse(files["control"])
        spent = tuple(float(word) for word in files.get("spent", "0 0 0 0").split())
        minus_settings = game_settings.MinusSettings(handicap=float(files.get("handicap", "1")))
        settings = replace(under(control), minus=minus_settings)
        drawn = pairing(time=float(files.get("value", control.low)))
        player_of = partial(Scripted, moves=KNIGHTS + FOOLS_MATE, seconds=spent)
        players = [player_of("plus"), player_of("minus")]
        pair = paired(*play_pair(*players, drawn, settings))
        for player in players:
            for limit, times in Counter(player.asked).items():
                go = limit.go.decode().strip()
                waits = f"{limit.seconds:.6g} + {limit.stop_seconds:g} s"
                yield f"{times} x {player.name}: {go}, waits {waits}"
        yield f"{pair.first.ending.termination}, {pair.second.ending.termination}"

    compare_cases(Path(__file__).with_name("clocks.txt"), shown)


def test_a_fallen_flag_loses_even_with_a_mate_on_the_board():
    slow = Scripted("slow", seconds=(0.5, 0.7))
    game = play_game(Scripted("white"), slow, pairing(), under(CLOCK))
    assert game.ending == Ending(2, Termination.TIME)
    late = play_game(slow, Scripted("black"), pairing(), under(CLOCK))
    mate = play_game(Scripted("white"), Scripted("black"), pairing(), under(CLOCK))
    for first, second, lost in (
        (game, mate, (0, 1)),
        (mate, game, (1, 0)),
        (late, mate, (1, 0)),
        (mate, late, (0, 1)),
        (mate, mate, (0, 0)),
    ):
        total = with_pair(NOTHING_PLAYED, paired(first, second))
        assert (total.plus_time_losses, total.minus_time_losses) == lost
    written = "".join(pgn_of(paired(game, mate), "plus", "minus", CLOCK))
    plies = [shown.end().ply() for shown in iter(partial(read_game, StringIO(written)), None)]
    assert plies == [3, 4] and "time forfeit" in written, "what came too late is not played"


@pytest.mark.parametrize("rounds", [248, 249])
def test_a_void_game_names_its_position_and_a_very_long_one_its_last(rounds):
    opening = Opening(START.fen, KNIGHTS * rounds)
    white = Scripted("white", fault_at=4 * rounds)
    with pytest.raises(GameVoid, match="white: hang: it was told to") as told:
        play_game(white, Scripted("black"), pairing(opening), under())
    by_board = START.fen.replace("0 1", f"{4 * rounds} {2 * rounds + 1}")
    shown = {248: f"startpos moves {' '.join(opening.moves)}", 249: f"fen {by_board}"}
    assert (told.value.culprit, told.value.white) == ("white", "white")
    assert told.value.position == f"position {shown[rounds]}"


def test_void_games_are_counted_and_the_first_few_kept():
    batch = ActiveJob(Mock(), since=0.0)
    reasons = ("crash", "hang", "crash", "crash", *map(str, range(VOID_REASONS)), "5")
    for reason, white in zip(reasons, chain([""], repeat("plus")), strict=False):
        fault = GameVoid("minus", EngineFault(reason, "why"), "position startpos", white)
        batch.add_void(PairVoid("key", pairing(), fault, "its last words"))
    others = {str(n): 1 + (n == 5) for n in range(VOID_REASONS - 3)}
    assert batch.result.voids == {"crash": 3, "hang": 1, **others, OTHER_REASONS: 3}
    kept = batch.result.kept_voids
    assert len(kept) == MAX_KEPT_VOIDS
    told = {"culprit": "minus", "position": "position startpos", "output": "its last words"}
    assert kept[0] == KeptVoid(pair=0, white="", detail="minus: crash: why", **told)
    assert kept[1] == KeptVoid(pair=0, white="plus", detail="minus: hang: why", **told)


def test_how_scores_end_a_game_of_knight_moves():
    """The scores that the movers see, in centipawns; `-` is a move without one."""

    def shown(files):
        rules = {"draw": None, "resign": None, "max_moves": None, **json.loads(files["rules"])}
        adjudicator = Adjudicator(from_json(game_settings.Adjudication, rules))
        position = Position(START)
        for ply, score in enumerate(files["scores"].split()):
            assert position.make(KNIGHTS[ply % 4])
            ending = adjudicator.ending(position, None if score == "-" else int(score))
            if ending is not None:
                return [f"ply {ply + 1}: {ending.termination}, White has {ending.white} of 2"]
        return ["goes on"]

    compare_cases(Path(__file__).with_name("adjudication.txt"), shown)


ENDGAMES = (
    "8/8/5k2/8/8/3K4/4R3/8 w - - 0 1",
    "8/8/4k3/8/2b5/3K4/8/6N1 w - - 90 60",
    "8/P7/4k3/8/8/3K4/7p/8 b - - 0 1",
    "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1",
    "4k3/8/8/2pP4/8/8/8/4K3 w - c6 0 2",
    "8/8/3bk3/8/8/3KB3/7p/8 w - - 96 80",
    "k7/8/1K6/8/8/8/8/6Q1 w - - 0 1",
    "7k/5K2/8/6N1/8/8/6R1/8 w - - 0 1",
)


def expected(board):
    """The ending of a position, with every question asked after every move."""
    verdicts = (
        (board.is_checkmate(), Termination.CHECKMATE),
        (board.is_stalemate(), Termination.STALEMATE),
        (board.is_repetition(3), Termination.REPETITION),
        (board.halfmove_clock >= 100, Termination.FIFTY_MOVES),
        (board.is_insufficient_material(), Termination.MATERIAL),
    )
    return next((termination for holds, termination in verdicts if holds), None)


def likely_move(board, rng):
    """Often a quiet move, sometimes straight back: random games repeat and shuffle too rarely."""
    legal = list(board.legal_moves)
    last = board.move_stack[-2] if len(board.move_stack) > 1 else None
    back = last and chess.Move(last.to_square, last.from_square)
    if back in legal and rng.random() < 0.4:
        return back
    quiet = [move for move in legal if not board.is_zeroing(move)]
    return rng.choice(quiet if quiet and rng.random() < 0.7 else legal)


def ended_by(position, move):
    assert position.make(move)
    return position.ending()


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), start=st.sampled_from((chess.STARTING_FEN, *ENDGAMES)))
def test_the_shortcuts_miss_no_ending(seed, start):
    rng = random.Random(seed)
    position, board = Position(Opening(start)), chess.Board(start)
    for _ in range(150):
        move = likely_move(board, rng)
        board.push(move)
        ending = ended_by(position, move.uci())
        assert (ending and ending.termination) == expected(board)
        if ending:
            return


def test_what_a_position_makes_of_moves(folder):
    tables = open_tables(THREE, (folder,))

    def shown(files):
        moves = tuple(files.get("opening", "").split())
        try:
            position = Position(Opening(files["fen"], moves, chess960="chess960" in files))
        except ValueError as refused:
            yield str(refused)
            return
        tried = [word.replace("{nothing}", "") for word in files["moves"].split()]
        refused = [move for move in tried if not position.make(move)]
        if refused:
            yield f"refused: {refused}"
        if pieces := files.get("tables", files.get("cursed")):
            rule = game_settings.TablebaseRule(pieces=int(pieces))
            known = tables if "tables" in files else Cursed()
            yield f"{ruled(position, rule, known)}"
            assert ruled(position, rule, None) is ruled(position, None, known) is None
        else:
            yield f"{position.command.decode()}: {position.plies} plies, {position.ending()}"
            yield position.board.fen(shredder=True)

    compare_cases(Path(__file__).with_name("positions.txt"), shown)


DOUBLE = "rkbbnnrq/pppppppp/8/8/8/8/PPPPPPPP/1RKNBBRQ w GBga - 0 1"
BESIDE = Opening("4k3/8/8/8/8/8/8/5KR1 w G - 0 1", chess960=True)


def book_file(folder, text, name="book.epd"):
    path = folder / name
    path.write_text(text)
    return str(path)


def test_a_match_of_chess960_castles_is_written_down_and_needs_engines_that_know_it(tmp_path):
    openings, pgn = book_file(tmp_path, f"{DOUBLE}\n{BESIDE.fen}\n"), tmp_path / "out.pgn"
    first, second = (engine(tmp_path, name, chess960=True) for name in ("first", "second"))
    done = compete(
        first, second, "--games", 4, "--nodes", 3000, "--chess960", "--book", openings,
        "-c", 1, "--pgn", pgn, "--max-moves", 60, "--order", "sequential", "--seed", 3,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    games = games_of(pgn)
    assert [game.errors for game in games] == [[]] * 4
    assert {game.headers["Variant"] for game in games} == {"Chess960"}
    assert [game.headers["FEN"] for game in games] == [DOUBLE] * 2 + [BESIDE.fen] * 2
    assert next(iter(games[2].mainline_moves())) == chess.Move.from_uci("f1g1")
    assert games[2].next().board().king(chess.WHITE) == chess.G1
    alien = engine(tmp_path, "alien")
    match = (first, alien, "--games", 2, "--nodes", 3000, "--chess960", "--book", openings)
    done = compete(*match, "-c", 1)
    said = "alien: refused option: it declares no option 'UCI_Chess960', so it does not play"
    assert done.returncode == 2 and said in done.stderr, done.stderr


THREE = game_settings.TablebaseRule(pieces=3)
VALUES = {"KQvK": (2, -2), "KRvK": (2, -2), "KPvK": (0, 0), "KBvK": (0, 0), "KNvK": (0, 0)}
"""White's and Black's value to move, which is right wherever no piece can be taken at once."""

TAKES = "8/8/8/8/5k2/8/3q4/K2Q4 w - - 0 1"


def table(name, white, black):
    """A table of the Syzygy format with one value for each side to move, as python-chess reads it.

    After the magic number: flags (two sides, pawns), for each file of a pawn or once the order and
    the pieces, then for each side a byte that says that there is one value, and the value plus 2.
    """
    own, other = name.split("v")
    codes = {letter: code for code, letter in enumerate("PNBRQK", start=1)}
    pieces = [codes[p] for p in own] + [codes[p] | 8 for p in other]
    files = 4 if "P" in name else 1
    one = bytes([0, *(p | p << 4 for p in sorted(pieces, key=lambda p: p != 1))])
    head = chess.Board.tbw_magic + bytes([1 | 2 * (files == 4)]) + one * files
    head += b"\0" * (len(head) % 2) + bytes([0x80, white + 2, 0x80, black + 2]) * files
    return head + b"\0" * ((16 - len(head)) % 64)


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "syzygy"
    made.mkdir()
    for name, values in VALUES.items():
        (made / f"{name}.rtbw").write_bytes(table(name, *values))
    return made


class Cursed:
    """A table in which every position is won, but not within fifty moves."""

    def get_wdl(self, board):
        return 1


def ruled(position, rule, tables):
    adjudication = game_settings.Adjudication(draw=None, resign=None, syzygy=rule)
    return Adjudicator(adjudication, tables).ending(position, None)


def test_missing_tables_are_named(folder, tmp_path):
    assert open_tables(game_settings.TablebaseRule(pieces=3, folder=str(folder)), ())
    with pytest.raises(TuningError, match="with --syzygy"):
        open_tables(THREE, ())
    with pytest.raises(TuningError, match="is no folder"):
        open_tables(THREE, (tmp_path / "none",))
    (folder / "KRvK.rtbw").unlink()
    with pytest.raises(TuningError, match=r"up to 3 pieces: no KRvK\.rtbw"):
        open_tables(THREE, (folder,))
    with pytest.raises(TuningError, match=r"up to 5 pieces: .*\.rtbw and 138 more"):
        open_tables(game_settings.TablebaseRule(pieces=5), (folder,))


def test_a_match_ends_by_tables(folder, tmp_path):
    book, pgn = book_file(tmp_path, TAKES), tmp_path / "out.pgn"
    players = [engine(tmp_path, name, moves="d1d2") for name in ("first", "second")]
    words = (*players, "--games", 2, "--nodes", 3000, "--book", book, "-c", 1, "--tb-pieces", 3)
    done = compete(*words, "--syzygy", folder, "--pgn", pgn)
    assert done.returncode == 0, done.stderr
    games = games_of(pgn)
    assert [game.headers["Result"] for game in games] == ["1-0"] * 2
    assert {game.headers["Termination"] for game in games} == {"adjudication"}
    assert "tablebase adjudication" in pgn.read_text()
    done = compete(*words)
    assert done.returncode == 1 and "name the folders" in done.stderr


INFO = "info depth score cp mate lowerbound nodes nps time hashfull pv string e2e4 bestmove ponder"
BLANKS = (" ", " ", " ", " ", "  ", "\t", "\r", "\v", "\u00a0", "")


def line(chance, known):
    """Words of UCI, numbers and others, between blanks of all kinds."""

    def word():
        kind = chance.randrange(3)
        found = chance.choice(known.split()) if kind else chance.text(2)
        return (chance.number() if kind == 2 else found) + chance.choice(BLANKS)

    return "".join(chance.many(word, 16))


def info(chance):
    """Mostly such as a search says, with its numbers replaced."""
    if chance.random() < 0.5:
        return line(chance, INFO)
    depth, score, nodes, nps, time = (chance.number() for _ in range(5))
    kind = chance.choice(["cp", "mate", "wdl"])
    return f"info depth {depth} score {kind} {score} nodes {nodes} nps {nps} time {time} pv e2e4"


def search(chance):
    return "\n".join(chance.many(lambda: info(chance), 4))


@given(said=made(search), move=made(lambda chance: line(chance, "bestmove e2e4 e7e8q")))
@example(said="info depth 1 score cp 3 nodes 18446744073709551615 pv e2e4", move="bestmove e2e4")
@example(said="info depth 1 score cp -9999999999 nodes -1", move="bestmove e2e4")
@example(said=f"info depth {'9' * 5000} score mate {'9' * 5000} nodes {'9' * 5000}", move="")
@example(said="info depth 5x score cp 5x nodes 12x", move="bestmove e2e4x")
@fuzz()
def test_numbers_of_a_search_stay_in_their_ranges(said, move):
    heard = bytearray(b"\n" + said.encode(errors="replace") + b"\n")
    last = last_info(heard, len(heard))
    try:
        answer = SearchReply.of(move.encode(errors="replace"), last, 0.5)
    except EngineFault as fault:
        assert str(fault).isprintable() and len(str(fault)) <= FAILURE_LENGTH
        assert fault.reason.isprintable() and len(fault.reason) <= VOID_REASON_LENGTH
        answer = SearchReply.of(b"bestmove e2e4", last, 0.5)
    assert re.fullmatch(r"[a-h][1-8][a-h][1-8][qrbn]?", answer.move)
    score = answer.score
    assert score is None or -game_settings.MATE <= score <= game_settings.MATE
    assert 0 <= answer.nodes <= game_settings.MAX_NODES
    assert 0 <= answer.depth <= game_settings.MAX_DEPTH
    for name, number in (("nodes", answer.nodes), ("depth", answer.depth)):
        assert not number or re.search(rb"\s%s 0*%d(\s|$)" % (name.encode(), number), last)
    assert_can_be_written_down(answer._replace(move="e2e4"))


def assert_can_be_written_down(answer):
    """In a PGN, and in the columns of a batch."""
    game = Game(drawn(Termination.DRAW), (answer,), chess.WHITE)
    pair = paired(game, game)
    written = "".join(pgn_of(pair, "plus", "minus", game_settings.TimeControl(low=1, high=1)))
    assert all(line.isprintable() for line in written.split("\n"))
    result = with_pair(NOTHING_PLAYED, pair)
    for number in (result.plus_nodes, result.minus_nodes, result.moves):
        assert 0 <= number <= game_settings.MAX_NODES_OF_BATCH
    assert result.plus_nodes + result.minus_nodes < 2**63


def test_there_is_an_end_of_options():
    declared = Declarations()
    with pytest.raises(EngineFault) as caught:
        for number in range(10**6):
            declared.read_line(f"option name {number}{'x' * 60_000} type string")
    assert caught.value.reason == "flood"
    assert sum(map(len, declared.by_name)) < 2**25


LIES = b"""\
info string \x1b[2J
info depth 99999 score cp 99999999999999999999 time -1 nps nan nodes 18446744073709551615 pv e2e4
"""
WIDE = b"info depth 1 score mate -%s nodes %s\n" % (b"9" * 5000, b"9" * 5000)


@pytest.mark.parametrize("lies", [LIES, WIDE])
def test_a_match_survives_the_numbers_of_a_liar(tmp_path, lies):
    says, pgn = tmp_path / "says", tmp_path / "games.pgn"
    says.write_bytes(lies)
    done = compete(
        engine(tmp_path, "liar", moves=WINNER, says=says),
        engine(tmp_path, "two\nlines\x1b[2J", moves=LOSER),
        *("--games", 4, "--nodes", 3000, "--book", start_book(tmp_path), "--json", "--pgn", pgn),
        *("-c", 1, "--no-adjudication"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["nodes"][0] == 0 < report["nodes"][1]
    assert report["second"] == r"two\nlines\x1b[2J"
    assert all(line.isprintable() for line in (done.stdout + done.stderr).split("\n"))
    text = pgn.read_text()
    assert all(line.isprintable() for line in text.split("\n"))
    assert not any(game.errors for game in games_of(pgn))
    assert ("+990.00" if lies == LIES else "-M999") in text


MOVETIME = game_settings.TimeControl(low=0.25, high=1.0)
FEW_NODES = game_settings.TimeControl(kind=game_settings.TimeKind.NODES, low=1, high=3)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A machine that has seen no book yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module", params=[BUILTIN, UNBALANCED])
def builtin(request):
    return load(game_settings.Book(name=request.param))


def test_the_builtin_book_is_large_right_and_varied(builtin):
    keys = {" ".join(opening.fen.split()[:4]) for opening in builtin.openings}
    assert len(keys) == len(builtin.openings) >= 500
    assert isinstance(builtin.openings, Openings)
    builtin.check(range(1000))  # which loading skips
    boards = [chess.Board(opening.fen) for opening in builtin.openings]
    assert all(board.ply() == 8 and board.turn == chess.WHITE for board in boards)
    pawns = Counter(board.pawns & chess.BB_RANK_4 for board in boards)
    assert len(pawns) > 20
    assert max(pawns.values()) < len(boards) / 4


def test_the_same_pair_has_the_same_opening_for_ever():
    """Numbers of today: a change of these replays no old batch as it was."""
    assert permutation(7, 0, 6) == (4, 5, 2, 1, 3, 0)
    assert permutation(7, 1, 6) == (3, 4, 5, 0, 2, 1)
    assert drawn_time(MOVETIME, 42, 3) == 0.37680459878517286
    assert [drawn_time(FEW_NODES, 42, i) for i in range(6)] == [2, 1, 3, 1, 2, 1]
    assert load(game_settings.Book()).sha256 == sha256(builtin_bytes(BUILTIN)).hexdigest()


@given(seed=st.integers(-(2**63), 2**63), size=st.integers(1, 40), round_number=st.integers(0, 5))
def test_no_opening_comes_again_before_all_were_played(seed, size, round_number):
    openings = tuple(Opening(str(i)) for i in range(size))
    book = OpeningBook(name="", openings=openings, sha256="")
    first = round_number * size
    played = tuple(int(book.opening(seed, first + i).fen) for i in range(size))
    assert sorted(played) == list(range(size))
    assert played == permutation(seed, round_number, size)
    assert [int(book.opening(None, first + i).fen) for i in range(size)] == list(range(size))


@given(seed=st.integers(0, 2**63), index=st.integers(0, 10_000))
def test_times_stay_in_their_range(seed, index):
    assert 0.25 <= drawn_time(MOVETIME, seed, index) <= 1.0
    assert drawn_time(FEW_NODES, seed, index) in (1.0, 2.0, 3.0)


EPD = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq -"
GAME = '[Event "?"]\n[Result "*"]\n\n'


NAMED = {
    "{many}": "9" * 5000,
    "{long}": "x" * 1000,
    "{plies}": "1. Nf3 Nf6 2. Ng1 Ng8 " * 300,
    "{escape}": "\x1b",
    "{bytes}": "\udcff\udcfe\0",
}


def test_a_book_has_these_openings_or_is_refused_with_the_line(tmp_path, capfd):
    """Whatever ends its lines, and however many plies are taken of a game."""

    def said(path, plies=None):
        wanted = game_settings.Book(name=str(path), plies=plies, chess960=path.stem == "960")
        try:
            found = load(wanted).openings
        except InvalidInput as error:
            faults = [str(fault) for fault in error.faults]
            assert all(fault.isprintable() and len(fault) < 2_000 for fault in faults)
            return [fault.replace(str(path), path.name) for fault in faults]
        return [" ".join((opening.fen, *opening.moves)) for opening in found]

    def shown(files):
        ((name, text),) = files.items()
        for mark, meant in NAMED.items():
            text = text.replace(mark, meant)
        path = tmp_path / name
        ends, found = ("\n",) if path.suffix == ".pgn" else ("\r\n", "\r", "\n"), []
        for end in ends:
            path.write_text(text.replace("\n", end), errors="surrogateescape", newline="")
            found += [said(path), said(path)]  # no mark says that it was looked through
        if path.suffix == ".pgn":
            is_refused = found[0][0].startswith(name)
            first_plies = [one if is_refused else " ".join(one.split()[:7]) for one in found[0]]
            assert said(path, plies=1) == first_plies
        assert all(one == found[0] for one in found)
        return found[0]

    compare_cases(Path(__file__).with_name("books.txt"), shown)
    assert capfd.readouterr() == ("", "")


def test_a_book_with_another_hash_or_of_too_many_openings_is_refused(tmp_path, monkeypatch):
    name, digest = book_file(tmp_path, EPD), sha256(EPD.encode()).hexdigest()
    assert load(game_settings.Book(name=name, sha256=digest)).sha256 == digest
    half = load(game_settings.Book(name=book_file(tmp_path, f"{EPD}\nno", "half.epd")), check=False)
    half.check([0])
    with pytest.raises(InvalidInput, match=r"half\.epd:2"):
        half.check([0, 1])
    monkeypatch.setattr(Openings, "faults", None)  # each line was looked at once
    assert load(game_settings.Book(name=name)).sha256 == digest
    with pytest.raises(InvalidInput, match=digest):
        load(game_settings.Book(name=name, sha256="0" * 64))
    monkeypatch.setattr(book_module, "MAX_OPENINGS", 2000)
    for text, file in ((f"{EPD}\n" * 2001, "book.epd"), (f"{GAME}1. e4 *\n\n" * 2001, "book.pgn")):
        with pytest.raises(InvalidInput, match=r"2,001 openings.* 2,000 at most"):
            load(game_settings.Book(name=book_file(tmp_path, text, file)))
    longest = book_file(tmp_path, "1. Nf3 Nf6 2. Ng1 Ng8 " * 249 + "Nf3 Nf6 a3 a6", "book.pgn")
    (opening,) = load(game_settings.Book(name=longest), check=False).openings
    assert len(opening.moves) == opening.board().ply() == 1000
