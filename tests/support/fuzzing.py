"""How long the fuzz tests go on, and what they are made of.

SPSA_TEST_LONG=1 is 100,000 inputs a test, SPSA_TEST_EXAMPLES another number; SPSA_TEST_SEED=n
repeats a search.
"""

import os
import random
import struct
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st

Made = TypeVar("Made")

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


class Chance(random.Random):
    """What inputs are made of. Strategies of hypothesis would take ten times as long for each."""

    def number(self) -> str:
        match self.randrange(4):
            case 0:
                return self.choice(SUSPECT)
            case 1:
                return str(self.randint(-(2**70), 2**70))
            case 2:
                return str(self.randint(-10, 1000))
            case _:
                return repr(struct.unpack("d", self.randbytes(8))[0])

    def text(self, size: int = 30) -> str:
        """Pieces with things in them that no terminal should see."""
        return "".join(
            self.choice(NASTY) if self.random() < 0.4 else self.word()
            for _ in range(self.randrange(size + 1))
        )

    def word(self) -> str:
        """A few characters of any script; no surrogates."""
        ends = (0x80, 0x80, 0x100, 0x3000, 0xD800, 0x110000)
        found = (self.randrange(self.choice(ends)) for _ in range(self.randrange(8)))
        return "".join(chr(c) for c in found if not 0xD800 <= c < 0xE000)

    def many(self, make: Callable[[], Made], most: int) -> list[Made]:
        return [make() for _ in range(self.randrange(most + 1))]


def made(make: Callable[[Chance], Made]) -> st.SearchStrategy[Made]:
    """Inputs that one number decides; hypothesis shows what came of it."""
    return st.integers(0, 2**63 - 1).map(lambda number: make(Chance(number)))


def fuzz(short: int = 300) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A test of 100,000 inputs in the long form, and of `short` otherwise."""
    inputs = int(os.environ.get("SPSA_TEST_EXAMPLES", 100_000 if LONG else short))
    chosen = settings(
        max_examples=inputs, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        limited = pytest.mark.timeout(7200 if LONG else 300)(test)
        return seed(SEED)(chosen(limited))

    return decorate
