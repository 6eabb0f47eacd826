"""What other systems than Linux give an engine; macOS was not tried. The names are Linux's."""

import os
from collections.abc import Iterator
from contextlib import nullcontext

ENGINE_ID = "SPSA_ENGINE"
Isolation = object  # annotations name it, and there is none


def isolation() -> None:
    """There is none."""


def missing(_isolation: object) -> Iterator[str]:
    """What the sandbox lacks, and what that means."""
    yield "no sandbox: engines can use the network and signal other processes of their user"
    yield (
        "no orphan reaper: a killed worker does not end its engines, and nothing limits their "
        "working folders"
    )


def orphan_reaper(_folders: object = None) -> nullcontext[str]:
    return nullcontext("")


def logical_cores() -> set[int]:
    return set(range(os.cpu_count() or 1))


def nothing(*_: object, **_named: object) -> None:
    """What takes a system call of Linux."""


bind_engine = hide_memory = kill_all_of = let_engines_run_on = nothing
has_autogroups = this_process = has_ended = nothing
