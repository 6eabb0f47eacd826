"""Builds an engine by the command that its author declares: make, cmake, a compiler.

The command runs in a work copy that holds the pinned source and nothing that an earlier build made:
not every Makefile knows which objects a changed header concerns.
"""

import os
import platform
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from spsa.builds.cargo.build_key import (
    BuildSettings,
    Rendered,
    digest_of,
    environment_of,
    values_of,
)
from spsa.builds.cargo.compiler import Compiled
from spsa.builds.cargo.pinned import Pinned
from spsa.builds.cargo.subprocesses import Commands, Output
from spsa.builds.cargo.tree import Entry, tree_at
from spsa.builds.cargo.work_copy import WorkCopy
from spsa.errors import BuildFailed

_SHOWN_LINES = 60
_PROCESSOR = Path("/proc/cpuinfo")


@dataclass(frozen=True, slots=True)
class CommandRecipe:
    """`settings.command` for one run; `settings.binary` is the path of what it makes."""

    pinned: Pinned
    settings: BuildSettings
    commands: Commands

    def key(self, rendered: Rendered) -> str:
        """The build key: equal for equal values, source, command, compilers and processor.

        The processor counts because most Makefiles of engines build for the one they run on.
        """
        return digest_of(
            values_of(rendered)
            | {
                "source": self.pinned.sha256,
                "command": self.settings.command,
                "binary": self.settings.binary,
                "environment": environment_of(self.commands),
                "compilers": list(self._compilers()),
                "processor": _processor(),
            }
        )

    def source(self, wait_for: object) -> dict[str, Entry]:
        """The pinned source."""
        return self.pinned.tree()

    def compile(self, work_copy: WorkCopy, rewritten: Mapping[str, str]) -> Compiled:
        """Run the command in what is laid out; the binary has to be there when it ends."""
        for entry in tree_at(work_copy.tree).values():
            if entry.link is None:
                os.utime(entry.path)  # none from the future, which make and ninja complain of
        logs = work_copy.home / "log"
        output = self.commands.run(
            self.settings.command, work_copy.tree, logs, self.settings.timeout
        )
        words = " ".join(self.settings.command)
        if output.status != 0:
            raise BuildFailed(
                f"`{words}` ended with {output.status}\n{_last_lines(output)}\n"
                f"all of it is in {logs}"
            )
        executable = work_copy.tree / (self.settings.binary or "")
        if not executable.is_file():
            raise BuildFailed(
                f"`{words}` ended without making {self.settings.binary}; "
                "correct [build] binary, the path of what it makes from source_path"
            )
        return Compiled(executable, f"{platform.machine()}-{sys.platform}")

    def _compilers(self) -> Iterator[str]:
        """What the usual compilers say of themselves."""
        environment = self.commands.environment
        programs = {environment.get("CC") or "cc", environment.get("CXX") or "c++"}
        for program in sorted(programs | {"gcc", "clang"}):
            argv = program.split()
            if shutil.which(argv[0], path=environment.get("PATH")):
                yield self.commands.answer([*argv, "--version"], self.pinned.path)


def _processor() -> str:
    """The features of this machine's processor, as far as the system tells them."""
    try:
        lines = _PROCESSOR.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")


def _last_lines(output: Output) -> str:
    """The end of what a failed command wrote: compilers write their errors to stderr."""
    lines = (output.stderr.strip() or output.stdout.strip()).splitlines()
    return "\n".join(lines[-_SHOWN_LINES:])
