"""Makes a book of openings for an engine: positions that its own search scores as wanted.

Candidates are random lines from the start position, or positions that a file has. A line is made of
moves that lose little by a short search; a candidate is kept if a longer search scores it between
two limits. Equal engines, numbers and seeds make equal books, with any number of engines at a time.
"""

import random
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count, islice
from queue import SimpleQueue
from typing import Protocol

import chess

from spsa.builds.searches import Search, Searcher
from spsa.errors import SmokeTestFailed
from spsa.openings.positions import Opening

_TRIES = 4
"""Random moves that are tried at a ply before the best one is played."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Scores that are kept: from `low` to `high` centipawns for either side, at `nodes` nodes."""

    low: int
    high: int
    nodes: int

    def holds(self, score: int) -> bool:
        return self.low <= abs(score) <= self.high


@dataclass(frozen=True, slots=True)
class ScoredOpening:
    """A position as EPD, and its score in centipawns for the side to move."""

    epd: str
    score: int


class Candidates(Protocol):
    """The positions that a book is chosen from, by number; None for one that is of no use."""

    def position(self, number: int, search: Searcher) -> chess.Board | None: ...

    def numbers(self) -> Iterator[int]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomLines:
    """Lines of `plies` moves from the start position, or from random ones of Chess960.

    Each move is drawn from those that lose at most `slack` centipawns by searches of `nodes` nodes.
    """

    plies: int
    slack: int
    nodes: int
    seed: int
    chess960: bool = False

    def numbers(self) -> Iterator[int]:
        return count()

    def position(self, number: int, search: Searcher) -> chess.Board | None:
        rng = random.Random(f"{self.seed} {number}")
        board = (
            chess.Board.from_chess960_pos(rng.randrange(960)) if self.chess960 else chess.Board()
        )
        reply = _searched(board, search, self.nodes)
        for _ in range(self.plies):
            reply = self._move(board, reply, search, rng)
            if board.is_game_over():
                return None
        return board

    def _move(
        self, board: chess.Board, best: Search, search: Searcher, rng: random.Random
    ) -> Search:
        """Play a move; the reply to the position after it."""
        moves = sorted(board.legal_moves, key=chess.Move.uci)
        for move in rng.sample(moves, min(_TRIES, len(moves))):
            board.push(move)
            if not board.is_game_over():
                reply = _searched(board, search, self.nodes)
                if -score_of(reply) >= score_of(best) - self.slack:
                    return reply
            board.pop()
        board.push(_legal(board, best.move))
        return _searched(board, search, self.nodes)


@dataclass(frozen=True, slots=True)
class GivenOpenings:
    """The openings of a file, each once, in an order that follows from the seed."""

    openings: Sequence[Opening]
    seed: int

    def numbers(self) -> Iterator[int]:
        size = len(self.openings)
        yield from random.Random(self.seed).sample(range(size), size)

    def position(self, number: int, search: Searcher) -> chess.Board | None:
        return self.openings[number].board()


def chosen(
    candidates: Candidates, window: Window, searchers: Sequence[Searcher]
) -> Generator[ScoredOpening | None, None, None]:
    """What becomes of each candidate, in their order: an opening, or None if it is not kept."""
    free: SimpleQueue[Searcher] = SimpleQueue()
    for search in searchers:
        free.put(search)

    def judged(number: int) -> ScoredOpening | None:
        search = free.get()
        try:
            board = candidates.position(number, search)
            return None if board is None else _scored(board, window, search)
        finally:
            free.put(search)

    seen: set[str] = set()
    for opening in _in_order(judged, candidates.numbers(), len(searchers)):
        key = "" if opening is None else " ".join(opening.epd.split()[:4])
        yield None if key in seen else opening
        seen.add(key)


def _scored(board: chess.Board, window: Window, search: Searcher) -> ScoredOpening | None:
    if board.is_check() or board.is_game_over():
        return None
    score = score_of(_searched(board, search, window.nodes))
    if not window.holds(score):
        return None
    clock, move = board.halfmove_clock, board.fullmove_number
    epd = board.epd(shredder=board.chess960, hmvc=clock, fmvn=move, ce=score)
    return ScoredOpening(epd, score)


def _in_order(
    work: Callable[[int], ScoredOpening | None], numbers: Iterator[int], at_once: int
) -> Iterator[ScoredOpening | None]:
    pool = ThreadPoolExecutor(at_once)
    try:
        pending = deque(pool.submit(work, number) for number in islice(numbers, 2 * at_once))
        while pending:
            yield pending.popleft().result()
            pending.extend(pool.submit(work, number) for number in islice(numbers, 1))
    finally:
        pool.shutdown(cancel_futures=True)


def score_of(reply: Search) -> int:
    """Centipawns for the side to move. Raises SmokeTestFailed if the engine told no score."""
    if reply.score is None:
        raise SmokeTestFailed(
            "it tells no score (`info ... score cp ...`), by which a book is made"
        )
    return reply.score


def _searched(board: chess.Board, search: Searcher, nodes: int) -> Search:
    return search(board.fen(shredder=board.chess960), nodes)


def _legal(board: chess.Board, text: str) -> chess.Move:
    try:
        return board.parse_uci(text)
    except ValueError:
        raise SmokeTestFailed(f"it plays {text!r} in {board.fen()}") from None
