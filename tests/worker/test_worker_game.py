"""Clocks, adjudication, games and pairs, with players that live in this process."""

from dataclasses import dataclass, field, replace
from unittest.mock import Mock

import chess
import pytest

from spsa.core.game_settings import (
    Adjudication,
    DrawRule,
    GameSettings,
    MinusSettings,
    ResignRule,
    TimeControl,
    TimeKind,
)
from spsa.core.scoring import Tally
from spsa.errors import EngineFault
from spsa.openings.book import Opening
from spsa.protocol import MAX_KEPT_VOIDS, KeptVoid
from spsa.uci.engine import Limit, SearchReply
from spsa.uci.spawning import EngineLimits
from worker.runner.adjudication import Adjudicator, GameClock
from worker.runner.game import (
    NOTHING_PLAYED,
    Pair,
    Pairing,
    VoidGame,
    counts,
    nps,
    play_game,
    play_pair,
    with_pair,
)
from worker.runner.loop import ActiveJob
from worker.runner.pool import PairVoid
from worker.runner.position import Ending, Position, Termination

USUAL = EngineLimits()
NONE = Adjudication(draw=None, resign=None, max_moves=None)
START = Opening(chess.STARTING_FEN)
CLOCK = TimeControl(kind=TimeKind.CLOCK, low=1.0, high=1.0, increment=0.1, margin=0.05)
NODES = TimeControl(kind=TimeKind.NODES, low=100, high=100)
FOOLS_MATE = ("f2f3", "e7e5", "g2g4", "d8h4")


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
    return GameSettings(time_control=time_control, adjudication=adjudication)


def pairing(opening=START, time=1.0):
    return Pairing(number=0, opening=opening, time=time)


def test_a_pair_swaps_colours_and_is_counted_from_plus():
    plus, minus = Scripted("plus"), Scripted("minus", nodes=100)
    pair = play_pair(plus, minus, pairing(), under())
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
    total = with_pair(NOTHING_PLAYED, play_pair(plus, minus, pairing(black), under()))
    assert (total.plus_nodes, total.minus_nodes) == (11 + (10 + 12), (100 + 102) + 101)


def test_the_clock_runs_down_and_is_told_to_the_engine():
    white = Scripted("white", seconds=(0.3, 0.2))
    black = Scripted("black", seconds=(0.5, 0.1))
    play_game(white, black, pairing(), under(CLOCK))
    assert [limit.go for limit in white.asked] == [
        b"go wtime 1000 btime 1000 winc 100 binc 100\n",
        b"go wtime 800 btime 600 winc 100 binc 100\n",
    ]
    assert black.asked[1].go == b"go wtime 700 btime 600 winc 100 binc 100\n"
    assert black.asked[1].seconds == pytest.approx(0.6 + 0.05)


@pytest.mark.parametrize(
    ("control", "full", "quarter"),
    [
        (CLOCK, b"go wtime 1000 btime 250 winc 100 binc 25\n", None),
        (TimeControl(low=1.0, high=1.0), b"go movetime 1000\n", b"go movetime 250\n"),
        (NODES, b"go nodes 1000\n", b"go nodes 250\n"),
        (replace(NODES, kind=TimeKind.DEPTH), b"go depth 1000\n", b"go depth 250\n"),
    ],
)
def test_a_handicap_divides_what_minus_gets_whatever_its_colour(control, full, quarter):
    plus, minus = Scripted("plus"), Scripted("minus")
    value = 1.0 if control.kind in (TimeKind.CLOCK, TimeKind.MOVETIME) else 1000.0
    play_pair(
        plus, minus, pairing(time=value), replace(under(control), minus=MinusSettings(handicap=4.0))
    )
    assert plus.asked[0].go == full
    if quarter is not None:
        assert {limit.go for limit in minus.asked} == {quarter}
    else:
        assert minus.asked[2].go == b"go wtime 250 btime 1000 winc 25 binc 100\n"
        assert minus.asked[0].seconds == pytest.approx(0.25 + control.margin)


def test_a_fallen_flag_loses_even_with_a_mate_on_the_board():
    slow = Scripted("slow", seconds=(0.5, 0.7))
    game = play_game(Scripted("white"), slow, pairing(), under(CLOCK))
    assert game.ending == Ending(2, Termination.TIME)
    mate = play_game(Scripted("white"), Scripted("black"), pairing(), under(CLOCK))
    for first, second, lost in ((game, mate, (0, 1)), (mate, game, (1, 0)), (mate, mate, (0, 0))):
        total = with_pair(NOTHING_PLAYED, Pair(pairing(), first, second))
        assert (total.plus_time_losses, total.minus_time_losses) == lost


