"""Makes a book of balanced openings with a UCI engine; this is how balanced.epd was made.

    python -m worker.runner.openings.make_book /usr/games/stockfish --out balanced.epd

Every line is a walk of `plies` plies from the start position. The first two plies are drawn from
all that the engine finds playable, the later ones from its best few, always within `slack`
centipawns of its best move, so that the walks look like openings and not like blunders. A walk is
kept when a longer search scores it within `window` centipawns, when its side to move is not in
check, when its position is new, and while its first four plies are not yet over-represented.
With the same engine, arguments and one thread the same book comes out.
"""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import chess
import chess.engine
import click


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Scores in centipawns, searches in nodes."""

    size: int
    plies: int
    window: int
    slack: int
    breadth: int
    walk_nodes: int
    check_nodes: int
    siblings: int
    seed: int


def candidates(
    engine: chess.engine.SimpleEngine, board: chess.Board, recipe: Recipe
) -> list[chess.Move]:
    """The moves within `slack` centipawns of the best, in the engine's order."""
    breadth = recipe.breadth * 2 if board.ply() < 2 else recipe.breadth
    lines = engine.analyse(board, chess.engine.Limit(nodes=recipe.walk_nodes), multipv=breadth)
    scored = [(_centipawns(line, board.turn), line["pv"][0]) for line in lines if line.get("pv")]
    best = max(score for score, _ in scored)
    return [move for score, move in scored if score >= best - recipe.slack]


def walk(engine: chess.engine.SimpleEngine, rng: random.Random, recipe: Recipe) -> chess.Board:
    board = chess.Board()
    while board.ply() < recipe.plies:
        board.push(rng.choice(candidates(engine, board, recipe)))
    return board


def balanced(engine: chess.engine.SimpleEngine, board: chess.Board, recipe: Recipe) -> bool:
    if board.is_check() or board.is_game_over():
        return False
    line = engine.analyse(board, chess.engine.Limit(nodes=recipe.check_nodes), game=object())
    return abs(_centipawns(line, chess.WHITE)) <= recipe.window


def openings(engine: chess.engine.SimpleEngine, recipe: Recipe) -> Iterator[chess.Board]:
    """Endless: distinct balanced positions, at most `siblings` of them with equal first plies."""
    rng = random.Random(recipe.seed)
    seen: set[str] = set()
    families: Counter[tuple[chess.Move, ...]] = Counter()
    while True:
        board = walk(engine, rng, recipe)
        family = tuple(board.move_stack[:4])
        if board.epd() in seen or families[family] >= recipe.siblings:
            continue
        seen.add(board.epd())
        if balanced(engine, board, recipe):
            families[family] += 1
            yield board


def _centipawns(line: chess.engine.InfoDict, side: chess.Color) -> int:
    return line["score"].pov(side).score(mate_score=100_000)


def _epd(board: chess.Board) -> str:
    return board.epd(hmvc=board.halfmove_clock, fmvn=board.fullmove_number)


@click.command()
@click.argument("engine", type=click.Path(exists=True, dir_okay=False))
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True)
@click.option("--size", default=1000, show_default=True, help="Number of openings.")
@click.option("--plies", default=8, show_default=True)
@click.option("--window", default=40, show_default=True, help="Largest |score| kept, centipawns.")
@click.option(
    "--slack", default=45, show_default=True, help="How much worse than the best a move may be."
)
@click.option("--breadth", default=8, show_default=True, help="Moves considered per position.")
@click.option("--walk-nodes", default=8_000, show_default=True)
@click.option("--check-nodes", default=150_000, show_default=True)
@click.option(
    "--siblings", default=4, show_default=True, help="Openings with equal first four plies."
)
@click.option("--seed", default=20_260, show_default=True)
def main(engine: str, out: Path, **recipe: int) -> None:
    """Write a book of balanced openings, made with the UCI engine ENGINE."""
    settings = Recipe(**recipe)
    with chess.engine.SimpleEngine.popen_uci(engine) as player:
        player.configure({"Threads": 1, "Hash": 16})
        boards = openings(player, settings)
        lines = [_epd(next(boards)) for _ in range(settings.size)]
    out.write_text("\n".join(sorted(lines)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
