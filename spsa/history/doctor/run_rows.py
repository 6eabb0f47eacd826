"""All rows of a run at one moment, and the violations that checks find in them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from spsa.db import Store
from spsa.db.purge_queries import ReportedResult
from spsa.db.tables import Batch, Iteration, Purge, Run, Step
from spsa.lifecycle import Purpose


@dataclass(frozen=True, slots=True)
class Violation:
    """A difference from what the rows have to be: where, what was found, what would be right."""

    run: str
    iteration: int | None
    found: str
    right: str

    def __str__(self) -> str:
        place = "" if self.iteration is None else f" iteration {self.iteration}"
        return f"run {self.run}{place}: {self.found}; {self.right}"


@dataclass(frozen=True, slots=True)
class RunRows:
    """All rows of a run that the checks compare, each list in order."""

    run: Run
    iterations: Sequence[Iteration]
    batches: Mapping[int, Sequence[Batch]]  # by the id of the iteration's row
    steps: Sequence[Step]
    purges: Sequence[Purge] = ()
    purged: Sequence[ReportedResult] = ()

    def of(self, iteration: Iteration) -> Sequence[Batch]:
        return self.batches.get(iteration.id, ())

    @property
    def tuned(self) -> list[Iteration]:
        return [it for it in self.iterations if it.purpose is Purpose.TUNE]

    def violation(self, iteration: Iteration | None, found: str, right: str) -> Violation:
        number = None if iteration is None else iteration.iteration_number
        return Violation(self.run.name, number, found, right)


def read(store: Store, run: Run) -> RunRows:
    """Read the rows as they are at one moment."""
    with store.at_one_moment() as frozen:
        batches = groupby(frozen.batches(run.id), lambda b: b.iteration_id)
        return RunRows(
            run=frozen.run(run.name),
            iterations=frozen.iterations(run.id),
            batches={row: list(group) for row, group in batches},
            steps=frozen.steps(run.id),
            purges=frozen.purges(run.id),
            purged=frozen.purged_batches(run.id),
        )
