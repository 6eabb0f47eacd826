"""Builds an engine by the command that its author declares: make, cmake, a compiler.

The command runs in a work copy that holds the pinned source and nothing that an earlier build made:
not every Makefile knows which objects a changed header concerns.
"""

import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from spsa.builds.cargo.build_key import (
    BuildSettings,
    Rendered,
    digest_of,
    environment_of,
    values_of,
)
from spsa.builds.cargo.compiler import Compiled
from spsa.builds.pinned import Pinned
from spsa.builds.requirements import own_level, processor_features
from spsa.builds.subprocesses import Commands, Output
from spsa.builds.tree import Entry, tree_at
from spsa.builds.work_copy import WorkCopy
from spsa.errors import BuildFailed

_SHOWN_LINES = 60
_NATIVE = re.compile(r"-m(arch|cpu)=native")
_BUILD_FILE = re.compile(r"(^|/)((GNUm|M|m)akefile|CMakeLists\.txt|meson\.build)$|\.(mk|cmake|sh)$")


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
                "processor": sorted(processor_features()),
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
        return Compiled(executable, f"{platform.machine()}-{sys.platform}", self._level())

    def _level(self) -> str | None:
        """The level of x86-64 in the settings; that of this machine if something says `native`."""
        if self.settings.level is not None:
            return self.settings.level
        words = (*self.settings.command, *environment_of(self.commands).values())
        files = (e.path for name, e in self.pinned.tree().items() if _BUILD_FILE.search(name))
        texts = (path.read_text(encoding="utf-8", errors="replace") for path in files)
        return own_level() if any(map(_NATIVE.search, (*words, *texts))) else None

    def _compilers(self) -> Iterator[str]:
        """What the usual compilers say of themselves."""
        environment = self.commands.environment
        programs = {environment.get("CC") or "cc", environment.get("CXX") or "c++"}
        for program in sorted(programs | {"gcc", "clang"}):
            argv = program.split()
            if shutil.which(argv[0], path=environment.get("PATH")):
                yield self.commands.answer([*argv, "--version"], self.pinned.path)


def _last_lines(output: Output) -> str:
    """The end of what a failed command wrote: compilers write their errors to stderr."""
    lines = (output.stderr.strip() or output.stdout.strip()).splitlines()
    return "\n".join(lines[-_SHOWN_LINES:])
