"""Checks that purged results are on record and do not count."""

from collections.abc import Iterator

from spsa.history.doctor.run_rows import RunRows, Violation
from spsa.lifecycle import BatchStatus


def purges(rows: RunRows) -> Iterator[Violation]:
    """Purges are numbered without gaps, and each has removed the games that its row says."""
    numbers = [purge.number for purge in rows.purges]
    if numbers != list(range(1, rows.run.purges + 1)):
        right = f"the run's row has {rows.run.purges}, each once"
        yield rows.violation(None, f"there are the purges {numbers}", right)
    for purge in rows.purges:
        games = sum(one.tally.games for one in rows.purged if one.purge == purge.number)
        if games != purge.games:
            found = f"purge {purge.number} has removed {purge.games} games"
            yield rows.violation(None, found, f"{games} of it are on record")
    held = [purge.applied for purge in rows.purges]
    if held != sorted(held):
        right = "a purge holds no fewer results than the one before it"
        yield rows.violation(None, f"the purges held {held} results", right)


def shortened(rows: RunRows) -> Iterator[Violation]:
    """The purged batches of an iteration are those on record."""
    kept = {(s.iteration_id, s.seq): s.games for s in rows.purged if not s.played_again}
    for it in rows.iterations:
        gone = [b for b in rows.of(it) if b.status is BatchStatus.PURGED]
        games = sum(b.games for b in gone)
        if it.struck_games != games:
            yield rows.violation(
                it, f"struck_games is {it.struck_games}", f"its purged batches have {games}"
            )
        recorded = {seq: games for (row, seq), games in kept.items() if row == it.id}
        if recorded != {b.seq: b.games for b in gone}:
            found = f"the batches {[b.seq for b in gone]} are purged"
            yield rows.violation(it, found, f"{sorted(recorded)} are on record as purged")
