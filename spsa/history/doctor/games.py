"""The games: counted once, in whole pairs, each batch with its own seed and its own openings."""

from collections.abc import Iterator

from spsa.core.scoring import Tally
from spsa.core.seeds import derived_seed
from spsa.db.store import BatchRow, Iteration
from spsa.history.doctor.run_rows import Books, Finding
from spsa.lifecycle import BatchStatus


def counts(books: Books) -> Iterator[Finding]:
    for it in books.iterations:
        done = [b.tally for b in books.of(it) if b.status is BatchStatus.DONE]
        total = sum(done, Tally())
        if it.tally != total:
            yield books.finding(
                it, f"counts {it.tally}", f"its {len(done)} done batches add up to {total}"
            )
        if not it.tally.consistent or it.games_played != it.tally.games:
            yield books.finding(
                it,
                f"games_played is {it.games_played}, of {it.tally.games} results in "
                f"{it.tally.pairs} pairs",
                "all three ways of counting give the same number of games",
            )
        voids = sum(b.void_games for b in books.of(it))
        if it.void_games != voids:
            yield books.finding(it, f"void_games is {it.void_games}", f"its batches have {voids}")


def whole_pairs(books: Books) -> Iterator[Finding]:
    for it in books.iterations:
        games = sum(b.games for b in books.of(it))
        if games != it.target_games:
            yield books.finding(
                it, f"its batches have {games} games", f"the target is {it.target_games}"
            )
        for batch in books.of(it):
            yield from _whole_batch(books, it, batch)


def _whole_batch(books: Books, it: Iteration, batch: BatchRow) -> Iterator[Finding]:
    expected = batch.games if batch.status is BatchStatus.DONE else 0
    if batch.tally.games != expected or not batch.tally.consistent:
        yield books.finding(
            it,
            f"batch {batch.seq}, {batch.status}, counts {batch.tally}",
            f"{expected} games of whole pairs",
        )
    if batch.games % 2:
        yield books.finding(it, f"batch {batch.seq} has {batch.games} games", "pairs are not split")


def numbering(books: Books) -> Iterator[Finding]:
    for place, it in enumerate(books.iterations, start=1):
        if it.iteration_number != place:
            yield books.finding(
                it, "its number leaves a gap", f"it is iteration {place} of the run"
            )
    for place, it in enumerate(books.tuned, start=1):
        if it.k != place:
            yield books.finding(it, f"k is {it.k}", f"it is tuning iteration {place}")


def plan(books: Books) -> Iterator[Finding]:
    """Pairs are numbered through the run without gaps, and every batch has its own seed."""
    next_pair = 0
    for it in books.iterations:
        for place, batch in enumerate(books.of(it)):
            if (batch.seq, batch.first_pair) != (place, next_pair):
                yield books.finding(
                    it,
                    f"batch {batch.seq} starts at pair {batch.first_pair}",
                    f"batch {place} comes here and starts at pair {next_pair}",
                )
            seed = derived_seed(books.run.seed, "batch", it.iteration_number, batch.seq)
            if batch.seed != seed:
                yield books.finding(it, f"batch {batch.seq} has seed {batch.seed}", f"it is {seed}")
            next_pair = batch.first_pair + batch.games // 2
