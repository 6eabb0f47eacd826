"""The losses of a cell of Table 1, beside published and expected ones."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt
from typing import Self

import numpy as np

from spsa.algorithms import Vector
from spsa.lab.simulation.table1 import ELO_TO_GAIN, Table1Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """The final loss in Elo: mean and standard deviation over `runs` >= 2."""

    cell: Table1Cell
    runs: int
    mean: float
    deviation: float

    @classmethod
    def of(cls, cell: Table1Cell, parts: Iterable[Vector]) -> Self:
        losses = np.concatenate(list(parts))
        mean, deviation = float(losses.mean()), float(losses.std(ddof=1))
        return cls(cell=cell, runs=len(losses), mean=mean, deviation=deviation)

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        return self.deviation / sqrt(self.runs)

    @property
    def gain(self) -> float:
        """The mean Elo gained, of 2 to gain."""
        return ELO_TO_GAIN - self.mean

    @property
    def of_limit(self) -> float:
        """The mean loss, divided by the least possible one."""
        return self.mean / self.cell.limit

    @property
    def z_published(self) -> float | None:
        """The difference from the paper, in standard errors of both; None without a figure."""
        published = self.cell.published
        if published is None:
            return None
        return (self.gain - published.mean) / sqrt(self.error**2 + published.error**2)

    @property
    def z_expected(self) -> float | None:
        """The difference from the exact mean loss, in standard errors; None if that is unknown."""
        expected = self.cell.expected
        return None if expected is None else (self.mean - expected) / self.error
