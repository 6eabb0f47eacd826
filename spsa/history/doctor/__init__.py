"""Checks the invariants of a run's rows, one function for each.

The checks change nothing. They compare rows that were read before; only the check of binaries also
reads files.
"""

from collections.abc import Callable, Iterable

from spsa.algorithms.tuning import Tuning
from spsa.db import Store
from spsa.db.tables import Run
from spsa.history.doctor.games import (
    counts,
    numbering,
    pair_numbers,
    purges,
    shortened,
    whole_pairs,
)
from spsa.history.doctor.replay import replay
from spsa.history.doctor.run_rows import RunRows, Violation, read
from spsa.history.doctor.theta import chain, engines, log, masters, statuses

CHECKS: tuple[Callable[[RunRows], Iterable[Violation]], ...] = (
    counts,
    whole_pairs,
    numbering,
    pair_numbers,
    log,
    chain,
    masters,
    purges,
    shortened,
    statuses,
)


def check_run(store: Store, run: Run, tuning: Tuning | None = None) -> list[Violation]:
    """All violations of a run's invariants.

    Args:
        tuning: the run's rule, to compute all its proposals and theta again; None skips that.
    """
    rows = read(store, run)
    found = [violation for check in CHECKS for violation in check(rows)]
    if tuning is not None:
        found += replay(rows, tuning)
    return found + list(engines(store, rows))


__all__ = ["CHECKS", "RunRows", "Violation", "check_run", "read"]
