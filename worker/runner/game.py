"""One game between two engines; a pair: one opening and time, colours swapped; sums of pairs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from chess import BLACK, WHITE, Color
from chess.syzygy import Tablebase

from spsa.core.game_settings import MAX_NODES_OF_BATCH, GameSettings
from spsa.core.scoring import Tally
from spsa.errors import EngineFault
from spsa.openings.book import Opening
from spsa.protocol import BatchResult
from spsa.text import FAILURE_LENGTH, OTHER_REASONS, VOID_REASON_LENGTH, VOID_REASONS, printable
from spsa.uci.engine import SearchReply, UciEngine
from spsa.uci.spawning import EngineSpec
from worker.runner.adjudication import Adjudicator, GameClock
from worker.runner.position import Ending, Position, Termination, won_by

Engine = TypeVar("Engine", UciEngine, EngineSpec)

_MAX_COMMAND = 5_000  # characters; some 500 moves


class GameVoid(EngineFault):
    """A game that does not count, because of a fault of the engine `culprit`.

    `position` is the UCI command for the game so far, and `white` had White; both are empty if the
    game had not begun.
    """

    def __init__(
        self, culprit: str, fault: EngineFault, position: str = "", white: str = ""
    ) -> None:
        super().__init__(fault.reason, "")
        self.culprit = culprit
        self.position = position
        self.white = white
        self.args = (printable(f"{culprit}: {fault}", FAILURE_LENGTH),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """The number of a pair, its opening, and the time drawn for it (see TimeControl)."""

    number: int
    opening: Opening
    time: float


@dataclass(frozen=True, slots=True)
class Game:
    """A finished game; `first` is the side that made the first of these moves."""

    ending: Ending
    moves: tuple[SearchReply, ...]
    first: Color

    def nodes(self, side: Color) -> int:
        return sum(reply.nodes for reply in self.moves[side != self.first :: 2])

    def lost_on_time_by(self, side: Color) -> bool:
        return self.ending == won_by(not side, Termination.TIME)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two finished games from one opening: plus plays White in the first, Black in the second.

    `key` is that of its job, and `slot` the number of the slot that played it, from 0.
    """

    key: str
    pairing: Pairing
    first: Game
    second: Game
    slot: int

    @property
    def tally(self) -> Tally:
        return Tally.of_pair(self.first.ending.white, 2 - self.second.ending.white)


NOTHING_PLAYED = BatchResult(tally=Tally())


def with_pair(total: BatchResult, pair: Pair) -> BatchResult:
    """The sums of a batch, a match or a slot, with one more pair."""
    first, second = pair.first, pair.second
    plus_nodes = total.plus_nodes + first.nodes(WHITE) + second.nodes(BLACK)
    minus_nodes = total.minus_nodes + first.nodes(BLACK) + second.nodes(WHITE)
    lost_by_plus = first.lost_on_time_by(WHITE) + second.lost_on_time_by(BLACK)
    lost_by_minus = first.lost_on_time_by(BLACK) + second.lost_on_time_by(WHITE)
    replies = (*first.moves, *second.moves)
    return replace(
        total,
        tally=total.tally + pair.tally,
        plus_nodes=min(plus_nodes, MAX_NODES_OF_BATCH),
        minus_nodes=min(minus_nodes, MAX_NODES_OF_BATCH),
        plus_time_losses=total.plus_time_losses + lost_by_plus,
        minus_time_losses=total.minus_time_losses + lost_by_minus,
        moves=total.moves + len(replies),
        think_seconds=total.think_seconds + sum(reply.seconds for reply in replies),
    )


def with_void(total: BatchResult, reason: str) -> BatchResult:
    """The sums with one more void game; the other game of its pair does not count as void.

    Engines can cause any number of different reasons: those after the first few share one.
    """
    known, voids = printable(reason, VOID_REASON_LENGTH), total.voids
    if known not in voids and len(voids) >= VOID_REASONS - 1:
        known = OTHER_REASONS
    return replace(total, voids={**voids, known: voids.get(known, 0) + 1})


def nps(total: BatchResult) -> float | None:
    """Nodes a second of one engine while it thinks."""
    nodes = total.plus_nodes + total.minus_nodes
    return nodes / total.think_seconds if total.think_seconds > 0 else None


def counts(tally: Tally) -> str:
    """Wins, losses, draws and the pentanomial, as a line of the log shows them."""
    pairs = " ".join(str(count) for count in tally.pentanomial)
    return f"+{tally.wins} -{tally.losses} ={tally.draws} [{pairs}]"


def play_pair(
    plus: UciEngine,
    minus: UciEngine,
    pairing: Pairing,
    settings: GameSettings,
    tables: Tablebase | None = None,
    at_half: Callable[[], None] = lambda: None,
) -> tuple[Game, Game]:
    """Play both games, and call `at_half` between them; adjudication may ask the `tables`.

    GameVoid when one of them is void; then neither counts. After the second game both players are
    asked for `readyok` once more, which shows an extra `bestmove`.
    """
    first = play_game(plus, minus, pairing, settings, tables)
    at_half()
    second = play_game(minus, plus, pairing, settings, tables, minus_side=WHITE)
    for_both((plus, minus), lambda player: player.settle(), lambda player: player.await_ready())
    return first, second


def play_game(
    white: UciEngine,
    black: UciEngine,
    pairing: Pairing,
    settings: GameSettings,
    tables: Tablebase | None = None,
    minus_side: Color = BLACK,
) -> Game:
    """Play one game; GameVoid names the engine that made it void."""
    players = (black, white)  # indexed by the colour, where White is True
    position = Position(pairing.opening)
    handicaps = {minus_side: settings.handicap}
    clock = GameClock(settings.time_control, pairing.time, white.limits, handicaps)
    adjudicator = Adjudicator(settings.adjudication, tables)
    first, ending, moves = position.turn, None, list[SearchReply]()
    for_both(players, lambda player: player.prepare(), lambda player: player.await_ready())
    try:
        while ending is None:
            reply, ending = _move(players[position.turn], position, clock, adjudicator)
            moves.append(reply)
    except EngineFault as fault:
        culprit, reached = players[position.turn].name, position.command.decode()
        if len(reached) > _MAX_COMMAND:  # a very long game is shown by its last position
            reached = f"position fen {position.board.fen()}"
        raise GameVoid(culprit, fault, reached, white.name) from None
    return Game(ending, tuple(moves), first)


def for_both(both: Sequence[Engine], *steps: Callable[[Engine], None]) -> None:
    """Take each step for both engines, then the next one; an EngineFault becomes a GameVoid.

    So both are asked before either is waited for, and start or clear their hash tables in parallel.
    """
    for step in steps:
        for one in both:
            try:
                step(one)
            except EngineFault as fault:
                raise GameVoid(one.name, fault) from None


def _move(
    player: UciEngine, position: Position, clock: GameClock, adjudicator: Adjudicator
) -> tuple[SearchReply, Ending | None]:
    side = position.turn
    reply = player.search(position.command, clock.limit(side))
    if clock.flag_falls(side, reply.seconds):
        return reply, won_by(not side, Termination.TIME)
    if not position.make(reply.move):
        raise EngineFault("illegal move", f"{reply.move} in {position.board.fen()}")
    return reply, position.ending() or adjudicator.ending(position, reply.score)
