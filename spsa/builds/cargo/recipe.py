"""How an engine is built by cargo: its inputs as one key, and one build in a work copy."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from spsa.builds.cargo.build_key import BuildEnvironment, BuildSettings, Rendered
from spsa.builds.cargo.compiler import Compiled, Compiler
from spsa.builds.cargo.dependencies import SharedDependencies
from spsa.builds.cargo.pinned import Pinned
from spsa.builds.cargo.subprocesses import Commands
from spsa.builds.cargo.tree import Entry, Tree
from spsa.builds.cargo.work_copy import WorkCopy

Wait = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class CargoRecipe:
    """Cargo for one run. Cargo runs in folders below `work`."""

    pinned: Pinned
    settings: BuildSettings
    commands: Commands
    work: Path
    _dependencies: SharedDependencies = field(default_factory=SharedDependencies)

    def key(self, rendered: Rendered) -> str:
        """The build key of an engine with these values."""
        return self._environment.key(rendered, self._environment.toolchain())

    def source(self, wait_for: Callable[[WorkCopy], Wait]) -> dict[str, Entry]:
        """The pinned source. If it has no Cargo.lock, the whole run shares a generated one."""
        source = self.pinned.tree()
        name = f"{self.pinned.prefix}Cargo.lock"
        if name not in source:
            source[name] = Entry(self._resolved(source, wait_for))
        return source

    def compile(self, work_copy: WorkCopy, rewritten: Mapping[str, str]) -> Compiled:
        """Build what is laid out in the work copy."""
        crate, logs = work_copy.tree / self.pinned.prefix, work_copy.home / "log"
        compiler = self._compiler
        binary = compiler.binary(crate, logs)
        with (
            work_copy.compiling() as target,
            self._dependencies.for_build(work_copy, target, rewritten, self.commands) as watch,
        ):
            executable, triple = compiler.build(binary, crate, target, logs, watch)
        return Compiled(executable, triple or self._environment.toolchain().host)

    @property
    def _compiler(self) -> Compiler:
        return Compiler(self.settings, self.commands)

    @property
    def _environment(self) -> BuildEnvironment:
        return BuildEnvironment(self.pinned, self.settings, self.commands, self.work)

    def _resolved(self, source: Tree, wait_for: Callable[[WorkCopy], Wait]) -> Path:
        lock = self.pinned.path.with_name(f"{self.pinned.sha256}.lock")
        work_copy = WorkCopy(self.work / "resolve")
        with work_copy.locked(wait_for(work_copy)):
            if not lock.exists():
                work_copy.lay_out(source, {})
                crate = work_copy.tree / self.pinned.prefix
                self._compiler.lock(crate, work_copy.home / "log")
                (crate / "Cargo.lock").replace(lock)
        return lock
