"""The games of a PGN file and their counts, read the same way for every runner."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import chess.pgn

from benches.runner.contenders import FIRST
from spsa.core.scoring import Tally

_POINTS = {"1-0": 2, "0-1": 0, "1/2-1/2": 1}


@dataclass(frozen=True, slots=True)
class Games:
    """Of a whole match, from the first engine's side; `plies` are those the engines played."""

    tally: Tally
    plies: int
    time_losses: int


@dataclass(frozen=True, slots=True)
class Played:
    """One game: its number in the match, whether the first engine had White, and its moves."""

    round: int
    as_white: bool
    result: str
    moves: tuple[str, ...]


def read(file: Path) -> Games:
    """The counts of a match."""
    points: dict[int, list[int]] = defaultdict(list)
    plies = losses = 0
    for headers in _headers(file):
        white = _POINTS[headers["Result"]]
        points[_round(headers)].append(white if headers["White"] == FIRST else 2 - white)
        plies += int(headers["PlyCount"])
        losses += headers.get("Termination") == "time forfeit"
    pairs = [Tally.of_pair(*both) for both in points.values() if len(both) == 2]
    return Games(sum(pairs, Tally()), plies, losses)


def played(file: Path) -> Iterator[Played]:
    """The games themselves, move by move."""
    with file.open(encoding="utf-8") as text:
        while (game := chess.pgn.read_game(text)) is not None:
            headers = game.headers
            moves = tuple(move.uci() for move in game.mainline_moves())
            yield Played(_round(headers), headers["White"] == FIRST, headers["Result"], moves)


def _headers(file: Path) -> Iterator[chess.pgn.Headers]:
    with file.open(encoding="utf-8") as text:
        while (headers := chess.pgn.read_headers(text)) is not None:
            yield headers


def _round(headers: chess.pgn.Headers) -> int:
    return int(headers["Round"].partition(".")[0])
