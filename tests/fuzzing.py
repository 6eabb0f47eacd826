"""How long the fuzz tests go on, and what they are made of.

SPSA_TEST_LONG=1 is 100,000 inputs a test, SPSA_TEST_EXAMPLES another number; SPSA_TEST_SEED=n
repeats a search.
"""

import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st

LONG = bool(os.environ.get("SPSA_TEST_LONG"))
SEED = int(os.environ.get("SPSA_TEST_SEED", "1"))

NASTY = ("\0", "\n", "\r", "\t", "\x1b[2J", "\x9b", "\u202e", "\u2028", "\u200b", "\ud800", "\x7f")
"""What repaints a terminal, forges a line or hides, and what no encoding has."""

SUSPECT = (
    *("0", "-0", "1", "-1", "+1", "007", "1_0", "1e9", "0x10", "1.5", ".", "-", "+", "\u0663"),
    *("nan", "-nan", "inf", "-inf", "1e308", "1e309", "1e-320", "5e-324"),
    *(str(2**n + d) for n in (15, 31, 32, 53, 62, 63, 64, 100) for d in (-1, 0, 1)),
    *(str(-(2**n)) for n in (31, 63, 64)),
    *("9" * 400, "9" * 5000, "-" + "9" * 5000, "0" * 5000 + "7"),
)
"""Numbers that some reader of numbers takes for another or dies of."""


def numbers() -> st.SearchStrategy[str]:
    return st.one_of(
        st.sampled_from(SUSPECT),
        st.integers(-(2**70), 2**70).map(str),
        st.integers(-10, 1000).map(str),
        st.floats().map(repr),
    )


def texts(size: int = 30) -> st.SearchStrategy[str]:
    """Words with things in them that no terminal should see."""
    characters = st.characters(codec="utf-8")
    return st.lists(st.sampled_from(NASTY) | st.text(characters, max_size=8), max_size=size).map(
        "".join
    )


def fuzz(short: int = 80) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A test of 100,000 inputs in the long form, and of `short` otherwise."""
    inputs = int(os.environ.get("SPSA_TEST_EXAMPLES", 100_000 if LONG else short))
    chosen = settings(
        max_examples=inputs,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        limited = pytest.mark.timeout(7200 if LONG else 300)(test)
        return seed(SEED)(chosen(limited))

    return decorate
