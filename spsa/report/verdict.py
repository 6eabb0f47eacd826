"""The verdict on a run in sentences and as JSON; `spsa.master.verdict` comes to it."""

from collections.abc import Iterator
from typing import Any

from spsa.master.verdict import Verdict


def verdict_lines(found: Verdict) -> Iterator[str]:
    """The Elo gained with its interval, or why it is unknown; then what to do, and why."""
    gained = found.gained
    if gained is None:
        yield f"gained: not known, because {found.unknown}; only a validation measures it"
    else:
        yield (
            f"gained: {gained.elo:+.1f} Elo as the rule believes "
            f"(95%: {gained.low:+.1f} to {gained.high:+.1f}); only a validation measures it"
        )
    yield f"verdict: {found.advice}; {found.reason}"


def verdict_json(found: Verdict) -> dict[str, Any]:
    """For programs; null for what is unknown."""
    gained, more = found.gained, found.more
    return {
        "gained": None if gained is None else gained.elo,
        "gained_low": None if gained is None else gained.low,
        "gained_high": None if gained is None else gained.high,
        "unknown": found.unknown or None,
        "more_games": None if more is None else more.games,
        "more_elo": None if more is None else more.elo,
        "advice": found.advice,
        "reason": found.reason,
    }
