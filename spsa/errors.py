"""Every error of the tuner, in one tree.

A message has the names and numbers that a user needs to act. The class has the exit code.
"""

import errno
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from spsa.text import FAILURE_LENGTH, VOID_REASON_LENGTH, printable

_PART_LENGTH = 500  # characters of each part of a fault
MAX_FAULTS = 100  # of one file that are shown at a time


class TuningError(Exception):
    """An error that is shown to the user as a sentence, never as a traceback."""

    exit_code = 1

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines to show; a line break inside one of them comes from outside this program."""
        return (str(self),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault in a file, an option or a variable.

    `line` counts from 1; None if the fault has no line, as in the environment.
    """

    file: str
    line: int | None
    name: str
    found: str
    remedy: str

    def __str__(self) -> str:
        shown = (self.file, self.name, self.found, self.remedy)
        file, name, found, remedy = (printable(part, _PART_LENGTH) for part in shown)
        place = file if self.line is None else f"{file}:{self.line}"
        named = "" if file.rpartition("/")[2] == name else f"[{name}] "
        return f"{place}: {named}{found}; {remedy}"


class InvalidInput(TuningError):
    """A file, an option or a variable is wrong; has all its faults."""

    exit_code = 2

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(dict.fromkeys(faults))  # two readers of one file find the same
        super().__init__("\n".join(self.lines))

    @classmethod
    def of(
        cls, file: object, name: str, found: str, remedy: str, line: int | None = None
    ) -> "InvalidInput":
        """With one fault."""
        return cls([Fault(file=str(file), line=line, name=name, found=found, remedy=remedy)])

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(str(fault) for fault in self.faults)


class NothingToDo(TuningError):
    """There is no work of the requested kind."""

    exit_code = 3


class BuildFailed(TuningError):
    """A build failed; the message has the output of the compiler and the values."""

    exit_code = 4

    @property
    def lines(self) -> tuple[str, ...]:
        """The output of the compiler or the engine, line by line."""
        return tuple(str(self).split("\n"))

    @property
    def summary(self) -> str:
        """The first line, and the first one below it that tells of an error."""
        first, *more = self.lines
        told = next((line for line in more if re.search(r"(?i)\berror\b|not found", line)), "")
        return f"{first}: {printable(told.strip(), _PART_LENGTH)}" if told else first


class RepositoryUnreachable(BuildFailed):
    """git cannot read the repository of a source."""

    exit_code = 5


class SmokeTestFailed(BuildFailed):
    """A new binary does not behave like a UCI engine."""


class DatabaseUnreachable(TuningError):
    """The database or the server does not respond.

    The caller may repeat the call with the same identifiers, after `retry_after` seconds at least
    if the server names a time.
    """

    exit_code = 5

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        self.retry_after = retry_after
        super().__init__(message)


class TooManyRequests(DatabaseUnreachable):
    """A machine has all that it may have for now; the caller may ask again later."""


class NotPermitted(TuningError):
    """The database login, or the token of a remote worker, has no right to do this."""

    exit_code = 2


def revoked(machine: str) -> str:
    """That a machine was revoked, and how it returns."""
    again = f"`spsa-master workers invite {machine}` gives it a new token"
    return f"the machine {machine!r} was revoked; {again}"


class SchemaMismatch(TuningError):
    """The database has another schema than this program needs."""

    exit_code = 3


class OutdatedWorker(TuningError):
    """The server needs another version of the worker, and this one cannot replace itself."""

    exit_code = 2


class TablesMissing(SchemaMismatch):
    """The tables of the tuner, or the SQLite file for them, do not exist yet."""


class UnusableState(TuningError):
    """The saved state does not fit the rule or the parameters, so the run cannot continue."""

    exit_code = 2


class IllegalTransition(TuningError):
    """A row is not in a state from which the change is possible; another process was faster."""


class OutOfRange(TuningError):
    """What a worker says is outside its limits; `field` is where it stands, if that is known."""

    def __init__(self, message: str, field: str | None = None) -> None:
        self.field = field
        super().__init__(message)


class NameTaken(TuningError):
    """The worker's name belongs to another machine."""

    exit_code = 2


class MasterLeaseLost(TuningError):
    """Another master holds this run now; this one has to stop.

    `lease_end`, a time of the database, changes whenever the other master, the `holder`, renews its
    lease; None if it is not known.
    """

    def __init__(self, message: str, lease_end: Any = None, holder: str = "") -> None:
        self.lease_end, self.holder = lease_end, holder
        super().__init__(message)


class LeaseLost(TuningError):
    """The claim no longer has its batch; the games are dropped, another worker plays them again."""


class ReportConflict(TuningError):
    """A batch that is done was reported again with other counts, which is a defect."""


class EngineFault(TuningError):
    """An engine crashed, hung, made an illegal move or refused an option; the game is void.

    Both texts may quote the engine, so they are printable and bounded.
    """

    def __init__(self, reason: str, detail: str) -> None:
        self.reason = printable(reason, VOID_REASON_LENGTH)
        super().__init__(printable(f"{reason}: {detail}", FAILURE_LENGTH))


def file_failure(error: OSError, place: object = "output") -> tuple[str, int]:
    """The message and the exit code for a file that cannot be used; it is at `place` if unnamed.

    A name that is too long is bad input; any other error is a failure of this machine.
    """
    where = printable(str(error.filename or place), _PART_LENGTH)
    is_closed = error.errno in (errno.EACCES, errno.EPERM, errno.EROFS)
    remedy = "; change its permissions, or use another folder" if is_closed else ""
    code = 2 if error.errno == errno.ENAMETOOLONG else 1
    return f"{where}: {error.strerror or error}{remedy}", code


def report_defect(
    kind: type[BaseException], error: BaseException, _trace: TracebackType | None
) -> None:
    """The programs' `sys.excepthook`: one sentence for an unexpected error, none for an interrupt.

    With SPSA_DEBUG in its environment a program keeps Python's own hook. Only the first line of the
    error is shown, because a database driver quotes the statement and its values below it.
    """
    if not issubclass(kind, KeyboardInterrupt):
        text = printable(str(error).partition("\n")[0], FAILURE_LENGTH)
        sys.stderr.write(
            f"a defect of this program: {kind.__name__}: {text}\n"
            "set SPSA_DEBUG=1 for its traceback, and please report it\n"
        )
