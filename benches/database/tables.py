"""What was measured, as Markdown."""

from collections.abc import Iterable, Sequence

from benches.database.loop import Measured

Cell = tuple[str, int, Sequence[Measured]]
"""The disk, how many connections, and ours, ours without triggers and the bare increment."""


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def cycles(cells: Iterable[Cell]) -> str:
    """Cycles a second and the times of calls, ours beside the others."""
    heads = [
        *("disk", "connections", "ours, pairs/s", "p50 / p99 ms"),
        *("without triggers", "bare, pairs/s", "p50 / p99 ms", "ours / without", "ours / bare"),
    ]
    return markdown(heads, (_row(*cell) for cell in cells))


def _row(where: str, connections: int, found: Sequence[Measured]) -> list[str]:
    ours, without, bare = found
    ratios = (f"{ours.rate / other.rate:.2f}" for other in (without, bare))
    return [where, str(connections), *_told(ours), _told(without)[0], *_told(bare), *ratios]


def _told(one: Measured) -> list[str]:
    return [f"{one.rate:,.0f}", f"{one.p50:.3g} / {one.p99:.3g}"]
