"""Openings: where every game pair starts, the same on every box."""

from worker.openings.book import BUILTIN, OpeningBook, Order, load
from worker.openings.draws import drawn_time, permutation
from worker.openings.formats import Opening

__all__ = ["BUILTIN", "Opening", "OpeningBook", "Order", "drawn_time", "load", "permutation"]
