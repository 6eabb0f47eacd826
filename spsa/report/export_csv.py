"""A run as CSV files for spreadsheets: its history, its iterations and its workers."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from io import StringIO
from typing import Any

from spsa.db import Store
from spsa.db.history_queries import WorkerShare
from spsa.db.tables import Iteration, Run
from spsa.report.status import estimate
from spsa.text import NAME_LENGTH, printable

Row = Sequence[Any]
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_files(store: Store, run: Run) -> dict[str, bytes]:
    """The content of each file by its name; every result has a line, however long the run is."""
    return {
        "history.csv": _csv(_history(store, run)),
        "iterations.csv": _csv(_iterations(store.iterations(run.id, narrow=True))),
        "workers.csv": _csv(_workers(store.worker_shares(run.id))),
    }


def _csv(rows: Iterable[Row]) -> bytes:
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue().encode()


def _cell(value: Any) -> Any:
    """Text that a spreadsheet takes for text, and not for a formula."""
    if isinstance(value, datetime):
        return value.isoformat()
    if not isinstance(value, str):
        return value
    shown = printable(value, NAME_LENGTH)
    return f"'{shown}" if shown.startswith(_FORMULA) else shown


def _history(store: Store, run: Run) -> Iterator[Row]:
    names = list(run.start_theta)
    yield ("k", "at", *names)
    for point in store.theta_path(run.id, range(run.applied + 1)):
        yield (point.k, point.at, *(point.theta.get(name) for name in names))


def _iterations(lines: Iterable[Iteration]) -> Iterator[Row]:
    yield (
        *("iteration_number", "purpose", "k", "opened_on", "status", "a_k", "c_k", "target_games"),
        *("games", "plus_wins", "minus_wins", "draws"),
        *(f"ptnml_{i}" for i in range(5)),
        *("elo", "elo_error", "void_games", "purged_games", "created_at", "completed_at"),
    )
    for line in lines:
        tally, found = line.tally, estimate(line.tally)
        yield (
            *(line.iteration_number, line.purpose, line.k, line.opened_on, line.status),
            *(line.a_k, line.c_k, line.target_games),
            *(tally.games, tally.wins, tally.losses, tally.draws, *tally.pentanomial),
            *((None, None) if found is None else (found.value, found.error)),
            *(line.void_games, line.purged_games, line.created_at, line.completed_at),
        )


def _workers(shares: Iterable[WorkerShare]) -> Iterator[Row]:
    yield (
        *("worker", "machine", "batches", "games", "plus_wins", "minus_wins", "draws"),
        *(f"ptnml_{i}" for i in range(5)),
        *("elo", "elo_error", "games_per_hour", "nodes_per_second", "void_games", "time_losses"),
        *("least_scale", "most_scale"),
    )
    for share in shares:
        tally, found = share.tally, estimate(share.tally)
        yield (
            *(share.worker, share.machine, share.batches),
            *(tally.games, tally.wins, tally.losses, tally.draws, *tally.pentanomial),
            *((None, None) if found is None else (found.value, found.error)),
            *(share.games_per_hour, share.nodes_per_second, share.void_games, share.time_losses),
            *(share.least_scale, share.most_scale),
        )
