"""Openings: the positions from which game pairs start, the same on every machine."""

from worker.runner.openings.book import BUILTIN, BookOrder, OpeningBook, load
from worker.runner.openings.positions import Opening, drawn_time, permutation

__all__ = ["BUILTIN", "BookOrder", "Opening", "OpeningBook", "drawn_time", "load", "permutation"]
