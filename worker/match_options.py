"""The options of a match between two engines: what `compete` takes beside those of every worker."""

from pathlib import Path

import click

from spsa.core.game_settings import (
    MAX_CENTIPAWNS,
    MAX_DEPTH_TO_SEARCH,
    MAX_IN_A_ROW,
    MAX_MOVES,
    MAX_NELO,
    MAX_NODES_TO_SEARCH,
    MAX_PIECES,
    MAX_PLIES,
    MAX_SECONDS,
    MIN_PIECES,
)
from worker.command_options import COUNT, MAX_COUNT, SECONDS, FilePath, FiniteRange

_IN_A_ROW = click.IntRange(1, MAX_IN_A_ROW)
_NELO = FiniteRange(min=-MAX_NELO, max=MAX_NELO)
_SEED = click.IntRange(-(2**63), 2**63 - 1)
_MOVES = click.IntRange(1, MAX_MOVES)

MATCH = (
    click.option(
        "--games", type=click.IntRange(2, MAX_COUNT), help="Games to play; an even number."
    ),
    click.option("--movetime", type=SECONDS, help="Seconds per move.  [default: 0.1]"),
    click.option(
        "--tc",
        metavar="[MOVES/]BASE+INC",
        help="Seconds per game, or per MOVES moves, plus seconds per move, as in 10+0.1.",
    ),
    click.option(
        "--margin",
        type=FiniteRange(min=0, max=MAX_SECONDS),
        default=0.05,
        show_default=True,
        help="Seconds by which an engine may overstep its clock.",
    ),
    click.option("--nodes", type=click.IntRange(1, MAX_NODES_TO_SEARCH), help="Nodes per move."),
    click.option(
        "--depth", type=click.IntRange(1, MAX_DEPTH_TO_SEARCH), help="Depth per move, in plies."
    ),
    click.option(
        "--book",
        default="builtin",
        show_default=True,
        help="Opening book: an EPD, FEN or PGN file, or builtin:unbalanced.",
    ),
    click.option(
        "--plies",
        type=click.IntRange(1, MAX_PLIES),
        help="Plies to play of each game of a PGN book.  [default: all]",
    ),
    click.option(
        "--order",
        type=click.Choice(["random", "sequential"]),
        default="random",
        show_default=True,
        help="Order of the openings; --seed decides a random one.",
    ),
    click.option(
        "--start",
        type=COUNT,
        default=1,
        show_default=True,
        help="Number of the first opening in this order.",
    ),
    click.option(
        "--seed",
        type=_SEED,
        default=1,
        show_default=True,
        help="Seed of the openings and their order.",
    ),
    click.option("--chess960", is_flag=True, help="Play Chess960; --book has its positions."),
    click.option("--option", multiple=True, metavar="NAME=VALUE", help="Option for both engines."),
    click.option(
        "--option1", multiple=True, metavar="NAME=VALUE", help="Option for the first engine."
    ),
    click.option(
        "--option2", multiple=True, metavar="NAME=VALUE", help="Option for the second engine."
    ),
    click.option(
        "--draw",
        type=(click.IntRange(0, MAX_MOVES), _IN_A_ROW, click.IntRange(0, MAX_CENTIPAWNS)),
        default=(34, 8, 20),
        show_default=True,
        metavar="MOVE COUNT CP",
        help="Draw from move MOVE on, when both engines score COUNT moves within CP centipawns.",
    ),
    click.option(
        "--resign",
        type=(_IN_A_ROW, click.IntRange(1, MAX_CENTIPAWNS)),
        default=(3, 600),
        show_default=True,
        metavar="COUNT CP",
        help="End a game when both engines see the same winner by CP centipawns for COUNT moves.",
    ),
    click.option(
        "--max-moves",
        type=_MOVES,
        help="Moves per side after which a game is a draw.  [default: 200]",
    ),
    click.option(
        "--tb-pieces",
        type=click.IntRange(MIN_PIECES, MAX_PIECES),
        metavar="N",
        help="End a game by the --syzygy tables of up to N pieces.",
    ),
    click.option(
        "--no-adjudication",
        is_flag=True,
        help="End games by the rules of chess only, and by --max-moves if given.",
    ),
    click.option(
        "--sprt",
        type=(_NELO, _NELO),
        metavar="ELO0 ELO1",
        help="Stop by SPRT with bounds ELO0 and ELO1 in normalised Elo, alpha = beta = 0.05.",
    ),
    click.option(
        "--pgn", type=FilePath(dir_okay=False, path_type=Path), help="File to append the games to."
    ),
    click.option("--json", "as_json", is_flag=True, help="Print the final report as JSON."),
    click.option(
        "--progress",
        type=COUNT,
        default=10,
        show_default=True,
        help="Pairs between two lines of progress.",
    ),
)
