"""What this machine has: cores and memory."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from spsa.uci.system import installed_memory, logical_cores

_TOPOLOGY = Path("/sys/devices/system/cpu")
_MEMORY_QUOTA = Path("/sys/fs/cgroup/memory.max")
_CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_MIB = 2**20


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
    return max(1, min(usable_cores(), physical(logical_cores(), _TOPOLOGY)))


def in_pinning_order(logical: Iterable[int], topology: Path) -> tuple[int, ...]:
    """The first logical core of each physical one, then the second of each, and so on."""
    seen: Counter[str] = Counter()
    ranked = []
    for number in sorted(logical):
        siblings = _siblings(number, topology)
        ranked.append((seen[siblings], number))
        seen[siblings] += 1
    return tuple(number for _, number in sorted(ranked))


def pinning_order() -> tuple[int, ...]:
    """The cores that this process may use, in the order in which slots get them."""
    return in_pinning_order(logical_cores(), _TOPOLOGY)


def memory() -> int | None:
    """Bytes of memory of the machine or its container; None where the system does not say."""
    if (installed := installed_memory()) is None:
        return None
    granted = _MEMORY_QUOTA.read_text().strip() if _MEMORY_QUOTA.exists() else "max"
    return installed if granted == "max" else min(installed, int(granted))


def room_objection(
    threads: int, slots: int, hash_mebibytes: int, engine_memory: int | None
) -> str | None:
    """Why games do not fit in `slots` slots; None if they do.

    A game takes one slot for each of its engines' `threads`, `hash_mebibytes` for both engines
    together, and each of them may have `engine_memory` bytes.
    """
    if threads > slots:
        return f"Threads = {threads} needs as many slots, and there are {slots}: raise -c"
    if engine_memory is not None and hash_mebibytes * _MIB >= 2 * engine_memory:
        return (
            f"Hash = {hash_mebibytes // 2} takes all of the {engine_memory // _MIB} MiB that an "
            "engine may have here: lower Hash or -c, or raise --engine-memory"
        )
    games, installed = slots // threads, memory()
    if installed is not None and games * hash_mebibytes * _MIB > installed:
        return (
            f"Hash of {2 * games} engines is {games * hash_mebibytes} MiB, and this machine has "
            f"{installed // _MIB} MiB of memory: lower Hash or -c"
        )
    return None


def physical(logical: Iterable[int], topology: Path) -> int:
    """How many physical cores these logical ones are; without a topology each counts as one."""
    return len({_siblings(number, topology) for number in logical})


def _siblings(number: int, topology: Path) -> str:
    try:
        return (topology / f"cpu{number}/topology/thread_siblings_list").read_text().strip()
    except OSError:
        return str(number)