@pytest.mark.parametrize("rounds", [248, 249])
def test_a_void_game_names_its_position_and_a_very_long_one_its_last(rounds):
    opening = Opening(START.fen, ("g1f3", "g8f6", "f3g1", "f6g8") * rounds)
    white = Scripted("white", fault_at=4 * rounds)
    with pytest.raises(VoidGame, match="white: hang: it was told to") as told:
        play_game(white, Scripted("black"), pairing(opening), under())
    by_moves, by_board = f"startpos moves {' '.join(opening.moves)}", f"fen {START.fen[:-1]}"
    shown = (
        by_moves
        if rounds == 248
        else f"{by_board.replace(' 0 ', f' {4 * rounds} ')}{2 * rounds + 1}"
    )
    assert (told.value.culprit, told.value.white) == ("white", "white")
    assert told.value.position == f"position {shown}"


def test_void_games_are_counted_and_the_first_few_kept():
    batch = ActiveJob(Mock(), since=0.0)
    for reason in ("crash", "hang", "crash", "crash"):
        fault = VoidGame("minus", EngineFault(reason, "why"), "position startpos", "plus")
        batch.add_void(PairVoid("key", pairing(), fault, "its last words"))
    assert batch.result.voids == {"crash": 3, "hang": 1}
    assert len(batch.result.kept_voids) == MAX_KEPT_VOIDS
    assert batch.result.kept_voids[1] == KeptVoid(
        pair=0,
        culprit="minus",
        white="plus",
        detail="minus: hang: why",
        position="position startpos",
        output="its last words",
    )


def test_a_clock_of_forty_moves_is_wound_up_again():
    adjudication = TimeControl(kind=TimeKind.CLOCK, low=10.0, high=10.0, increment=0.5, moves=2)
    clock = GameClock(adjudication, 10.0, USUAL)
    said = []
    for _ in range(4):
        said.append(clock.limit(chess.WHITE).go.decode().split())
        assert not clock.flag_falls(chess.WHITE, 3.0)
    assert [(words[2], words[-1]) for words in said] == [
        ("10000", "2"),
        ("7500", "1"),
        ("15000", "2"),
        ("12500", "1"),
    ]
    assert clock.limit(chess.WHITE).seconds == 20.0 + adjudication.margin
    assert clock.limit(chess.BLACK).go.split()[-2:] == [b"movestogo", b"2"]


@pytest.mark.parametrize(
    ("adjudication", "value", "go", "seconds"),
    [
        (TimeControl(low=0.25, high=1.0), 0.25, b"go movetime 250\n", 1.75),
        (TimeControl(low=0.0001, high=1.0), 0.0001, b"go movetime 1\n", 1.5001),
        (NODES, 5000.0, b"go nodes 5000\n", 51.5),
        (TimeControl(kind=TimeKind.DEPTH, low=3, high=9), 7.0, b"go depth 7\n", 300.0),
    ],
)
def test_other_limits_are_the_same_every_move_and_nobody_flags(adjudication, value, go, seconds):
    keeper = GameClock(adjudication, value, USUAL)
    assert keeper.limit(chess.BLACK) == Limit(go, seconds, 0.0)
    assert not keeper.flag_falls(chess.BLACK, 1e9)


def judged(adjudication, scores, opening=START):
    """The rulings on a game of knight moves whose movers see these scores."""
    adjudicator, position, rulings = Adjudicator(adjudication), Position(opening), []
    shuffle = ("g1f3", "g8f6", "f3g1", "f6g8")
    for ply, score in enumerate(scores):
        assert position.make(shuffle[ply % 4])
        rulings.append(adjudicator.ending(position, score))
    return rulings


DRAW = Adjudication(draw=DrawRule(move_number=3, count=2, score=20), resign=None, max_moves=None)
RESIGN = Adjudication(draw=None, resign=ResignRule(count=2, score=600), max_moves=None)


DRAWN, TOO_LONG = Ending(1, Termination.DRAW), Ending(1, Termination.MAX_MOVES)


@pytest.mark.parametrize(
    ("adjudication", "scores", "last"),
    [
        # a draw takes quiet moves of both, from its move on
        (DRAW, [0] * 8, DRAWN),
        (replace(DRAW, draw=DrawRule(move_number=1, count=1)), [0, 0], DRAWN),
        # one loud or silent move starts the count again
        *((DRAW, [0] * 6 + [loud] + [20, -20, 0, 0], DRAWN) for loud in (21, -21, None)),
        # resigning takes both engines
        (RESIGN, [600, -600] * 2, Ending(2, Termination.RESIGN)),
        (RESIGN, [-600, 600] * 2, Ending(0, Termination.RESIGN)),
        (RESIGN, [900, 900, 900, 900, 900], None),  # both think they win
        (RESIGN, [900, -599, 900, -599, 900], None),  # one does not see it
        (RESIGN, [900, -900, 900, None, 900], None),
        (RESIGN, [900, -900, 900, 900, -900], None),
        (Adjudication(draw=None, resign=None, max_moves=3), [0] * 6, TOO_LONG),
        (NONE, [0] * 60, None),
    ],
)
def test_a_game_is_adjudicated_after_the_last_of_these_scores(adjudication, scores, last):
    assert judged(adjudication, scores) == [None] * (len(scores) - 1) + [last]
