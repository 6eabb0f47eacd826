"""The live view of a worker: what it has played, games an hour, faults, what each slot plays."""

import time
from collections import Counter
from collections.abc import Iterator

from rich.console import Console, Group
from rich.text import Text

from spsa.live_display import LiveDisplay
from spsa.text import LINE_LENGTH, plural, printable
from worker.batches.loop import Worker
from worker.runner.game import counts
from worker.runner.loop import ActiveJob

SECONDS = 1.0  # between two pictures: engines need the processor more

_OTHER_LINES = 4  # of the view, and one for the log
_SHOWN = 3  # reasons of void games


class LiveView(LiveDisplay):
    """Shows what a worker does on stderr, below its log; a context manager."""

    def __init__(self, name: str, console: Console | None = None) -> None:
        stderr = Console(stderr=True, highlight=False, markup=False, emoji=False)
        super().__init__(console or stderr)
        self._name = name
        self._began = self._due_at = time.monotonic()

    def __call__(self, worker: Worker) -> None:
        """Show this, if a new picture is due."""
        if time.monotonic() < self._due_at:
            return
        self._due_at = time.monotonic() + SECONDS
        lines = [printable(line, LINE_LENGTH) for line in self._lines(worker)]
        texts = (Text(line, overflow="ellipsis", no_wrap=True) for line in lines)
        self.show(Group(*texts), lines[:1])

    def _lines(self, worker: Worker) -> Iterator[str]:
        played, slots = worker.played, worker.playing
        seconds = time.monotonic() - self._began
        speed = f", {3600 * played.tally.games / seconds:,.0f} games an hour" if seconds else ""
        games = f"{played.tally.games} games of {plural(worker.done, 'batch', 'es')}"
        yield f"{self._name}: {games} in {seconds / 60:.1f} min{speed}"
        faults = [
            f"{count} {reason}" for reason, count in Counter(played.voids).most_common(_SHOWN)
        ]
        lost_on_time = played.plus_time_losses + played.minus_time_losses
        voids = ", ".join(faults) or "none"
        yield f"{worker.state}; void games: {voids}; games lost on time: {lost_on_time}"
        most = max(1, self.console.height - _OTHER_LINES)
        for number, batch in enumerate(slots[:most]):
            yield f"slot {number} {_progress(batch)}"
        if len(slots) > most:
            yield plural(len(slots) - most, "more slot")


def _progress(batch: ActiveJob | None) -> str:
    if batch is None:
        return "no batch"
    tally = batch.result.tally
    return f"{batch}, {tally.pairs}/{len(batch.job.pairings)} pairs, {counts(tally)}"
