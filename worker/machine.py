"""What this machine has: cores and memory."""

import os
from collections.abc import Iterable
from pathlib import Path

from spsa.uci import system

_TOPOLOGY = Path("/sys/devices/system/cpu")
_MEMORY_QUOTA = Path("/sys/fs/cgroup/memory.max")
_CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def usable_cores() -> int:
    """Logical cores that this process may use under its affinity and its container's limits."""
    allowed = len(system.logical_cores())
    try:
        share, period = _CPU_QUOTA.read_text().split()
        return allowed if share == "max" else max(1, min(allowed, int(share) // int(period)))
    except (OSError, ValueError):
        return allowed


def default_concurrency() -> int:
    """One game a physical core: two games on the siblings of a core halve each other's speed."""
    return max(1, min(usable_cores(), physical(system.logical_cores())))


def memory() -> int | None:
    """Bytes of memory of the machine or its container; None where the system does not say."""
    try:
        installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return None
    granted = _MEMORY_QUOTA.read_text().strip() if _MEMORY_QUOTA.exists() else "max"
    return installed if granted == "max" else min(installed, int(granted))


def physical(logical: Iterable[int], topology: Path = _TOPOLOGY) -> int:
    """How many physical cores these logical ones are; without a topology each counts as one."""
    return len({_siblings(number, topology) for number in logical})


def _siblings(number: int, topology: Path) -> str:
    try:
        return (topology / f"cpu{number}/topology/thread_siblings_list").read_text().strip()
    except OSError:
        return str(number)
