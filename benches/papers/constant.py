"""Simulates SPSA with constant gains, millions of games, on van den Bergh's problem.

Every game is played between theta + c and theta - c and moves theta by r c towards the winner; a
drawn game moves nothing. So only decisive games are simulated: their number of N is binomial,
whatever the strength, and the winner depends on theta only,

    P(won | decisive) = 1/2 + tanh(x / C) / (2 (1 - d))

if plus is x Elo stronger. (If x is so large that this exceeds 1, beyond 143 Elo at d = 0.61, all
are won.)

With e_i the loss, kappa_i = 4 r e_i c_i^2, and theta in units that make

    chi_i = theta_i sqrt(kappa_i) / (r c_i),   D_i = delta_i sqrt(kappa_i)

Elo is x = -sum D_i chi_i, and a game moves chi by +D or -D: the same array gives the strength and
the step. Replicas are on the last axis, so that every operation is over all of them, and random
signs are the bits of random words. Single precision is enough as long as the best values are less
than a hundred thousand wins away.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from spsa.core.params import Vector
from spsa.core.scoring import ELO_PER_SCORE

Single = npt.NDArray[np.float32]
Words = npt.NDArray[np.uint32]

_TOGETHER = 2**16  # numbers in an array, so that all arrays fit the processor's cache
_WORD = 32
_SIGN = np.uint32(2**31)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ConstantGains:
    """A process: `loss` in Elo per squared unit (above 0) and `c` in units, shape (n,) each."""

    loss: Vector
    c: Vector
    r: float
    draw_rate: float

    def at_once(self, theta: Vector, games: int, rng: np.random.Generator) -> Vector:
        """Theta after `games` that perturb all parameters (example 1.2: SPSA).

        `theta`, shape (R, n), is relative to the best values, and so is the result. The generator
        has to produce words of 64 bits.
        """
        batch = max(_TOGETHER // self.c.size, 1)
        parts = np.array_split(theta, range(batch, len(theta), batch))
        return np.concatenate([self._simultaneous(part, games, rng) for part in parts])

    def in_turn(self, theta: Vector, games: int, rng: np.random.Generator) -> Vector:
        """As `at_once`, with games that perturb one parameter each, in turns (example 1.1: FDSA).

        Parameters that never move together are independent: each is a process of its own.
        """
        n = self.c.size
        played = [games // n + (i < games % n) for i in range(n)]
        alone = (
            ConstantGains(
                loss=self.loss[[i]], c=self.c[[i]], r=self.r, draw_rate=self.draw_rate
            ).at_once(theta[:, [i]], played[i], rng)
            for i in range(n)
        )
        return np.concatenate(list(alone), axis=-1)

    def _simultaneous(self, theta: Vector, games: int, rng: np.random.Generator) -> Vector:
        size = np.sqrt(4 * self.r * self.loss * self.c**2)  # sqrt(kappa)
        unit = size / (self.r * self.c)
        decisive = rng.binomial(games, 1 - self.draw_rate, len(theta))
        order = np.argsort(-decisive)
        field = _Field(
            chi=np.ascontiguousarray((theta * unit)[order].T, dtype=np.float32),
            size=size[:, None].astype(np.float32),
            surprise=1 - self.draw_rate,
            rng=rng,
        )
        for playing, count in _stretches(decisive[order]):
            field.part(playing).play(count)
        ended = np.empty_like(theta)
        ended[order] = field.chi.T / unit
        return ended


def _stretches(falling: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """How many replicas still play, and for how many games; the last one stops first."""
    before = 0
    for count in np.unique(falling):
        yield int((falling >= count).sum()), int(count) - before
        before = int(count)


@dataclass(frozen=True, eq=False, kw_only=True)  # no slots: arrays are allocated once, when needed
class _Field:
    """Replicas: `chi`, shape (n, R), is changed in place; `size`, (n, 1), is sqrt(kappa)."""

    chi: Single
    size: Single
    surprise: float
    rng: np.random.Generator

    def part(self, replicas: int) -> "_Field":
        """The first replicas, as a view of the same arrays."""
        chi = self.chi[:, :replicas]
        return _Field(chi=chi, size=self.size, surprise=self.surprise, rng=self.rng)

    def play(self, games: int) -> None:
        for _ in range(games):
            self._play_one()

    def _play_one(self) -> None:
        words = self._words(len(self._masks) + 1)
        self._draw_signs(words[1:])
        np.multiply(self.chi, self._signed, out=self._room)
        np.add.reduce(self._room, axis=0, out=self._elo)  # minus x
        self._decide(words[0].view(np.int32))
        np.multiply(self._signed, self._elo, out=self._room)
        np.subtract(self.chi, self._room, out=self.chi)

    def _decide(self, luck: npt.NDArray[np.int32]) -> None:
        """Replace minus x by +-1: tanh(x / C) against a uniform number of +-(1 - d)."""
        elo = self._elo
        np.multiply(elo, np.float32(1 / ELO_PER_SCORE), out=elo)
        np.tanh(elo, out=elo)
        np.multiply(elo, np.float32(2**31 / self.surprise), out=elo)
        np.add(elo, luck, out=elo, casting="same_kind")
        np.sign(elo, out=elo)

    def _draw_signs(self, words: Words) -> None:
        """D: each bit of a word is shifted to the sign bit of a floating point number."""
        for i, masks in enumerate(self._masks):
            rows = self._bits[i * _WORD : (i + 1) * _WORD]
            np.multiply(words[i], masks, out=rows)
            np.bitwise_and(rows, _SIGN, out=rows)
        np.bitwise_or(self._bits, self.size.view(np.uint32), out=self._bits)

    def _words(self, rows: int) -> Words:
        replicas = self.chi.shape[-1]
        drawn = self.rng.bit_generator.random_raw((rows * replicas + 1) // 2)
        words: Words = drawn.view(np.uint32)[: rows * replicas].reshape(rows, replicas)
        return words

    @cached_property
    def _masks(self) -> tuple[Words, ...]:
        """2^i by which bit 31 - i becomes the sign; a single parameter needs no signs."""
        n = len(self.chi)
        if n == 1:
            return ()
        masks = np.uint32(1) << (np.arange(n, dtype=np.uint32) % _WORD)
        return tuple(np.split(masks[:, None], range(_WORD, n, _WORD)))

    @cached_property
    def _bits(self) -> Words:
        return np.zeros(self.chi.shape, np.uint32)

    @cached_property
    def _signed(self) -> Single:
        return self._bits.view(np.float32)

    @cached_property
    def _room(self) -> Single:
        return np.empty(self.chi.shape, np.float32)

    @cached_property
    def _elo(self) -> Single:
        return np.empty(self.chi.shape[-1], np.float32)
