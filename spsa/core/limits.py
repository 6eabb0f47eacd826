"""The limits of what a worker may send: the range of every number, the length of every text.

The CHECK constraints of the tables are made from these two lists, and the queries compare with them
first, so that the error names the column. PostgreSQL prepares every CHECK of a table again in each
UPDATE, so the eight counts of a batch have one CHECK together (`counts`), and none is longer than
it has to be.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from spsa.core.game_settings.numbers import MAX_NPS, MAX_SCALE
from spsa.errors import OutOfRange
from spsa.text import FAILURE_LENGTH, NAME_LENGTH

LIST_LENGTH = 5_000
"""The most characters of a list of words or of runs."""

SECONDS = (0, 10**9)
"""The least and the greatest time of a batch."""

COUNTS = ("plus_wins", "minus_wins", "draws", *(f"ptnml_{i}" for i in range(5)))
"""The columns of a tally."""

RANGES: Mapping[str, Mapping[str, tuple[int, int]]] = {
    "spsa_worker": {
        "cores": (1, 100_000),
        "concurrency": (1, 1_024),
        "nps": (0, MAX_NPS),
        "scale": (0, MAX_SCALE),
    },
    "spsa_build": dict.fromkeys(("plus_bench", "minus_bench"), (0, 10**18)),
    "spsa_batch": {
        **dict.fromkeys(COUNTS, (0, 1_000_000)),
        "void_games": (0, 1_000_000),
        **dict.fromkeys(("plus_nodes", "minus_nodes"), (0, 10**18)),
        "moves": (0, 10**9),
        **dict.fromkeys(("plus_time_losses", "minus_time_losses"), (0, 1000000)),
        **dict.fromkeys(("seconds", "think_seconds"), SECONDS),
        "slot": (0, 100_000),
        "scale": (0, MAX_SCALE),
    },
}
"""Table -> column -> the least and the greatest number; NULL is not checked."""

LENGTHS: Mapping[str, Mapping[str, tuple[int, int]]] = {
    "spsa_machine": {"name": (1, NAME_LENGTH + 20)},
    "spsa_worker": {
        "name": (1, NAME_LENGTH),
        "platform": (0, NAME_LENGTH),
        "version": (0, NAME_LENGTH),
        "confinement": (0, NAME_LENGTH),
        **dict.fromkeys(("provides", "only_runs", "not_runs"), (0, LIST_LENGTH)),
    },
    "spsa_batch": {
        "claim_id": (1, 64),
        "voids": (0, 50_000),
        "void_log": (0, 30_000),
        "last_error": (0, FAILURE_LENGTH),
    },
    "spsa_build": {"claim_id": (1, 64), "binary_requires": (0, LIST_LENGTH)},
    "spsa_build_failure": {"reason": (1, FAILURE_LENGTH)},
    "spsa_failure": {"reason": (0, FAILURE_LENGTH), "sha256": (64, 64)},
    "spsa_set_aside": {"reason": (1, FAILURE_LENGTH), "sha256": (64, 64)},
}
"""Table -> column -> the least and the greatest number of characters."""

LEAST_MEASURED = 1e-6
"""The least time, speed or scale except 0: what is divided by it stays finite."""

MEASURED = ("nps", "scale", "seconds", "think_seconds")
"""The columns of such numbers."""

HEX_DIGITS = "0123456789abcdef"

LEASE_SECONDS = (0.0, 3_600.0)
"""The shortest and the longest lease. It may be renewed for a week after the claim."""

ENGINE_BYTES = 2**28
"""The most bytes of an engine that a worker has built."""

TARGET_LENGTH = 100
"""The most characters of what a worker calls the target of its build."""

MACHINES_A_DAY, WORKERS_A_DAY = 1_000, 10_000
"""How many new machines and workers one login may register within a day."""

RENEWED_AT_ONCE = 10_000
"""How many leases one call may renew."""


def checks(table: str) -> Iterator[tuple[str, str]]:
    """Column and condition of the CHECKs of a table."""
    for column, (least, most) in RANGES.get(table, {}).items():
        if column not in COUNTS:
            tiny = f" AND ({column} = 0 OR {column} >= {LEAST_MEASURED:.6f})"
            yield column, f"{column} BETWEEN {least} AND {most}{tiny * (column in MEASURED)}"
    for column, (least, most) in LENGTHS.get(table, {}).items():
        within = f"BETWEEN {least} AND {most}" if least else f"<= {most}"
        digits = f" AND ltrim(sha256, '{HEX_DIGITS}') = ''" if column == "sha256" else ""
        yield column, f"length(CAST({column} AS TEXT)) {within}{digits}"


def check_values(table: str, values: Mapping[str, Any]) -> None:
    """Compare values with the limits before they are written; None is not checked.

    Raises:
        OutOfRange: names the first column whose value is outside its limits.
    """
    for column, (least, most) in RANGES.get(table, {}).items():
        number = values.get(column)
        if number is not None and not least <= number <= most:  # NaN fails this too
            raise OutOfRange(f"{table}.{column} is {_shown(number)}; allowed: {least} to {most}")
        if column in MEASURED and number and number < LEAST_MEASURED:
            raise OutOfRange(
                f"{table}.{column} is {_shown(number)}; allowed: 0, or from {LEAST_MEASURED} on"
            )
    for column, (least, most) in LENGTHS.get(table, {}).items():
        text = values.get(column)
        if text is not None and not least <= len(text) <= most:
            raise OutOfRange(
                f"{table}.{column} has {len(text)} characters; {least} to {most} are allowed"
            )
        if column == "sha256" and text is not None and text.strip(HEX_DIGITS):
            raise OutOfRange(f"{table}.{column} is {text!a}; it has to be 64 hexadecimal digits")
        if text is not None and not text.isprintable():
            raise OutOfRange(f"{table}.{column} has unprintable characters: {text!a}")


def check_names(table: str, column: str, names: Collection[str]) -> None:
    """Compare a list of names with the limits of its column before it is written as JSON.

    Raises:
        OutOfRange: names the column, if the list is too long or a name is not printable.
    """
    for text in ("".join(names), json.dumps(dict.fromkeys(names, True))):
        check_values(table, {column: text})


def _shown(number: float) -> str:
    try:
        return f"{number:.6g}"
    except OverflowError:
        return "a number of hundreds of digits"


def check_renewed(leases: int) -> None:
    """Refuse to renew more leases at once than a worker can have.

    Raises:
        OutOfRange: there are more than `RENEWED_AT_ONCE`.
    """
    if leases > RENEWED_AT_ONCE:
        raise OutOfRange(f"{leases} leases to renew; allowed: at most {RENEWED_AT_ONCE} at once")


def check_registrations(machines: int, workers: int) -> None:
    """Refuse a new worker where so many machines and workers have been registered within a day.

    Raises:
        OutOfRange: says how many are allowed.
    """
    if machines >= MACHINES_A_DAY or workers >= WORKERS_A_DAY:
        raise OutOfRange(
            f"{MACHINES_A_DAY} machines or {WORKERS_A_DAY} workers have been registered within a "
            "day; more may register when a day has passed"
        )


def check_lease(seconds: float) -> None:
    """Refuse a lease of an impossible length.

    Raises:
        OutOfRange: it is shorter or longer than `LEASE_SECONDS`.
    """
    least, most = LEASE_SECONDS
    if not least <= seconds <= most:
        raise OutOfRange(f"a lease of {seconds} seconds; it has to be {least:.0f} to {most:.0f}")
