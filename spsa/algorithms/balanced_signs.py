"""Perturbation signs in blocks of iterations, in which no two parameters can be confused.

Independent signs agree by chance: over a few iterations some parameters are moved together more
often than apart, and a result for one is taken for one of the other. The columns of a Hadamard
matrix, whose entries are 1 and -1, are orthogonal: over its rows every two of them agree as often
as they differ. An iteration takes a row, a parameter a column. So a block has as many iterations as
the matrix has rows, about one a parameter. Plackett & Burman 1946, "The design of optimum
multifactorial experiments".
"""

from functools import cache
from itertools import count

import numpy as np
import numpy.typing as npt

from spsa.algorithms.rule import Vector, signs
from spsa.core.seeds import derived_seed

Signs = npt.NDArray[np.int8]


def balanced_signs(seed: int, k: int, shape: tuple[int, ...]) -> Vector:
    """delta of iteration k, +-1, of this shape (n,); the same arguments give the same signs.

    Every block has its own rows, columns and signs of columns, drawn at random from the seed.
    """
    matrix = hadamard(shape[-1])
    block, place = divmod(k - 1, len(matrix))
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
