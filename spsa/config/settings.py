"""The tables of config.toml. A field is a key: its type, range, default and documentation."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, InstanceOf, ValidationInfo, model_validator

from spsa.algorithms import rule_entry, settings_faults
from spsa.builds.requirements import WORD
from spsa.config.building import BuildSection, DeliverySection
from spsa.config.document import shown
from spsa.config.play import (
    AdjudicationSection,
    EngineSection,
    GamesSection,
    TimeControlSection,
)
from spsa.config.section import (
    FilePath,
    Found,
    Section,
    Text,
    Texts,
    even,
    folder_of,
    refusal,
)
from spsa.core.game_settings import GameSettings
from spsa.db.url import DEFAULT_URL, configured_url, parsed
from spsa.errors import InvalidInput

DEFAULT_ALGORITHM = "mixture"
MAX_PRIORITY = 1000
MIN_SHARE, MAX_SHARE = 1e-6, 1e6
MAX_WORDS = 50


def _name(name: str, info: ValidationInfo) -> str:
    return name or folder_of(info).name


class RunSection(Section):
    """The run."""

    name: Annotated[Text, AfterValidator(_name)] = Field("", validate_default=True)
    """name of the run in the database; by default that of the folder"""
    params: FilePath = Field("params.toml", validate_default=True)
    """the file with the parameters"""
    seed: Annotated[int | None, Field(ge=0, le=2**63 - 1)] = None
    """of perturbations, openings and colours; by default drawn at the start"""
    priority: Annotated[int, Field(ge=-MAX_PRIORITY, le=MAX_PRIORITY)] = 0
    """the run with the highest priority is served first"""
    share: Annotated[float, Field(ge=MIN_SHARE, le=MAX_SHARE)] = 1.0
    """part of the slots among runs of the same priority"""


def _url(written: str, info: ValidationInfo) -> str:
    """The same URL; a relative SQLite path is relative to the folder of the file.

    So programs that are started in different folders use the same database. No message quotes a
    URL, which may hold a password.
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

    @model_validator(mode="before")
    @classmethod
    def _named(cls, table: Any) -> Any:
        """Gains that the default does not have mean the rule `spsa`, where none is named."""
        own, gains = (
            {setting.name for setting in rule_entry(name).settings}
            for name in (DEFAULT_ALGORITHM, "spsa")
        )
        if not isinstance(table, dict) or "algorithm" in table or not table.keys() & (gains - own):
            return table
        return {**table, "algorithm": "spsa"}


class ValidationSection(Section):
    """The match of the tuned values against the first ones."""

    games: Annotated[int, Field(ge=0, le=1_000_000), AfterValidator(even)] = 0
    """even: games of the tuned values against the start when the run ends"""
    every: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """measure theta after every so many iterations against the start while the run goes on"""
    share: Annotated[float, Field(ge=1e-3, le=1.0)] = 0.05
    """games of these measurements for each game of the tuning"""
    time_control: TimeControlSection | None = None

    def faults(self) -> Iterator[Found]:
        if "share" in self.written and not self.every:
            found = "share is that of validations in the background"
            yield ("share",), found, "add every = 100"


class AlarmsSection(Section):
    """Who is notified of alarms; without a command, events are all there is."""

    command: Text = ""
    """a shell command that gets the message on its standard input"""
    after: Annotated[float, Field(ge=0.0, le=86_400.0)] = 60.0
    """seconds that an alarm lasts before it is reported, and is gone before it is over"""


def _words(words: tuple[str, ...]) -> tuple[str, ...]:
    if (bad := next((word for word in words if not WORD.fullmatch(word)), None)) is not None:
        remedy = "write at most 40 small letters, digits, `.` and `-`, as for `compete --label`"
        raise refusal(f"{shown(bad)} is not a word", remedy)
    if len(words) > MAX_WORDS:
        raise refusal(f"{len(words)} words are required", f"use at most {MAX_WORDS}")
    return tuple(dict.fromkeys(words))


class FleetSection(Section):
    """Which machines play."""

    set_aside: bool = False
    """whether the master gives no more batches to machines whose results stand out"""
    require: Annotated[Texts, AfterValidator(_words)] = ()
    """words that a worker has to provide: a `compete --label`, or what its machine is"""


def _table() -> Any:
    """A table that is read as an empty one where the file has none."""
    return Field(default_factory=dict, validate_default=True)


class Sections(Section):
    """All tables of config.toml."""

    run: RunSection = _table()
    database: DatabaseSection = _table()
    time_control: TimeControlSection = _table()
    games: GamesSection = _table()
    spsa: SpsaSection = _table()
    build: BuildSection = _table()
    delivery: DeliverySection = _table()
    engine: EngineSection = _table()
    adjudication: AdjudicationSection = _table()
    validation: ValidationSection = _table()
    alarms: AlarmsSection = _table()
    fleet: FleetSection = _table()

    def faults(self) -> Iterator[Found]:
        control, build = self.time_control.limits, self.build
        if self.games.target_nps is not None and control.reproducible:
            found = f'target_nps does not go with kind = "{control.kind}" of [time_control]'
            yield ("games", "target_nps"), found, "remove it: these games need no scale"
        if self.delivery.kind == "build" and build.source_path is None:
            remedy = (
                'write source_path = "../my-engine", the folder with its Cargo.toml or Makefile'
            )
            yield ("build", "source_path"), "source_path is missing", remedy
        if self.delivery.kind == "uci" and build.where == "worker":
            yield ("build", "where"), 'where = "worker", and nothing is built', "remove where"
        for key, found, remedy in settings_faults(self.spsa.algorithm, self.spsa.settings):
            near = get_close_matches(key, SpsaSection.model_fields, n=1, cutoff=0.8)
            said = (
                remedy
                if key in SpsaSection.model_fields or not near
                else f'did you mean "{near[0]}"?'
            )
            yield ("spsa", key), f"{key}: {found}", said


class Config(Sections):
    """One config.toml, overridden by the environment. Every path is absolute."""

    path: Path
    game_settings: InstanceOf[GameSettings]
