"""Sets machines aside that fail batches which other machines can play."""

import logging
from dataclasses import dataclass

from spsa.db import Store
from spsa.db.run_view import MachineFailures, RunView
from spsa.db.tables import Run
from spsa.text import FAILURE_LENGTH, printable

FAILURE_BUDGET = 3
"""Batches that a machine may fail before it is set aside, while others play such batches."""

BINARY_BUDGET = 3
"""Binaries that a machine is set aside for; with the last of them it is set aside for all."""

log = logging.getLogger("spsa.master")


@dataclass(frozen=True, slots=True, kw_only=True)
class SetMachineAside:
    """Give a machine no more batches: of one binary, or of any if `sha256` is None."""

    machine: str
    sha256: str | None
    reason: str


def machines_to_set_aside(view: RunView) -> list[SetMachineAside]:
    """The machines that fail what others can play.

    If no machine can play a batch, none of them is at fault: the others try it until it fails.
    """
    return [_set_aside(failed) for failed in view.machine_failures if _is_at_fault(failed)]


def set_machines_aside(store: Store, view: RunView) -> None:
    """Write and log which machines get no more batches."""
    for one in machines_to_set_aside(view):
        reason = printable(one.reason, FAILURE_LENGTH)
        if store.set_aside(one.machine, reason, master_of(view.run), sha256=one.sha256):
            which = "every binary" if one.sha256 is None else f"the binary {one.sha256[:12]}"
            log.warning("machine %s is set aside for %s: %s", one.machine, which, one.reason)


def master_of(run: Run) -> str:
    """Who sets a machine aside in the events of all runs: the master of this one."""
    return f"master of {run.name}"


def _is_at_fault(failed: MachineFailures) -> bool:
    known = failed.is_set_aside or failed.sha256 in failed.binaries_set_aside
    often = failed.batches >= FAILURE_BUDGET and failed.batches > failed.played
    return often and not known and failed.played_by_others > 0


def _set_aside(failed: MachineFailures) -> SetMachineAside:
    only_one = failed.sha256 if len(failed.binaries_set_aside) + 1 < BINARY_BUDGET else None
    return SetMachineAside(
        machine=failed.machine,
        sha256=only_one,
        reason=f"failed {failed.batches} batches that other machines can play: {failed.reason}",
    )
