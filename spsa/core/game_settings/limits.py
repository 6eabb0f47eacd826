"""How far the settings of games may go: the same on the command line of `compete` and in a config.

Each limit is far beyond what anybody wants, and near enough that nothing behind it overflows: an
engine's 64-bit clock, a wait of the operating system, the arithmetic of a test.
"""

from spsa.core.game_settings.numbers import MOST_DEPTH, MOST_SCORE

MOST_SECONDS = 86_400.0
"""Of a move, a clock, an increment or a margin."""

MOST_NODES_TO_SEARCH = 10**12
MOST_DEPTH_TO_SEARCH = MOST_DEPTH

MOST_MOVES = 10_000
"""Full moves of a game; the longest possible one has fewer than 6,000."""

MOST_IN_A_ROW = 1_000
"""Moves on which engines have to agree before a game is adjudicated."""

MOST_CENTIPAWNS = MOST_SCORE

MOST_PLIES = 1_000
"""Plies of a book's game."""

MOST_OPTION_LENGTH = 10_000
"""Characters of the name or value of an engine's option."""

MOST_NELO = 200.0
"""Normalised Elo of a hypothesis; from about 230 on there is no distribution of results for it."""

LEAST_NELO_APART = 0.01
"""Between two hypotheses; a test of less would never end."""
