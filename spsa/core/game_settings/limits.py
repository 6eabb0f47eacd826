"""The limits of game settings, for the command line of `compete` and for config.toml.

Each is far beyond any use, and small enough that nothing overflows: an engine's 64-bit clock, a
wait of the operating system, the arithmetic of a test.
"""

from spsa.core.game_settings.numbers import MOST_DEPTH, MOST_SCORE

MOST_SECONDS = 86_400.0
"""Of a move, a clock, an increment or a margin."""

MOST_NODES_TO_SEARCH = 10**12
MOST_DEPTH_TO_SEARCH = MOST_DEPTH

MOST_MOVES = 10_000
"""Full moves of a game; the longest possible one has fewer than 6,000."""

MOST_IN_A_ROW = 1_000
"""Consecutive moves of an adjudication rule."""

MOST_CENTIPAWNS = MOST_SCORE

MOST_PLIES = 1_000
"""Plies of an opening."""

MOST_OPTION_LENGTH = 10_000
"""Characters of the name or value of an engine's option."""

MOST_NELO = 200.0
"""Normalised Elo of a hypothesis; from about 230 on no distribution of results has so much."""

LEAST_NELO_APART = 0.01
"""Normalised Elo between two hypotheses; a test with less would never end."""
