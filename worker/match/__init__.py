"""A match of two engines, its report and its PGN."""
