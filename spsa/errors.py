"""Every error of the tuner, in one tree.

A message carries the names and numbers a person needs to act. The class carries the exit code.
Nothing else in the project decides how a failure ends.
"""

import errno
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType

from spsa.text import FAILURE_LENGTH, VOID_REASON_LENGTH, printable

_FILE_LENGTH = 500
_NAME_LENGTH = 100
_FOUND_LENGTH = 1_000


class TuningError(Exception):
    """Something that the person running the tuner has to know; never shown as a traceback."""

    exit_code = 1

    @property
    def lines(self) -> tuple[str, ...]:
        """The sentences that a person is shown; line breaks inside one come from elsewhere."""
        return (str(self),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that is wrong in what a person wrote.

    `line` counts from 1 and is None where a fault has no line, as with the environment.
    """

    file: str
    line: int | None
    name: str
    found: str
    remedy: str

    def __str__(self) -> str:
        file = printable(self.file, _FILE_LENGTH)
        place = file if self.line is None else f"{file}:{self.line}"
        said = f"[{printable(self.name, _NAME_LENGTH)}] {self.found}; {self.remedy}"
        return f"{place}: {printable(said, _FOUND_LENGTH)}"


MOST_FAULTS = 100
"""Of one file in one go; a reader of more would begin at the first one, too."""


class InvalidInput(TuningError):
    """A file, option or variable is wrong: its faults in one go, nothing built or played."""

    exit_code = 2

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(self.lines))

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(str(fault) for fault in self.faults)


class NothingToDo(TuningError):
    """There is no work of the kind that was asked for."""

    exit_code = 3


class BuildFailed(TuningError):
    """The compiler refused a source; the message has its own words and the values given."""

    exit_code = 4

    @property
    def lines(self) -> tuple[str, ...]:
        """The compiler's words or the engine's have several lines."""
        return tuple(str(self).split("\n"))


class SmokeTestFailed(BuildFailed):
    """A fresh binary did not answer as a UCI engine does."""


class SourceChanged(TuningError):
    """The engine's source is no longer the one the run was started with."""


class ArtifactMismatch(TuningError):
    """The bytes of a binary do not hash to what the row names; it is not run."""


class NotSigned(TuningError):
    """The owner of the trusted key did not sign what a row says is to be executed."""


class DatabaseUnreachable(TuningError):
    """The database does not answer; the caller may wait and ask again with the same identifiers."""

    exit_code = 5


class NotPermitted(TuningError):
    """The database knows who asks, and that one may not do this."""

    exit_code = 2


class SchemaMismatch(TuningError):
    """The database has another schema than this program, which can do nothing with it."""

    exit_code = 3


class TablesMissing(SchemaMismatch):
    """Nobody has made the tuner's tables, or the SQLite file that is to hold them, yet."""


class UnusableState(TuningError):
    """The saved state is another rule's, or of other parameters: the run cannot go on from it."""

    exit_code = 2


class IllegalTransition(TuningError):
    """A row was not in a state from which the wanted one can be reached: a race was lost."""


class BatchFailed(TuningError):
    """A batch could not be played on this machine; the message has the engine's fault."""


class OutOfRange(TuningError):
    """A number or a text of a worker lies outside `limits`; the message names the column."""


class NameTaken(TuningError):
    """The name of a worker belongs to another machine."""

    exit_code = 2


class DatabaseRefused(TuningError):
    """The database refused a statement; nothing of its transaction is kept."""


class MasterLeaseLost(TuningError):
    """Another master moves this run now; this one must stop touching it."""


class LeaseLost(TuningError):
    """The claim is no longer this worker's; its games are dropped, another plays them again."""


class ReportConflict(TuningError):
    """A batch that is done was reported again with other counts: a defect, never to be ignored."""


class EngineFault(TuningError):
    """An engine crashed, hung, moved illegally or refused an option: a void game with a reason.

    What the engine itself wrote may be in both texts, which are printable and bounded therefore.
    """

    def __init__(self, reason: str, detail: str) -> None:
        self.reason = printable(reason, VOID_REASON_LENGTH)
        super().__init__(printable(f"{reason}: {detail}", FAILURE_LENGTH))


def told(error: OSError) -> tuple[str, int]:
    """What to say of a file that a program could not use, and the code it exits with.

    A name that no system takes is bad input; anything else is a failure of this machine.
    """
    where = printable(str(error.filename or "output"), _FILE_LENGTH)
    return f"{where}: {error.strerror or error}", 2 if error.errno == errno.ENAMETOOLONG else 1


def tell_defect(
    kind: type[BaseException], error: BaseException, _trace: TracebackType | None
) -> None:
    """The programs' `sys.excepthook`: a sentence for what nobody caught; an interrupt needs none.

    A program with SPSA_DEBUG in its environment leaves Python's own in place. Only the first line
    of the error is shown: below it a database driver quotes the statement and its values.
    """
    if not issubclass(kind, KeyboardInterrupt):
        said = printable(str(error).partition("\n")[0], FAILURE_LENGTH)
        sys.stderr.write(
            f"a defect of this program: {kind.__name__}: {said}\n"
            "set SPSA_DEBUG=1 for its traceback, and please report it\n"
        )
