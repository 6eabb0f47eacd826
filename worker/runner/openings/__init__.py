"""Openings: where every game pair starts, the same on every box."""

from worker.runner.openings.book import BUILTIN, OpeningBook, Order, load
from worker.runner.openings.draws import drawn_time, permutation
from worker.runner.openings.formats import Opening

__all__ = ["BUILTIN", "Opening", "OpeningBook", "Order", "drawn_time", "load", "permutation"]
