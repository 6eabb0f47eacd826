"""The match runner that most people write: a thread a game, python-chess for all of it.

`engine.play` per move, every info line parsed, and the rules asked for all claims after each move.
It is here to be measured, and takes the words that the contenders share.
"""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import chess
import chess.engine
import chess.pgn
import click


@dataclass(frozen=True, slots=True)
class Time:
    """A limit a move, or a clock (seconds) when `base` is given."""

    fixed: chess.engine.Limit
    base: float | None = None
    increment: float = 0.0

    def limit(self, clocks: dict[chess.Color, float]) -> chess.engine.Limit:
        if self.base is None:
            return self.fixed
        white, black = (max(0.001, clocks[side]) for side in (chess.WHITE, chess.BLACK))
        gain = self.increment
        return chess.engine.Limit(
            white_clock=white, black_clock=black, white_inc=gain, black_inc=gain
        )


def play_game(
    engines: dict[chess.Color, chess.engine.SimpleEngine],
    board: chess.Board,
    time_control: Time,
    max_moves: int,
) -> tuple[str, bool]:
    """Play on `board` to the end; the result, and whether a flag fell."""
    clocks = dict.fromkeys(chess.COLORS, time_control.base or 0.0)
    plies, this_game = 0, object()
    while not board.is_game_over(claim_draw=True) and plies < 2 * max_moves:
        side, began = board.turn, time.monotonic()
        answer = engines[side].play(
            board, time_control.limit(clocks), game=this_game, info=chess.engine.INFO_ALL
        )
        clocks[side] -= time.monotonic() - began
        if time_control.base is not None and clocks[side] < -0.05:
            return ("0-1" if side else "1-0"), True
        clocks[side] += time_control.increment
        assert answer.move is not None
        board.push(answer.move)
        plies += 1
    result = board.result(claim_draw=True)
    return ("1/2-1/2" if result == "*" else result), False


@dataclass(frozen=True, slots=True)
class Match:
    engines: tuple[Path, Path]
    options: dict[str, str]
    time_control: Time
    max_moves: int
    pgn: Path
    lock: Lock

    def play_pair(self, number: int, fen: str) -> None:
        """Start two engines and play both games of a pair."""
        players = [chess.engine.SimpleEngine.popen_uci(str(path)) for path in self.engines]
        for player in players:
            player.configure(self.options)
        for white in (0, 1):
            self._play(number, fen, white, players)
        for player in players:
            player.quit()

    def _play(
        self, number: int, fen: str, white: int, players: list[chess.engine.SimpleEngine]
    ) -> None:
        board = chess.Board(fen)
        seats = {chess.WHITE: players[white], chess.BLACK: players[1 - white]}
        result, flagged = play_game(seats, board, self.time_control, self.max_moves)
        game = chess.pgn.Game.from_board(board)
        game.headers["Round"] = str(number)
        game.headers["White"], game.headers["Black"] = (
            self.engines[side].name for side in (white, 1 - white)
        )
        game.headers["Result"] = result
        game.headers["PlyCount"] = str(len(board.move_stack))
        game.headers["Termination"] = "time forfeit" if flagged else "normal"
        with self.lock, self.pgn.open("a", encoding="utf-8") as file:
            file.write(f"{game}\n\n")


def _fens(book: Path) -> Iterator[str]:
    while True:
        yield from book.read_text(encoding="utf-8").splitlines()


def _time(nodes: int | None, movetime: float | None, tc: str | None) -> Time:
    if tc is not None:
        base, increment = tc.split("+")
        return Time(chess.engine.Limit(), float(base), float(increment))
    return Time(chess.engine.Limit(nodes=nodes, time=movetime))


_FILE = click.Path(path_type=Path)


@click.command()
@click.argument("engines", nargs=2, type=_FILE)
@click.option("--games", type=int, required=True)
@click.option("-c", "--concurrency", type=int, required=True)
@click.option("--nodes", type=int)
@click.option("--movetime", type=float)
@click.option("--tc")
@click.option("--book", type=_FILE, required=True)
@click.option("--max-moves", type=int, required=True)
@click.option("--pgn", type=_FILE, required=True)
@click.option("--option", "options", multiple=True)
def main(
    engines: tuple[Path, Path],
    games: int,
    concurrency: int,
    nodes: int | None,
    movetime: float | None,
    tc: str | None,
    book: Path,
    max_moves: int,
    pgn: Path,
    options: tuple[str, ...],
) -> None:
    """Play a match of pairs and append its games to a PGN file."""
    settings = dict(option.split("=", 1) for option in options)
    match = Match(engines, settings, _time(nodes, movetime, tc), max_moves, pgn, Lock())
    with ThreadPoolExecutor(concurrency) as slots:
        for _ in slots.map(match.play_pair, range(1, games // 2 + 1), _fens(book)):
            pass


if __name__ == "__main__":
    main()
