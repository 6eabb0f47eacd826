"""The live view of a worker: its slots and what each of them plays, games an hour, faults."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from spsa.live_display import LiveDisplay, Rate
from spsa.text import LINE_LENGTH, plural, printable
from worker.batches.active_batch import ActiveBatch, Activity
from worker.runner.game import counts

SECONDS = 1.0
"""Between two pictures: engines need the processor more."""

RATE_SECONDS = 600.0
_OTHER_LINES = 4  # of the view, and one for the log


class LiveView:
    """Shows what a worker does on stderr, below its log; a context manager."""

    def __init__(self, name: str, console: Console | None = None) -> None:
        self._name = name
        self._display = LiveDisplay(
            console or Console(stderr=True, highlight=False, markup=False, emoji=False)
        )
        self._began = self.due_at = time.monotonic()
        self._games = Rate(RATE_SECONDS)
        self._games.saw(self._began, 0)

    def __enter__(self) -> Self:
        self._display.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._display.__exit__(*error)

    def show(self, activity: Activity) -> None:
        """Show this until the next time."""
        now = time.monotonic()
        self.due_at = now + SECONDS
        self._games.saw(now, activity.played.tally.games)
        left = [str(self._headline("played", activity)), str(_faults(activity))]
        self._display.show(Group(*self._lines(activity)), left)

    def _lines(self, activity: Activity) -> Iterator[RenderableType]:
        yield self._headline(activity.state, activity)
        yield _faults(activity)
        most = max(1, self._display.console.height - _OTHER_LINES)
        yield _slots(activity.slots[:most])
        if len(activity.slots) > most:
            playing = sum(batch is not None for batch in activity.slots[most:])
            yield _line(f"{len(activity.slots) - most} more slots, {playing} of them play")

    def _headline(self, state: str, activity: Activity) -> Text:
        games = f"{activity.played.tally.games} games of {activity.batches} batches"
        seconds = time.monotonic() - self._began
        time_ = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
        return _line(f"{self._name}: {state}, {games} in {time_}{self._speed()}")

    def _speed(self) -> str:
        rate = self._games.per_second
        return f", {3600 * rate:,.0f} games an hour" if rate else ""


def _faults(activity: Activity) -> Text:
    played = activity.played
    voids = Counter(played.voids)
    reasons = ", ".join(f"{count} {reason}" for reason, count in voids.most_common(3))
    lost_on_time = played.plus_time_losses + played.minus_time_losses
    found = (
        (voids.total(), "void game", "s", f" ({reasons})"),
        (lost_on_time, "game", "s", " lost on time"),
        (activity.failed, "failed batch", "es", ""),
        (activity.unreported, "result", "s", " to be sent"),
    )
    told = ", ".join(f"{plural(n, what, end)}{more}" for n, what, end, more in found if n)
    return _line(told or "no faults")


def _slots(slots: Sequence[ActiveBatch | None]) -> Table:
    rows = Table.grid(padding=(0, 1))
    for number, batch in enumerate(slots):
        if batch is None:
            rows.add_row(f"slot {number}", "no batch")
        else:
            tally, pairs = batch.result.tally, batch.claim.pairs
            name = _line(str(batch))
            bar = ProgressBar(pairs, tally.pairs, width=12)
            done = f"{tally.pairs}/{pairs} pairs"
            rows.add_row(f"slot {number}", name, bar, done, counts(tally))
    return rows


def _line(text: str) -> Text:
    return Text(printable(text, LINE_LENGTH), overflow="ellipsis", no_wrap=True)
