"""The estimates beside theta as the columns of a run that hold them."""

from typing import Any

from spsa.estimates import NOTHING_KNOWN, Estimates


def columns_of(estimates: Estimates) -> dict[str, Any]:
    """What the columns are to hold."""
    return {
        f"theta_{name}": None if values is None else dict(values)
        for name, values in estimates.by_name().items()
    }


def estimates_of(row: Any) -> Estimates:
    """What the columns of a row of `spsa_run` hold."""
    names = NOTHING_KNOWN.by_name()
    return Estimates(**{name: getattr(row, f"theta_{name}") for name in names})
