"""Every error of the tuner, in one tree.

A message carries the names and numbers a person needs to act. The class carries the exit code.
Nothing else in the project decides how a failure ends.
"""

import errno
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType


class TuningError(Exception):
    """Something that the person running the tuner has to know; never shown as a traceback."""

    exit_code = 1


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
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return _on_one_line(f"{place}: [{_cut(self.name)}] {_cut(self.found)}; {_cut(self.remedy)}")


_LONGEST = 1000


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _on_one_line(text: str) -> str:
    """With escapes for what would break a line, or do worse to a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


MOST_FAULTS = 100
"""Of one file in one go; a reader of more would begin at the first one, too."""


class InvalidInput(TuningError):
    """A file, option or variable is wrong: its faults in one go, nothing built or played."""

    exit_code = 2

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(str(fault) for fault in self.faults))


class NothingToDo(TuningError):
    """There is no work of the kind that was asked for."""

    exit_code = 3


class BuildFailed(TuningError):
    """The compiler refused a source; the message has its own words and the values given."""

    exit_code = 4


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


class MastershipLost(TuningError):
    """Another master moves this run now; this one must stop touching it."""


class LeaseLost(TuningError):
    """The claim is no longer this worker's; its games are dropped, another plays them again."""


class ReportConflict(TuningError):
    """A batch that is done was reported again with other counts: a defect, never to be ignored."""


class EngineFault(TuningError):
    """An engine crashed, hung, moved illegally or refused an option: a void game with a reason."""

    def __init__(self, reason: str, detail: str) -> None:
        self.reason = reason
        super().__init__(f"{reason}: {detail}")


def told(error: OSError) -> tuple[str, int]:
    """What to say of a file that a program could not use, and the code it exits with.

    A name that no system takes is bad input; anything else is a failure of this machine.
    """
    where = _on_one_line(_cut(str(error.filename or "output")))
    return f"{where}: {error.strerror or error}", 2 if error.errno == errno.ENAMETOOLONG else 1


def tell_defect(
    kind: type[BaseException], error: BaseException, _trace: TracebackType | None
) -> None:
    """The programs' `sys.excepthook`: a sentence for what nobody caught; an interrupt needs none.

    A program with SPSA_DEBUG in its environment leaves Python's own in place.
    """
    if not issubclass(kind, KeyboardInterrupt):
        sys.stderr.write(
            f"a defect of this program: {kind.__name__}: {error}\n"
            "set SPSA_DEBUG=1 for its traceback, and please report it\n"
        )
