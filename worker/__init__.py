"""The machine that plays: openings, engines, games, pairs, and the loop that claims and reports."""
