"""What was measured, as Markdown."""

from collections.abc import Iterable, Sequence

from benches.database.loop import Measured

Cell = tuple[str, int, int, Measured, Measured]
"""Where, connections, batches in one call of ours, ours, the bare increment."""


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def cycles(cells: Iterable[Cell]) -> str:
    """Cycles a second and the times of calls, ours beside the bare increment."""
    heads = [
        *("disk", "connections", "batches a call", "ours, cycles/s", "p50 / p99 ms"),
        *("bare, cycles/s", "p50 / p99 ms", "ours / bare"),
    ]
    return markdown(
        heads,
        (
            [where, str(n), str(slots), *_told(ours), *_told(bare), f"{ours.rate / bare.rate:.2f}"]
            for where, n, slots, ours, bare in cells
        ),
    )


def _told(one: Measured) -> list[str]:
    return [f"{one.rate:,.0f}", f"{one.p50:.3g} / {one.p99:.3g}"]
