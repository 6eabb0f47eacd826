"""What this machine has: cores and memory."""

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from spsa.uci.spawning import EngineLimits
from spsa.uci.system import logical_cores

_TOPOLOGY = Path("/sys/devices/system/cpu")
_MEMORY_QUOTA = Path("/sys/fs/cgroup/memory.max")
_CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def usable_cores() -> int:
    """Logical cores that this process may use under its affinity and its container's limits."""
    allowed = len(logical_cores())
    try:
        share, period = _CPU_QUOTA.read_text().split()
        return allowed if share == "max" else max(1, min(allowed, int(share) // int(period)))
    except (OSError, ValueError):
        return allowed


def default_concurrency() -> int:
    """One game a physical core: two games on the siblings of a core halve each other's speed."""
    return max(1, min(usable_cores(), physical(logical_cores())))


def pinning_order(
    logical: Iterable[int] | None = None, topology: Path = _TOPOLOGY
) -> tuple[int, ...]:
    """The cores that this process may use, in the order in which slots get them.

    The first logical core of each physical one, then the second of each, and so on.
    """
    seen: Counter[str] = Counter()
    ranked = []
    for number in sorted(logical_cores() if logical is None else logical):
        siblings = _siblings(number, topology)
        ranked.append((seen[siblings], number))
        seen[siblings] += 1
    return tuple(number for _, number in sorted(ranked))


def memory() -> int | None:
    """Bytes of memory of the machine or its container; None where the system does not say."""
    try:
        installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return None
    granted = _MEMORY_QUOTA.read_text().strip() if _MEMORY_QUOTA.exists() else "max"
    return installed if granted == "max" else min(installed, int(granted))


def room_objection(threads: int, slots: int, limits: EngineLimits) -> str | None:
    """Why games whose engines have so many threads do not fit in `slots` slots; None if they do.

    A game takes one slot for each of its engines' threads.
    """
    if limits.cores and threads > 1:
        return f"Threads = {threads} does not go with --pin, which gives an engine one core"
    if threads > slots:
        return f"Threads = {threads} needs as many slots, and there are {slots}: raise -c"
    return None


def physical(logical: Iterable[int], topology: Path = _TOPOLOGY) -> int:
    """How many physical cores these logical ones are; without a topology each counts as one."""
    return len({_siblings(number, topology) for number in logical})


def _siblings(number: int, topology: Path) -> str:
    try:
        return (topology / f"cpu{number}/topology/thread_siblings_list").read_text().strip()
    except OSError:
        return str(number)
