"""The lifecycles of runs, iterations and batches.

CHECK constraints, the guards of every UPDATE, the diagram in docs/architecture.md and the tests are
derived from these tables or compared with them.
"""

from collections.abc import Mapping
from enum import StrEnum


class RunStatus(StrEnum):
    RUNNING = "running"
    PAUSED = "paused"
    FINISHED = "finished"
    STOPPED = "stopped"


class IterationStatus(StrEnum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETE = "complete"
    ABANDONED = "abandoned"


class BatchStatus(StrEnum):
    READY = "ready"
    LEASED = "leased"
    DONE = "done"
    FAILED = "failed"
    PURGED = "purged"


class MachineRole(StrEnum):
    """What the token of a machine permits: to play, or also to build engines for others."""

    WORKER = "worker"
    BUILDER = "builder"


class Purpose(StrEnum):
    """Why an iteration is played: to move theta, or to measure one theta against another."""

    TUNE = "tune"
    VALIDATE = "validate"


RUN: Mapping[RunStatus, frozenset[RunStatus]] = {
    RunStatus.RUNNING: frozenset({RunStatus.PAUSED, RunStatus.FINISHED, RunStatus.STOPPED}),
    RunStatus.PAUSED: frozenset({RunStatus.RUNNING, RunStatus.STOPPED}),
    # finished -> running: a person extends it
    RunStatus.FINISHED: frozenset({RunStatus.RUNNING}),
    RunStatus.STOPPED: frozenset(),
}

ITERATION: Mapping[IterationStatus, frozenset[IterationStatus]] = {
    IterationStatus.PENDING: frozenset({IterationStatus.IN_PROGRESS, IterationStatus.ABANDONED}),
    IterationStatus.IN_PROGRESS: frozenset({IterationStatus.COMPLETE, IterationStatus.ABANDONED}),
    IterationStatus.COMPLETE: frozenset(),
    IterationStatus.ABANDONED: frozenset(),
}

BATCH: Mapping[BatchStatus, frozenset[BatchStatus]] = {
    # ready -> failed: every active machine has tried it
    BatchStatus.READY: frozenset({BatchStatus.LEASED, BatchStatus.FAILED}),
    # leased -> leased: another claim takes over an expired lease, with the next attempt number
    BatchStatus.LEASED: frozenset(
        {BatchStatus.LEASED, BatchStatus.READY, BatchStatus.DONE, BatchStatus.FAILED}
    ),
    # a purge; if the iteration is open, another batch is added for the games
    BatchStatus.DONE: frozenset({BatchStatus.PURGED}),
    # failed -> ready: a person resumes the run
    BatchStatus.FAILED: frozenset({BatchStatus.READY}),
    BatchStatus.PURGED: frozenset(),
}
