"""The tables of config.toml. A field is a key: its type, range, default and documentation."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    AliasChoices,
    BeforeValidator,
    Field,
    InstanceOf,
    ValidationInfo,
    field_validator,
    model_validator,
)

from spsa.algorithms import rule_settings, settings_faults
from spsa.builds.requirements import WORD, Level
from spsa.config.document import Found, shown
from spsa.config.play import (
    AdjudicationSection,
    EngineSection,
    GamesSection,
    TimeControls,
    TimeControlSection,
    time_control_faults,
)
from spsa.config.section import (
    FilePath,
    OptionalPath,
    OptionalText,
    Section,
    Text,
    Texts,
    even,
    folder_of,
    refusal,
    refuse_all,
)
from spsa.core.game_settings import MAX_HANDICAP, GameSettings
from spsa.core.parameter import SOURCE_SUFFIXES
from spsa.db.url import DEFAULT_URL, configured_url, parsed
from spsa.errors import InvalidInput
from spsa.text import closest, is_printable

DEFAULT_ALGORITHM = "mixture"
MAX_ADDRESS, MAX_ADDRESSES = 4096, 20

FolderName = AfterValidator(lambda name, info: name or folder_of(info).name)


class RunSection(Section):
    """The run."""

    name: Annotated[Text, FolderName] = Field("", validate_default=True)
    """name of the run in the database; by default that of the folder"""
    params: FilePath = Field("params.toml", validate_default=True)
    """the file with the parameters"""
    seed: Annotated[int | None, Field(ge=0, le=2**63 - 1)] = None
    """of perturbations, openings and colours; by default drawn at the start"""


def _url(written: str, info: ValidationInfo) -> str:
    """The same URL, a relative SQLite path from the folder of the file: one for all programs.

    No message quotes a URL, which may hold a password.
    """
    try:
        parsed(written.strip())
    except InvalidInput as error:
        (fault,) = error.faults
        raise refusal(f"url {fault.found}", fault.remedy) from None
    return configured_url(folder_of(info), written)


class DatabaseSection(Section):
    """Where all programs of a run meet."""

    url: Annotated[str, AfterValidator(_url)] = Field(DEFAULT_URL, validate_default=True)
    """`sqlite:///FILE` or `postgresql://USER@HOST:PORT/NAME`; DATABASE_URL goes before it"""


class SpsaSection(Section, extra="allow"):
    """The rule. All other keys are its own."""

    algorithm: Text = DEFAULT_ALGORITHM
    """the rule that moves theta"""
    max_iterations: Annotated[int, Field(ge=1, le=10_000_000)] = 500
    """length of the run"""

    @property
    def settings(self) -> Mapping[str, Any]:
        """The keys of the rule, as they are written."""
        return self.model_extra or {}

    def faults(self) -> Iterator[Found]:
        for key, found, remedy in settings_faults(self.algorithm, self.settings):
            near = closest(key, SpsaSection.model_fields)
            is_misspelt = near and near != key
            yield (key,), f"{key}: {found}", f'did you mean "{near}"?' if is_misspelt else remedy

    @model_validator(mode="before")
    @classmethod
    def _named(cls, table: Any) -> Any:
        """Gains that the default does not have mean the rule `spsa`, where none is named."""
        own, gains = (
            {setting.name for setting in rule_settings(name)}
            for name in (DEFAULT_ALGORITHM, "spsa")
        )
        if not isinstance(table, dict) or "algorithm" in table or not table.keys() & (gains - own):
            return table
        return {**table, "algorithm": "spsa"}


class BuildSection(Section):
    """How engines are built."""

    source_path: OptionalPath = Field(
        None, validation_alias=AliasChoices("source_path", "rusty_rival_path")
    )
    """required without `[engine] source`: folder of `Cargo.toml`, or where `command` runs"""
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
    levels: Annotated[
        tuple[Level, ...],
        Field(strict=False),
        AfterValidator(lambda levels: tuple(sorted(set(levels)))),
    ] = ()
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
        for key in ("flags", "package", "target"):
            if key in self.model_fields_set:
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

    engine: OptionalPath = None
    """a finished engine, which is sent the values as UCI options; left out: a source is built"""
    command: Texts = ()
    """makes files of the values for that engine, as `["python3", "net.py"]` in `source_path`"""

    @property
    def kind(self) -> Literal["build", "uci", "command"]:
        """`build` rewrites constants, `uci` sends options, `command` makes files."""
        if self.engine is None:
            return "build"
        return "command" if self.command else "uci"

    def faults(self) -> Iterator[Found]:
        if self.command and self.engine is None:
            remedy = "name the binary that takes its files; what builds is in [build]"
            yield ("engine",), "engine is missing", remedy


class ValidationSection(Section):
    """The matches of the tuned values against the first ones, or against another engine."""

    games: Annotated[int, Field(ge=0, le=1_000_000), AfterValidator(even)] = 0
    """even: games of the tuned values against the start when the run ends"""
    every: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """measure theta after every so many iterations against the start while the run goes on"""
    share: Annotated[float, Field(ge=1e-3, le=1.0)] = 0.05
    """games of these measurements for each game of the tuning"""
    against: OptionalPath = None
    """another engine, as a binary, which plays these matches instead of the start"""
    handicap: Annotated[float, Field(ge=1.0, le=MAX_HANDICAP)] = 1.0
    """divides the time, nodes or depth that this engine gets"""
    time_control: TimeControlSection | None = None

    def faults(self) -> Iterator[Found]:
        if self.against is not None and not (self.every or self.games):
            yield ("against",), "against is of validations, and there are none", "add every = 100"
        if "handicap" in self.model_fields_set and self.against is None:
            found, remedy = "handicap is of another engine", 'name it: against = "stockfish"'
            yield ("handicap",), found, remedy
        if "share" in self.model_fields_set and not self.every:
            yield ("share",), "share is of validations in the background", "add every = 100"


def _addresses(given: object) -> object:
    """A list of texts; no message quotes one, because who knows it can write there."""
    found = given if isinstance(given, list | tuple) else [None]
    known = all(isinstance(one, str) and is_printable(one, MAX_ADDRESS) for one in found)
    if not known or len(found) > MAX_ADDRESSES:
        at_most = f"urls is not a list of texts, {MAX_ADDRESSES} at most"
        raise refusal(at_most, 'write urls = ["https://..."]')
    return tuple(found)


class NotifySection(Section):
    """Who gets messages about a run; events have what they say in any case."""

    command: Text = ""
    """a shell command that gets each message on its standard input"""
    urls: Annotated[tuple[str, ...], BeforeValidator(_addresses)] = Field((), repr=False)
    """webhooks (`https://`), and what else apprise knows; SPSA_NOTIFY_URLS goes before it"""
    after: Annotated[float, Field(ge=0.0, le=86_400.0)] = 60.0
    """seconds that an alarm lasts before it is reported, and is gone before it is over"""


def _word(word: str) -> str:
    if not WORD.fullmatch(word):
        remedy = "write at most 40 small letters, digits, `.` and `-`, as for `compete --label`"
        raise refusal(f"{shown(word)} is not a word", remedy)
    return word


class FleetSection(Section):
    """Which machines play."""

    set_aside: bool = False
    """whether the master gives no more batches to machines whose results stand out"""
    require: Annotated[
        tuple[Annotated[Text, AfterValidator(_word)], ...], Field(strict=False, max_length=50)
    ] = ()
    """words that a worker has to provide: a `compete --label`, or what its machine is"""


def _table() -> Any:
    """A table that is read as an empty one where the file has none."""
    return Field(default_factory=dict, validate_default=True)


class Sections(Section):
    """All tables of config.toml."""

    run: RunSection = _table()
    database: DatabaseSection = _table()
    time_control: TimeControls = _table()
    games: GamesSection = _table()
    spsa: SpsaSection = _table()
    build: BuildSection = _table()
    delivery: DeliverySection = _table()
    engine: EngineSection = _table()
    adjudication: AdjudicationSection = _table()
    validation: ValidationSection = _table()
    notify: NotifySection = _table()
    fleet: FleetSection = _table()

    @field_validator("engine")
    @classmethod
    def _between_tables(cls, engine: EngineSection, info: ValidationInfo) -> EngineSection:
        """Tell what is wrong between tables that are right by themselves, whatever others are."""
        build, games, delivery = (info.data.get(name) for name in ("build", "games", "delivery"))
        controls = info.data.get("time_control") or ()
        told = list(time_control_faults(controls, games)) if controls else []
        is_timed = any(not one.limits.reproducible for one in controls)
        if games and games.target_nps is not None and controls and not is_timed:
            found = f'target_nps does not go with kind = "{controls[0].kind}" of [time_control]'
            told.append((("games", "target_nps"), found, "remove it: these games need no scale"))
        builds = delivery and delivery.kind == "build"
        is_pinned = delivery and delivery.kind != "uci"
        if build and is_pinned and build.source_path is None and engine.source is None:
            remedy = 'write source_path = "../engine", the folder with Cargo.toml or Makefile'
            told.append((("build", "source_path"), "source_path is missing", remedy))
        path = engine.source and build and build.source_path
        if path and info.context and not path.is_relative_to(folder_of(info)):
            found = "source_path leads out of the repository that [engine] source names"
            told.append((("build", "source_path"), found, "write its path from the top of that"))
        if delivery and not builds:
            if build and build.where == "worker":
                found = 'where = "worker", and nothing is built'
                told.append((("build", "where"), found, "remove where"))
            if engine.source:
                found = "source does not go with engine of [delivery], which is finished"
                told.append((("engine", "source"), found, "remove source"))
        refuse_all(told, "tables")
        return engine


class Config(Sections):
    """One config.toml, overridden by the environment. Every path is absolute."""

    path: Path
    game_settings: InstanceOf[GameSettings]
    notify_variable: str
    """of the environment, if one named the addresses of [notify]"""

    @property
    def source_folder(self) -> Path | None:
        """The folder of the engine's source; None where a repository has it, or there is none."""
        return None if self.engine.source else self.build.source_path
