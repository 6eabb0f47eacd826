"""What was struck out: all of it is on record, and none of it counts."""

from collections.abc import Iterator

from spsa.history.doctor.run_rows import Books, Finding
from spsa.lifecycle import BatchStatus


def purges(books: Books) -> Iterator[Finding]:
    """Purges are numbered without gaps, and each struck the games that it says."""
    numbers = [purge.number for purge in books.purges]
    if numbers != list(range(1, books.run.purges + 1)):
        right = f"the run's row has {books.run.purges}, each once"
        yield books.finding(None, f"there are the purges {numbers}", right)
    for purge in books.purges:
        games = sum(one.tally.games for one in books.struck if one.purge == purge.number)
        if games != purge.games:
            found = f"purge {purge.number} struck {purge.games} games"
            yield books.finding(None, found, f"{games} of it are on record")
    held = [purge.applied for purge in books.purges]
    if held != sorted(held):
        right = "a purge holds no fewer results than the one before it"
        yield books.finding(None, f"the purges held {held} results", right)


def shortened(books: Books) -> Iterator[Finding]:
    """What an iteration has lost for good is what is on record, batch by batch."""
    kept = {(s.iteration_id, s.seq): s.games for s in books.struck if not s.played_again}
    for it in books.iterations:
        gone = [b for b in books.of(it) if b.status is BatchStatus.PURGED]
        games = sum(b.games for b in gone)
        if it.struck_games != games:
            yield books.finding(
                it, f"struck_games is {it.struck_games}", f"its struck batches have {games}"
            )
        recorded = {seq: games for (row, seq), games in kept.items() if row == it.id}
        if recorded != {b.seq: b.games for b in gone}:
            found = f"the batches {[b.seq for b in gone]} are struck"
            yield books.finding(it, found, f"{sorted(recorded)} are on record as struck")
