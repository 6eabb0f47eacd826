"""Markdown tables, and the medians that stand in them."""

from collections.abc import Iterable, Sequence
from statistics import median


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def middle(numbers: Iterable[float], form: str = ".0f") -> str:
    """The median of the runs and, behind it, the least and the most."""
    found = sorted(numbers)
    return f"{median(found):{form}} ({found[0]:{form}}..{found[-1]:{form}})"


def percentile(numbers: Sequence[float], share: float) -> float:
    ordered = sorted(numbers)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
