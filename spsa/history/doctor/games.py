"""Checks that games count once, in whole pairs, and that purged games do not count."""

from collections.abc import Iterator

from spsa.core.scoring import Tally
from spsa.core.seeds import derived_seed
from spsa.db.tables import Batch, Iteration
from spsa.history.doctor.run_rows import RunRows, Violation
from spsa.lifecycle import BatchStatus


def counts(rows: RunRows) -> Iterator[Violation]:
    for it in rows.iterations:
        done = [b.tally for b in rows.of(it) if b.status is BatchStatus.DONE]
        total = sum(done, Tally())
        if it.tally != total:
            yield rows.violation(
                it, f"counts {it.tally}", f"its {len(done)} done batches add up to {total}"
            )
        if not it.tally.consistent or it.games_played != it.tally.games:
            yield rows.violation(
                it,
                f"games_played is {it.games_played}, of {it.tally.games} results in "
                f"{it.tally.pairs} pairs",
                "all three ways of counting give the same number of games",
            )
        voids = sum(b.void_games for b in rows.of(it) if b.status is not BatchStatus.PURGED)
        if it.void_games != voids:
            yield rows.violation(it, f"void_games is {it.void_games}", f"its batches have {voids}")


def whole_pairs(rows: RunRows) -> Iterator[Violation]:
    for it in rows.iterations:
        games = sum(b.games for b in rows.of(it))
        if games != it.target_games:
            yield rows.violation(
                it, f"its batches have {games} games", f"the target is {it.target_games}"
            )
        for batch in rows.of(it):
            yield from _whole_batch(rows, it, batch)


def _whole_batch(rows: RunRows, it: Iteration, batch: Batch) -> Iterator[Violation]:
    expected = batch.games if batch.status in (BatchStatus.DONE, BatchStatus.PURGED) else 0
    if batch.tally.games != expected or not batch.tally.consistent:
        yield rows.violation(
            it,
            f"batch {batch.seq}, {batch.status}, counts {batch.tally}",
            f"{expected} games of whole pairs",
        )
    if batch.games % 2:
        yield rows.violation(
            it, f"batch {batch.seq} has {batch.games} games", "pairs are not split"
        )


def numbering(rows: RunRows) -> Iterator[Violation]:
    for place, it in enumerate(rows.iterations, start=1):
        if it.iteration_number != place:
            yield rows.violation(
                it, "its number leaves a gap", f"it is iteration {place} of the run"
            )
    for place, it in enumerate(rows.tuned, start=1):
        if it.k != place:
            yield rows.violation(it, f"k is {it.k}", f"it is tuning iteration {place}")


def pair_numbers(rows: RunRows) -> Iterator[Violation]:
    """Pairs are numbered through the run without gaps, and every batch has its own seed."""
    next_pair = 0
    for it in rows.iterations:
        for place, batch in enumerate(rows.of(it)):
            if (batch.seq, batch.first_pair) != (place, next_pair):
                yield rows.violation(
                    it,
                    f"batch {batch.seq} starts at pair {batch.first_pair}",
                    f"batch {place} comes here and starts at pair {next_pair}",
                )
            seed = derived_seed(rows.run.seed, "batch", it.iteration_number, batch.seq)
            if batch.seed != seed:
                yield rows.violation(
                    it, f"batch {batch.seq} has seed {batch.seed}", f"it is {seed}"
                )
            next_pair = batch.first_pair + batch.games // 2


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
    """The games that an iteration lost for good are those of its purged batches."""
    for it in rows.iterations:
        gone = (b for b in rows.purged if b.iteration_id == it.id and not b.played_again)
        games = sum(b.tally.games for b in gone)
        if it.purged_games != games:
            found = f"purged_games is {it.purged_games}"
            yield rows.violation(it, found, f"its purged batches have {games}")
