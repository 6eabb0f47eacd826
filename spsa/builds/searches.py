"""What an engine finds in a few positions, and where these positions come from.

Two engines that find the same in all of them are the same to the tuner.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice, pairwise

from spsa.builds.smoke import (
    FirstSearch,
    ProcessUnderTest,
    Silent,
    SmokeTimeouts,
    process_under_test,
)
from spsa.core.game_settings import Declarations, clamped
from spsa.core.game_settings.numbers import MAX_CENTIPAWNS, MAX_NODES
from spsa.errors import EngineFault, SmokeTestFailed
from spsa.text import LINE_LENGTH, printable

_MATE = MAX_CENTIPAWNS
_CAP = 100
"""Centipawns: a greater difference says no more than that the game is decided."""

APART = 9
"""Plies between two positions of a game: odd, so that both sides are to move."""

A_GAME = 6
"""Positions of one game."""

_MOVE = re.compile(r"[a-h][1-8][a-h][1-8][nbrq]?")
_CHUNK = 16_384  # bytes of options before the engine has to read them
_REFUSAL = re.compile(r"no such option|unknown|unrecogni|invalid|illegal|no option", re.IGNORECASE)
_SECONDS = SmokeTimeouts().handshake


@dataclass(frozen=True, slots=True)
class Search:
    """The reply to one search: the move, the score in centipawns if there is one, the nodes."""

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
    first = FirstSearch.of_nodes(nodes)
    with _engine(command) as process:
        objections = tuple(_configured(process, options))
        replies = tuple(_reply(process, position, first) for position in positions)
    return Searches(replies, objections)


def positions_of_games(
    command: Sequence[str], options: Mapping[str, str], openings: Sequence[str], nodes: int
) -> tuple[str, ...]:
    """Positions every `APART` plies of games that the engine plays against itself.

    Positions of a book alone are too quiet: few parameters change a search there. `openings` are
    FENs. Raises SmokeTestFailed as `search_all`.
    """
    first = FirstSearch.of_nodes(nodes)
    with _engine(command) as process:
        tuple(_configured(process, options))
        return tuple(
            position
            for fen in openings
            for position in islice(_game(process, fen, first), 0, APART * A_GAME, APART)
        )


def _game(process: ProcessUnderTest, fen: str, first: FirstSearch) -> Iterator[str]:
    """Every position of one game until it ends."""
    position = f"{fen} moves"
    while _MOVE.fullmatch(move := _reply(process, position, first).move):
        position += f" {move}"
        yield position


@contextmanager
def _engine(command: Sequence[str]) -> Iterator[ProcessUnderTest]:
    with process_under_test(command, _SECONDS) as process:
        try:
            yield process
            process.send("quit")
        except (Silent, EngineFault) as fault:
            raise SmokeTestFailed(str(fault)) from fault


def _configured(process: ProcessUnderTest, options: Mapping[str, str]) -> Iterator[str]:
    """Send all options; the lines with which the engine objects to some."""
    declarations = Declarations()
    process.send("uci")
    process.expect("uciok", declarations.read_line)
    heard: list[str] = []
    commands = b""
    for name, value in options.items():
        commands += declarations.command(name, value)
        if len(commands) > _CHUNK:
            _settled(process, commands, heard)
            commands = b""
    _settled(process, commands, heard)
    for line in heard:
        if _REFUSAL.search(line):
            yield printable(line, LINE_LENGTH)


def _settled(process: ProcessUnderTest, commands: bytes, heard: list[str]) -> None:
    process.give(_SECONDS)
    process.send(f"{commands.decode()}isready")
    process.expect("readyok", heard.append)


def _reply(process: ProcessUnderTest, position: str, first: FirstSearch) -> Search:
    infos: list[str] = []
    process.give(_SECONDS)
    process.send("ucinewgame\nisready")
    process.expect("readyok")
    move = process.search(f"position fen {position}", first, infos.append)
    told = [line.split() for line in infos if line.startswith("info ")]
    scores = [score for words in told if (score := _score(words)) is not None]
    nodes = [
        int(count) for words in told for key, count in pairwise(words) if _is_nodes(key, count)
    ]
    return Search(move, scores[-1] if scores else None, min(max(nodes, default=0), MAX_NODES))


def _is_nodes(key: str, count: str) -> bool:
    return key == "nodes" and count.isascii() and count.isdigit() and len(count) < 20


def _score(words: Sequence[str]) -> int | None:
    """A score in centipawns; a mate is more than any other."""
    for at, word in enumerate(words[:-2]):
        if word == "score" and re.fullmatch(r"-?\d+", words[at + 2], re.ASCII):
            number = clamped(words[at + 2], _MATE)
            if words[at + 1] == "mate":
                return _MATE if number > 0 else -_MATE
            return number
    return None
