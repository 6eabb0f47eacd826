"""Openings: where every game pair starts, the same on every box."""

from worker.runner.openings.book import BUILTIN, BookOrder, OpeningBook, load
from worker.runner.openings.draws import drawn_time, permutation
from worker.runner.openings.formats import Opening

__all__ = ["BUILTIN", "BookOrder", "Opening", "OpeningBook", "drawn_time", "load", "permutation"]
