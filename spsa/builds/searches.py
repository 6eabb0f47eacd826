"""What an engine finds in a few positions, and where these positions come from.

Two engines that find the same in all of them are the same to the tuner.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from spsa.builds.smoke import FirstSearch, SmokeTimeouts, engine_under_test
from spsa.errors import EngineFault
from spsa.text import LINE_LENGTH, printable
from spsa.uci.engine import UciEngine

_CAP = 100
"""Centipawns: a greater difference says no more than that the game is decided."""

APART = 9
"""Plies between two positions of a game: odd, so that both sides are to move."""

A_GAME = 6
"""Positions of one game."""

_REFUSAL = re.compile(r"no such option|unknown|unrecogni|invalid|illegal|no option", re.IGNORECASE)
_SECONDS = SmokeTimeouts().handshake


@dataclass(frozen=True, slots=True)
class Search:
    """The reply to one search, without its time; the move is empty where the game is over."""

    move: str
    score: int | None
    nodes: int


@dataclass(frozen=True, slots=True)
class Searches:
    """The replies of one engine to all positions, and what it objects to its options."""

    replies: tuple[Search, ...]
    objections: tuple[str, ...] = ()

    def moves_changed(self, other: "Searches") -> float:
        """The part of the positions in which the two find different moves."""
        pairs = list(zip(self.replies, other.replies, strict=True))
        return sum(one.move != two.move for one, two in pairs) / len(pairs)

    def score_change(self, other: "Searches") -> float:
        """The mean difference of the scores, in centipawns, over the positions that have two."""
        apart = [
            min(abs(one.score - two.score), _CAP)
            for one, two in zip(self.replies, other.replies, strict=True)
            if one.score is not None and two.score is not None
        ]
        return sum(apart) / len(apart) if apart else 0.0


def search_all(
    command: Sequence[str], options: Mapping[str, str], positions: Sequence[str], nodes: int
) -> Searches:
    """Search every position to so many nodes, each as the first move of a new game.

    A position is what follows `position fen`. Raises SmokeTestFailed for an engine that ends,
    hangs, or declares no such option.
    """
    with engine_under_test(command, _SECONDS, options) as (engine, heard):
        objections = [printable(line, LINE_LENGTH) for line in heard if _REFUSAL.search(line)]
        replies = tuple(_reply(engine, position, nodes) for position in positions)
    return Searches(replies, tuple(objections))


def positions_of_games(
    command: Sequence[str], options: Mapping[str, str], openings: Sequence[str], nodes: int
) -> tuple[str, ...]:
    """Positions every `APART` plies of games that the engine plays against itself.

    Positions of a book alone are too quiet: few parameters change a search there. `openings` are
    FENs. Raises SmokeTestFailed as `search_all`.
    """
    with engine_under_test(command, _SECONDS, options) as (engine, _):
        return tuple(
            position
            for fen in openings
            for position in islice(_game(engine, fen, nodes), 0, APART * A_GAME, APART)
        )


def _game(engine: UciEngine, fen: str, nodes: int) -> Iterator[str]:
    """Every position of one game until it ends."""
    position = f"{fen} moves"
    while move := _reply(engine, position, nodes).move:
        position += f" {move}"
        yield position


def _reply(engine: UciEngine, position: str, nodes: int) -> Search:
    engine.prepare()
    engine.await_ready()
    try:
        limit = FirstSearch.of_nodes(nodes).limit
        reply = engine.search(f"position fen {position}".encode(), limit)
    except EngineFault as fault:
        if fault.reason != "no move":
            raise
        return Search("", None, 0)
    return Search(reply.move, reply.score, reply.nodes)
