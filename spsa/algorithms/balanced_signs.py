"""Perturbation signs in blocks of iterations, in which no two parameters can be confused.

Independent signs agree by chance: over a few iterations some parameters are moved together more
often than apart, and a result for one is taken for one of the other. The columns of a Hadamard
matrix, whose entries are 1 and -1, are orthogonal: over its rows every two of them agree as often
as they differ. An iteration takes a row, a parameter a column. So a block has as many rows as the
matrix, about one a parameter. Plackett & Burman 1946, "The design of optimum multifactorial
experiments".

Rows are orthogonal, too: none shows that theta has moved too far by the result of another one. A
rule that has to learn how far it may move would learn it a block later. So one iteration in four
repeats the signs of the one whose result came last.
"""

from functools import cache
from itertools import count

import numpy as np
import numpy.typing as npt

from spsa.algorithms.rule import Vector, signs
from spsa.core import derived_seed

Signs = npt.NDArray[np.int8]

_REPEAT_EVERY = 4  # iterations, of which the second repeats signs


def balanced_signs(
    seed: int, k: int, last: int, shape: tuple[int, ...], rng: np.random.Generator
) -> Vector:
    """delta of iteration k, +-1, of this shape (n,); the same arguments give the same signs.

    `last` is the k of the last result, 0 before the first; that of another run may be k or more. If
    there is none to repeat, the signs are independent.
    """
    if not _repeats(k):
        return _row(seed, k, shape)
    if not 0 < last < k:
        return signs(rng, shape)
    return _row(seed, last - _repeats(last), shape)


def _repeats(k: int) -> bool:
    return k % _REPEAT_EVERY == 2


def _row(seed: int, k: int, shape: tuple[int, ...]) -> Vector:
    """The signs of an iteration that repeats none.

    Every block has its own order of rows, columns and signs of columns, drawn from the seed.
    """
    matrix = hadamard(shape[-1])
    rows_before = k - 1 - (k + _REPEAT_EVERY - 2) // _REPEAT_EVERY
    block, place = divmod(rows_before, len(matrix))
    rng = np.random.Generator(np.random.PCG64(derived_seed(seed, "signs", block)))
    numbers = np.broadcast_to(np.arange(len(matrix)), (*shape[:-1], len(matrix)))
    row = rng.permuted(numbers, axis=-1)[..., place, None]
    columns = rng.permuted(numbers, axis=-1)[..., : shape[-1]]
    balanced: Vector = matrix[row, columns] * signs(rng, shape)
    return balanced


@cache
def hadamard(columns: int) -> Signs:
    """A Hadamard matrix with at least so many columns: the smallest that `_made` makes."""
    return _made(next(order for order in count(columns) if _can_be_made(order)))


def _can_be_made(order: int) -> bool:
    return order == 1 or _by_paley(order) or (order % 2 == 0 and _can_be_made(order // 2))


def _by_paley(order: int) -> bool:
    """Whether order - 1 is a prime, and three more than a multiple of four."""
    prime = order - 1
    return order % 4 == 0 and all(prime % i for i in range(2, int(prime**0.5) + 1))


def _made(order: int) -> Signs:
    """By doubling (Sylvester 1867), or from a prime's quadratic residues (Paley 1933)."""
    if order == 1:
        return np.ones((1, 1), dtype=np.int8)
    if not _by_paley(order):
        return np.kron(np.array([[1, 1], [1, -1]], dtype=np.int8), _made(order // 2))
    prime = order - 1
    residue = np.full(prime, -1, dtype=np.int8)
    residue[np.arange(prime) ** 2 % prime] = 1
    residue[0] = -1  # on the diagonal
    matrix = np.ones((order, order), dtype=np.int8)
    matrix[1:, 1:] = residue[np.subtract.outer(np.arange(prime), np.arange(prime)) % prime]
    return matrix
