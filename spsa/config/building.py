"""The tables of config.toml that decide how engines are built, and how they get values."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from spsa.builds.requirements import LEVELS
from spsa.config.document import shown
from spsa.config.section import (
    FilePath,
    Found,
    OptionalPath,
    OptionalText,
    Section,
    Text,
    Texts,
    refusal,
)
from spsa.core.params.placement import SOURCE_SUFFIXES


def _levels(levels: tuple[str, ...]) -> tuple[str, ...]:
    """The levels in ascending order, each once."""
    if unknown := [level for level in levels if level not in LEVELS]:
        remedy = f"name some of {', '.join(LEVELS)}"
        raise refusal(f"{shown(unknown[0])} is no level of x86-64", remedy)
    return tuple(level for level in LEVELS if level in levels)


class BuildSection(Section):
    """How engines are built."""

    source_path: OptionalPath = None
    """required: folder of the engine's `Cargo.toml`, or where `command` runs"""
    constants_file: Text = "src/engine_constants.rs"
    """the file with the constants, relative to `source_path`"""
    engines_path: FilePath = Field("engines", validate_default=True)
    """where binaries are stored; workers must see it, unless they get them from the database"""
    command: Texts = ()
    """builds an engine of C or C++, as `["make", "-C", "src"]`; left out: cargo"""
    binary: OptionalText = None
    """the binary to build, if there are several; with `command`: the path of what it makes"""
    package: OptionalText = None
    """the package of the workspace that is the engine"""
    flags: Texts = ("--release",)
    """arguments of `cargo build`"""
    target: OptionalText = None
    """target triple, if not this machine's"""
    levels: Annotated[Texts, AfterValidator(_levels)] = ()
    """the level of x86-64 to build for, as `["x86-64-v3"]`; of workers, several"""
    timeout: Annotated[float, Field(gt=0.0, le=7 * 86_400)] = 900.0
    """seconds for the build of one side"""
    bench: bool | None = None
    """`true`: the engine must have a `bench`; `false`: do not run it; left out: if there is one"""
    at_once: Annotated[int | None, Field(ge=1, le=1000)] = None
    """iterations whose engines are built at a time; by default one for every four processors"""
    where: Literal["master", "worker"] = "master"
    """who builds: the master, or for each kind of machine a worker"""
    distribute: Literal["path", "database"] = Field(
        default_factory=lambda data: "database" if data["where"] == "worker" else "path"
    )
    """how workers get binaries, book and side files; by default "path", of workers "database\""""

    @model_validator(mode="before")
    @classmethod
    def _older_name(cls, table: Any) -> Any:
        """`rusty_rival_path` was the first name of `source_path`."""
        older = "rusty_rival_path"
        if not isinstance(table, dict) or older not in table or "source_path" in table:
            return table
        return {"source_path" if key == older else key: value for key, value in table.items()}

    def faults(self) -> Iterator[Found]:
        suffix = self.constants_file.rpartition(".")[2]
        if not _is_inside(self.constants_file) or suffix not in SOURCE_SUFFIXES:
            found = f"{shown(self.constants_file)} is no file of Rust, C or C++ inside the source"
            remedy = 'write it relative to source_path, as "src/search.rs" or "src/search.cpp"'
            yield ("constants_file",), found, remedy
        if self.command:
            yield from self._faults_of_command()
        if len(self.levels) > 1 and self.where == "master":
            remedy = 'name one, or write where = "worker"'
            yield ("levels",), "there are several, and a master builds for one", remedy
        if len(self.levels) > 1 and self.bench is False:
            found = "bench = false, and engines of several levels are compared by bench"
            yield ("bench",), found, "remove bench, or name one level"
        if self.where == "worker" and self.distribute == "path":
            found = 'distribute = "path", and where = "worker": no worker writes into a folder'
            yield ("distribute",), found, "remove distribute, or where"

    def _faults_of_command(self) -> Iterator[Found]:
        """Options of cargo do not go with another command, which has to name what it makes."""
        for key in ("flags", "package", "target"):
            if key in self.written:
                yield (key,), f"{key} is for cargo, and command is given", f"remove {key}"
        if self.binary is None:
            remedy = 'write binary = "src/engine", the path from source_path of what it makes'
            yield ("binary",), "command is given without binary", remedy
        elif not _is_inside(self.binary):
            remedy = "write the path from source_path of what the command makes"
            yield ("binary",), f"{shown(self.binary)} is not a path inside the source", remedy
        if len(self.levels) > 1 and not any("{level}" in word for word in self.command):
            found = "there are several levels and no {level} in command"
            remedy = 'write it where the compiler takes a processor, as "CXXFLAGS=-march={level}"'
            yield ("command",), found, remedy


def _is_inside(path: str) -> bool:
    """Whether a path stays in the folder that it starts in."""
    return not path.startswith("/") and ".." not in path.split("/")


class DeliverySection(Section):
    """How values get into an engine."""

    kind: Literal["build", "uci"] = "build"
    """`build` rewrites constants and builds; `uci` sends values by `setoption`"""
    engine: OptionalPath = None
    """the binary that takes the options; required by `uci`, refused by `build`"""

    def faults(self) -> Iterator[Found]:
        if self.kind == "uci" and self.engine is None:
            yield ("engine",), "engine is missing", "name the binary that takes the options"
        if self.kind == "build" and self.engine is not None:
            found = 'engine does not go with kind = "build"'
            yield ("engine",), found, 'it needs kind = "uci"'
