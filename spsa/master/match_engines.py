"""Engines that a person names for a match: binaries, and sources that are built as they are.

Each is pinned when it is named. A match of two of them needs no theta, so it may belong to a run
that tunes nothing.
"""

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from spsa.builds.builder import adopt
from spsa.builds.git import SourceCommit, checkout_of, commit_of, is_address, shown
from spsa.builds.smoke import declared_options
from spsa.config import missing_files
from spsa.config.document import refused as refused_at
from spsa.config.settings import Config
from spsa.core import Values
from spsa.core.game_settings import GameSettings
from spsa.core.params import Space
from spsa.core.uci_options import CHESS960, Declarations, whole_option
from spsa.db import Store
from spsa.db.master_queries import Sides
from spsa.db.tables import Run
from spsa.errors import BuildFailed, InvalidInput
from spsa.lifecycle import RunStatus
from spsa.master.delivery import BinaryDelivery, Delivery, Kind
from spsa.master.delivery_setup import common_settings, folder_in_source, given_source, shared_files
from spsa.master.start import new_row, new_tuning, settings_from
from spsa.openings.book import load
from spsa.text import NAME_LENGTH, printable

_SHORT = 10  # digits of a hash in a name
_THREADS = "Threads"

Refused = Callable[[str, str], InvalidInput]
"""The error for what was found at the place where an engine is named, and what would be right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedEngine:
    """An engine of a match that is no theta, and so has no values.

    `name` says what it is and of which commit or hash, `sha256` is the hash of the source or of
    the binary.
    """

    name: str
    sha256: str
    delivery: Delivery


@dataclass(kw_only=True)
class MatchDelivery(Delivery):
    """Plus is a theta or a named engine, and minus, where it has no values, a named one."""

    plus: Delivery
    minus: NamedEngine

    def __post_init__(self) -> None:
        plus = self.plus
        self.source_sha256, self.at_once, self.usual = plus.source_sha256, plus.at_once, plus.usual
        self.require = (*plus.require, *self.minus.delivery.require)
        super().__post_init__()

    @property
    def has_builder(self) -> bool:
        return self.plus.has_builder and self.minus.delivery.has_builder

    def prepare(self, plus: Values, minus: Values) -> Sides:
        return self.plus.prepare(plus, minus) if minus else super().prepare(plus, minus)

    def by_kind(self, plus: Values, minus: Values) -> Mapping[Kind, Sides]:
        ours = self.plus.by_kind(plus, plus)
        theirs = self.minus.delivery.by_kind(minus, minus)
        both = {
            kind: Sides(one.plus, other.minus, (*one.requires, *other.requires))
            for kind, one in ours.items()
            if (other := theirs.get(kind)) is not None
        }
        if not both:
            raise BuildFailed("workers of no kind could build both sources")
        return both

    def cancel(self) -> None:
        self.plus.cancel()
        self.minus.delivery.cancel()

    def discard(self, hashes: Collection[str]) -> None:
        self.plus.discard({*hashes} - {self.minus.sha256})


def named_engine(
    config: Config, store: Store, settings: GameSettings, text: str, side: str
) -> NamedEngine:
    """The engine that `--plus` or `--minus` names, which plays by these settings.

    Where workers build, they get it from `store`. Raises InvalidInput: it is no executable file, no
    source, or no commit of one. SmokeTestFailed: the binary is no UCI engine.
    """
    place, refused = Path(text), partial(InvalidInput.of, "validate", f"--{side}")
    if place.is_file():
        binary = _executable(place, refused)
        declared = declared_options(binary, settings.engine_arguments)
        _refuse_options(settings.common_options, declared, refused)
        return _of_binary(config, binary, settings.engine_arguments, settings, text)
    commit: SourceCommit | None
    if place.is_dir():
        folder, commit = place, commit_of(place)
    elif is_address(text) or "@" in text:
        folder, commit = checkout_of(text)
        if is_address(text) and config.engine.source is not None:
            folder /= folder_in_source(config)
    else:
        remedy = "name a binary, the folder of a source, FOLDER@COMMIT or ADDRESS@REF"
        raise refused(f"there is no file or folder {text}", remedy)
    delivery = given_source(config, folder, store, side)
    name, sha256 = text, delivery.source_sha256 or ""
    if commit is not None:  # with the place as it was written
        name = str(replace(commit, place=shown(text.removesuffix(f"@{commit.ref}"))))
    if place.is_dir():  # which may hold files that are no part of its commit
        name = f"{name}, files {sha256[:_SHORT]}"
    return NamedEngine(name=printable(name, NAME_LENGTH), sha256=sha256, delivery=delivery)


def foreign_engine(
    config: Config, settings: GameSettings, place: Path, refused: Refused
) -> NamedEngine:
    """Another program, with those options of the run that it has.

    It thinks with one thread unless the options say otherwise.
    """
    binary = _executable(place, refused)
    declared = declared_options(binary)
    wanted = settings.engine_options
    options = {n: v for n, v in wanted.items() if n.lower() in declared.by_name or n == CHESS960}
    if _THREADS.lower() in declared.by_name and not whole_option(options, _THREADS):
        options[_THREADS] = "1"
    _refuse_options(options, declared, refused)
    return _of_binary(config, binary, (), settings, place.name, options)


def _executable(place: Path, refused: Refused) -> Path:
    if not place.is_file():
        raise refused(f"there is no file {place}", "name the binary of an engine")
    if not os.access(place, os.X_OK):
        raise refused(f"{place} is not executable", f"try `chmod +x {place}`")
    return place.resolve()


def _refuse_options(options: Mapping[str, str], declared: Declarations, refused: Refused) -> None:
    """Refuse an engine that does not accept these of [engine]."""
    for option, value in options.items():
        if objection := declared.objection(option, value):
            raise refused(objection, "correct [engine.options], or name an engine that accepts it")


def _of_binary(
    config: Config,
    path: Path,
    arguments: tuple[str, ...],
    settings: GameSettings,
    text: str,
    options: Mapping[str, str] | None = None,
) -> NamedEngine:
    if config.build.where == "worker":
        found = f'where = "worker", and the binary {path} is for one kind of machine'
        remedy = 'name a source, which workers build, or use where = "master"'
        raise refused_at(config.path, ("build", "where"), found, remedy)
    sent = settings.common_options if options is None else options
    engine = adopt(path, config.build.engines_path, arguments, settings.played, sent)
    given = BinaryDelivery(engine=engine, options=options or {}, **common_settings(config))
    name = printable(f"{text} ({engine.sha256[:_SHORT]})", NAME_LENGTH)
    return NamedEngine(name=name, sha256=engine.sha256, delivery=given)


def run_of_match(config: Config, store: Store, name: str | None) -> Run:
    """The run that a match of two named engines belongs to: that of this name, if it is given.

    Else it is that of config.toml. If there is none, or it cannot play a match because a master
    moves it or it is paused, it is a run beside it that tunes nothing, NAME-matches, and stays so.
    """
    own = f"{config.run.name}-matches"
    run = store.run(name) if name is not None else store.find_run(own)
    if run is None:
        led = [one.name for one in store.run_overviews() if one.has_master]
        known = store.find_run(config.run.name)
        if known and known.name not in led and known.status is not RunStatus.PAUSED:
            return known
    if faults := missing_files(config):
        raise InvalidInput(faults)
    if run is not None and run.tunes:
        return run
    load(config.game_settings.book)
    files = shared_files(config)
    if run is None:
        run = store.create_run(_without_parameters(config, store, own))
    store.keep_files(files)
    return run


def _without_parameters(config: Config, store: Store, name: str) -> Run:
    """A run that has tuned all it has: nothing."""
    named = config.run.model_copy(update={"name": name})
    plain = config.model_copy(update={"run": named})
    row = new_row(plain, settings_from(plain), new_tuning(plain, Space(())))
    return replace(row, status=RunStatus.FINISHED, finished_at=store.clock(), max_iterations=0)
