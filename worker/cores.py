"""How many games a box can play at once."""

import os
from collections.abc import Iterable
from pathlib import Path

_TOPOLOGY = Path("/sys/devices/system/cpu")
_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def usable_cores() -> int:
    """Logical cores that this process may use, as affinity and container limits have it."""
    quota = _quota()
    allowed = len(_allowed())
    return allowed if quota is None else max(1, min(allowed, quota))


def default_concurrency() -> int:
    """One game a physical core: two on the siblings of one core halve each other's speed."""
    return max(1, min(usable_cores(), physical(_allowed(), _TOPOLOGY)))


def physical(logical: Iterable[int], topology: Path) -> int:
    """How many physical cores these logical ones are; each one its own where nothing says so."""
    return len({_siblings(number, topology) for number in logical})


def _siblings(number: int, topology: Path) -> str:
    try:
        return (topology / f"cpu{number}/topology/thread_siblings_list").read_text().strip()
    except OSError:
        return str(number)


def _allowed() -> set[int]:
    if hasattr(os, "sched_getaffinity"):
        return set(os.sched_getaffinity(0))
    return set(range(os.cpu_count() or 1))


def _quota() -> int | None:
    try:
        share, period = _QUOTA.read_text().split()
        return None if share == "max" else max(1, int(share) // int(period))
    except (OSError, ValueError):
        return None
