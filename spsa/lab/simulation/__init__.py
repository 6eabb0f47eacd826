"""Synthetic engines, and runs of the real rules on them: the papers' experiments and your own."""
