"""Openings: where every game pair starts, the same on every box."""

from worker.openings.book import BUILTIN, OpeningBook, load
from worker.openings.draws import drawn_time, permutation
from worker.openings.formats import Opening

__all__ = ["BUILTIN", "Opening", "OpeningBook", "drawn_time", "load", "permutation"]
