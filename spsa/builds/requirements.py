"""What a machine provides and what a binary requires of one, as words.

A word is a system (`linux`), an architecture (`aarch64`) or a level of x86-64 (`x86-64-v3`). A
machine provides every level that its processor has. The levels are those of the x86-64 psABI,
section 3.1.1 (https://gitlab.com/x86-psABIs/x86-64-ABI); compilers take their names as a processor.
Master and workers use this module, so it needs nothing but the standard library.
"""

import platform
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import Literal, get_args

Level = Literal["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"]
"""A level of x86-64."""
_ADDED: Mapping[str, str] = {
    "x86-64": "",
    "x86-64-v2": "cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3",
    "x86-64-v3": "abm avx avx2 bmi1 bmi2 f16c fma movbe xsave",
    "x86-64-v4": "avx512bw avx512cd avx512dq avx512f avx512vl",
}
"""What a processor has to have beyond the level below."""
LEVELS: tuple[str, ...] = get_args(Level)
"""The levels of x86-64, the lowest first."""

_ELF_BYTES = 20  # from the magic number to the machine
_ELF_SYSTEMS = {0: "linux", 3: "linux", 9: "freebsd"}  # System V, which Linux binaries say, and GNU
_ELF_MACHINES = {62: "x86-64", 183: "aarch64", 243: "riscv64"}
_ARCHITECTURES = {"amd64": "x86-64", "arm64": "aarch64"}
_SYSTEMS = {"darwin": "macos"}

_SYSTEM_WORDS = frozenset({*_ELF_SYSTEMS.values(), "macos"})
_ARCHITECTURE_WORDS = frozenset(_ELF_MACHINES.values())

BUILDS = "builds"
"""The word of a worker that builds engines for others: `compete --spsa --build`."""

MACHINE_WORDS = _SYSTEM_WORDS | _ARCHITECTURE_WORDS | {*LEVELS, BUILDS}
"""The words that say what a machine is or does; a label may be any other word."""

WORD = re.compile(r"[a-z0-9][a-z0-9.-]{0,39}")
"""A word; capitals and `_` are left out because the database compares words by LIKE."""

_PROCESSOR = Path("/proc/cpuinfo")


def provided() -> tuple[str, ...]:
    """The words of this machine; its x86-64 levels in ascending order."""
    system, architecture = platform.system().lower(), platform.machine().lower().replace("_", "-")
    architecture = _ARCHITECTURES.get(architecture, architecture)
    words, features = [_SYSTEMS.get(system, system), architecture], processor_features()
    if architecture == LEVELS[0]:
        words += takewhile(lambda level: features.issuperset(_ADDED[level].split()), LEVELS[1:])
    return tuple(words)


def processor_features() -> frozenset[str]:
    """The features of this machine's processor by the kernel's names; empty where it tells none."""
    lines: list[str] = []
    with suppress(OSError):
        lines = _PROCESSOR.read_text(encoding="latin-1").splitlines()
    words = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return frozenset(words.partition(":")[2].split())


def own_level() -> str | None:
    """The highest level of this machine's processor; None if it is no x86-64."""
    return max(set(provided()) & set(LEVELS), default=None)


def required(binary: Path, level: str | None = None) -> tuple[str, ...]:
    """The words that a machine has to provide to run this file; those of a script are not known.

    `level` is the level of x86-64 that it was built for.
    """
    with binary.open("rb") as file:
        head = file.read(_ELF_BYTES)
    if len(head) < _ELF_BYTES or not head.startswith(b"\x7fELF"):
        return () if level is None else (level,)
    machine = _ELF_MACHINES.get(int.from_bytes(head[18:], "little"))
    architecture = level or machine if machine == LEVELS[0] else machine
    return tuple(filter(None, (_ELF_SYSTEMS.get(head[7]), architecture)))


def kind_of(provides: Collection[str], levels: Collection[str]) -> tuple[str, ...]:
    """The kind of machine that a worker with these words is: its system and its architecture.

    On x86-64 the architecture is the highest of the `levels` that it has. Empty for a machine of
    no known kind, and for one that has none of the levels.
    """
    systems = sorted(_SYSTEM_WORDS.intersection(provides))
    architectures = sorted(_ARCHITECTURE_WORDS.intersection(provides))
    if architectures == [LEVELS[0]] and levels:
        architectures = sorted(set(provides).intersection(levels))[-1:]
    return (systems[0], architectures[0]) if systems and architectures else ()


def lacking(requires: Collection[str], provides: Collection[str]) -> tuple[str, ...]:
    """What a machine with these words lacks."""
    return tuple(word for word in requires if word not in provides)
